// SPDX-License-Identifier: MIT
//
// Code whose unwind tables are known, for unwind_test.cpp and unwind_rows_test.cpp. Nobody runs it: only its addresses count.

        .text

// FRAME name … FRAME_END name: a function of 32 bytes; `name` is its first byte.
        .macro  FRAME name
        .balign 32
        .globl  \name
        .type   \name, @function
\name:
        .endm
        .macro  FRAME_END name
        .balign 32, 0x90
        .size   \name, . - \name
        .endm

// As after `call`: the frame begins above the return address.
FRAME frame_leaf
        .cfi_startproc
        nop
        .cfi_endproc
FRAME_END frame_leaf

// push %rbp, mov %rsp,%rbp: three rows.
FRAME frame_pushed
        .cfi_startproc
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        .balign 16, 0x90
        .cfi_endproc
FRAME_END frame_pushed

// What a thread begins with: nobody called it. A call stands at its head, so that addresses behind it are returned to.
FRAME frame_first
        .cfi_startproc
        .cfi_undefined %rip
        call    frame_leaf
        .balign 16, 0x90
        .cfi_endproc
FRAME_END frame_first

// Interrupted by a signal: the frame does not move, all registers are saved in it.
FRAME frame_signal
        .cfi_startproc
        .cfi_signal_frame
        .cfi_def_cfa %rsp, 0
        .cfi_offset %rip, 8
        .cfi_offset %rsp, 16
        nop
        .cfi_endproc
FRAME_END frame_signal

// The return address is in a register.
FRAME frame_in_register
        .cfi_startproc
        .cfi_register %rip, %rbx
        nop
        .cfi_endproc
FRAME_END frame_in_register

// The frame is where a word of the stack says (DW_CFA_def_cfa_expression: breg7 16, deref).
FRAME frame_by_word
        .cfi_startproc
        .cfi_escape 0x0f, 3, 0x77, 16, 0x06
        nop
        .cfi_endproc
FRAME_END frame_by_word

// %rbx of the caller is the frame's address plus 24, %r12 what it was, %r13 lost, %r14 at frame − 24 by an expression
// (DW_CFA_expression r14: call_frame_cfa is on the stack, const1u 24, minus).
FRAME frame_rules
        .cfi_startproc
        .cfi_def_cfa_offset 32
        .cfi_val_offset %rbx, 24
        .cfi_same_value %r12
        .cfi_undefined %r13
        .cfi_escape 0x10, 14, 3, 0x08, 24, 0x1c
        nop
        .cfi_endproc
FRAME_END frame_rules

// Tables that would go round for ever.
FRAME frame_stays
        .cfi_startproc
        .cfi_def_cfa %rsp, 0
        .cfi_offset %rip, 8
        nop
        .cfi_endproc
FRAME_END frame_stays

// The frame hangs on a register that is lost in any call.
FRAME frame_by_lost_register
        .cfi_startproc
        .cfi_def_cfa %r10, 8
        nop
        .cfi_endproc
FRAME_END frame_by_lost_register

// Another register than %rip is said to hold the return address.
FRAME frame_other_column
        .cfi_startproc
        .cfi_return_column 3
        nop
        .cfi_endproc
FRAME_END frame_other_column

// No table.
FRAME frame_bare
        nop
        nop
        nop
        nop
        nop
        nop
        nop
        nop
        .globl  frame_bare_called
        call    frame_leaf
frame_bare_called:
        nop
        .balign 32, 0x90
FRAME_END frame_bare

// A call by memory or a register, in each form that an operand has; where it returns to stands in frame_returns.
        .macro  INDIRECT operand:vararg
        .fill   8, 1, 0x90
        call    *\operand
1:
        .pushsection .data.rel.ro, "aw"
        .quad   1b
        .popsection
        .endm
        .pushsection .data.rel.ro, "aw"
        .balign 8
        .globl  frame_returns
frame_returns:
        .popsection
FRAME frame_calls
        INDIRECT    %rax
        INDIRECT    %r12
        INDIRECT    (%rax)
        INDIRECT    (%rsp)
        INDIRECT    8(%rbp)
        INDIRECT    16(%rsp)
        INDIRECT    (%rax, %rcx, 8)
        INDIRECT    8(%rax, %rcx, 8)
        INDIRECT    256(%rax)
        INDIRECT    256(%r11)
        INDIRECT    256(%rsp)
        INDIRECT    256(%rax, %rcx, 8)
        INDIRECT    256(, %rcx, 8)
        INDIRECT    0x1000
        INDIRECT    frame_returns(%rip)
        nop
FRAME_END frame_calls
        .pushsection .data.rel.ro, "aw"
        .quad   0
        .popsection

        .section .note.GNU-stack, "", @progbits
