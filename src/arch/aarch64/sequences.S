/* SPDX-License-Identifier: MIT
 *
 * The restartable sequences for 64-bit ARM (contract: arch/sequences.h; offsets: arch/layout.h). What each does, in
 * words, stands at the one of its name in x86_64/sequences.S; here stands what is different (docs/design/0041).
 *
 * Memory order. x86-64 makes stores visible in the order of the program, and so are its loads; this processor does neither.
 * Within a context that needs no help: its words are written where it runs, and the kernel's switch from thread to thread,
 * and from CPU to CPU, is a barrier. What others see, and what others change, is ordered here:
 *
 *   STLR  of a group's freed word, and of its offered word when something is offered: whoever sees an object free
 *         (owner_bits(), by LDAR) and gives back its page must not do so before the last use of the object, and must find a
 *         bit that left the freed word in the offered one. malloc's own commits are plain: they set no bit, and a store
 *         that follows a store-release to the same word is ordered behind what that was.
 *   LDAR  of the owner where it may have been written elsewhere: with the mark or as somebody else's. An owner without the
 *         mark that is our own id was written by this context, so free()'s hit reads it plainly.
 *   LDAR  of active_id and of a context's lock: who closes a context or holds its lock elsewhere changes what is read behind
 *         them. malloc's hit asks for neither: what it reads is emptied from outside twice, each time before a barrier
 *         that aborts it.
 *   STLR  of an owner: what was done to the slab before is seen by who finds the new one.
 *
 * The table and its mask are loaded as a pair: the table changes once, at the first malloc, which is before there can be a
 * second thread (pthread_create() allocates); then the mask alone does, and the entry's address depends on it.
 *
 * Top-byte-ignore: a program may free an address with a tag in its top byte. The table's index has no such bit, and the
 * exact division drops them for most classes, for others the slow path reports the address: an index that is right is all
 * that the words need. A magazine keeps addresses, so a free() of another context's object with a tag goes the slow way,
 * which makes its address from the index.
 *
 * Branch target identification: functions that are called begin with BTI C. Abort handlers need no landing pad: the kernel
 * goes there from inside a section, in which no indirect branch has been taken. The two functions with a frame
 * sign their return address.
 *
 * Conditional branches reach 1 MiB, and a linker may lay cold functions further away, so those that leave the file go by
 * way of an unconditional one.
 */
#include <asm/errno.h>

#include "arch/layout.h"

/* The thread's registers, from THREAD_AREA on; malloc's class is doubled, as in the block's tables. */
#define CLASS x8
#define CLASS32 w8
#define THREAD x9
#define ID x10
#define CS x11
#define BLOCK x12
#define CONTEXTS x13
#define SIZES x14
#define SECTION x15

/* THREAD = the thread's own words (struct ThreadArea). Clobbers x10. */
.macro THREAD_AREA
        mrs     THREAD, tpidr_el0
        adrp    x10, :gottprel:brimful_thread
        ldr     x10, [x10, #:gottprel_lo12:brimful_thread]
        add     THREAD, THREAD, x10
.endm

/*
 * Begins a restartable section, as SECTION_BEGIN of x86-64. SECTION is the address of the descriptor `from`. Clobbers x16.
 * The tests find a section's descriptor by the name brimful_section_NAME.
 */
.macro SECTION_BEGIN name, from=brimful_malloc
        add     x16, SECTION, #(brimful_section_\name - brimful_section_\from)
        str     x16, [CS]
.Lstart_\name:
.endm

/* The same where SECTION is the address of its descriptor. */
.macro SECTION_BEGIN_HERE name
        str     SECTION, [CS]
.Lstart_\name:
.endm

/* Right behind the commit store. */
.macro SECTION_END name
.Lend_\name:
.endm

/* The descriptor, and the abort handler behind its signature, a BRK: it is no instruction that anybody runs into. */
.macro SECTION_ABORT name, target
        .pushsection .data.rel.ro.brimful_rseq, "aw", %progbits
        .balign 32
brimful_section_\name:
        .word   0, 0
        .xword  .Lstart_\name, .Lend_\name - .Lstart_\name, .Labort_\name
        .popsection
        .pushsection .text.brimful_abort, "ax", %progbits
        .balign 4
        .inst   BRIMFUL_RSEQ_SIGNATURE
.Labort_\name:
        b       \target
        .popsection
.endm

.macro FUNCTION name
        .globl  \name
        .type   \name, %function
        .balign 64
\name:
        .cfi_startproc
        bti     c
.endm

.macro FUNCTION_END name
        .cfi_endproc
        .size   \name, . - \name
.endm

/* A frame with 16 bytes at [sp, #16], and the end of it. */
.macro FRAME
        paciasp
        .cfi_negate_ra_state
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset 29, -32
        .cfi_offset 30, -24
        mov     x29, sp
.endm
.macro FRAME_END
        ldp     x29, x30, [sp], #32
        .cfi_restore 29
        .cfi_restore 30
        .cfi_def_cfa_offset 0
        autiasp
        .cfi_negate_ra_state
.endm

/* \context = the context that the thread's id, now in \id, leads to. */
.macro CONTEXT context, id
        ldr     \id, [ID]
        ldr     \context, [CONTEXTS, \id, sxtw #3]
.endm

/* Goes to \other unless sequences may run in the context. Clobbers x16. */
.macro CHECK_ACTIVE context, id, other
        add     x16, \context, #BRIMFUL_CONTEXT_ACTIVE_ID
        ldar    w16, [x16]
        cmp     w16, \id
        b.ne    \other
.endm

/* \wide and \ones, the two names of one register: how many bits of a number are set. Clobbers v0. */
.macro COUNT_ONES wide, ones
        fmov    d0, \wide
        cnt     v0.8b, v0.8b
        addv    b0, v0.8b
        fmov    \ones, s0
.endm

/* \to = bytes up to a whole page, of which there are some sizes (brimful_hot). Clobbers x16. */
.macro ROUND_UP_TO_PAGES to, bytes
        ldr     x16, [THREAD, #BRIMFUL_THREAD_HOT]
        ldr     x16, [x16, #BRIMFUL_HOT_PAGE]
        add     \to, \bytes, x16
        bic     \to, \to, x16
.endm

/* \header = what the table has for the address; \hot: the address of brimful_hot. Clobbers x3. */
.macro HEADER header, hot, address
        ldp     \header, x3, [\hot, #BRIMFUL_HOT_TABLE]
        and     x3, x3, \address, lsr #16
        ldr     \header, [\header, x3, lsl #3]
.endm

.macro HOT_ADDRESS register
        adrp    \register, brimful_hot
        add     \register, \register, :lo12:brimful_hot
.endm

.macro ZERO_WORD register
        adrp    \register, brimful_zero_word
        add     \register, \register, :lo12:brimful_zero_word
.endm

        .section .data.rel.ro.brimful_rseq, "aw", %progbits
        .balign 32
        .globl  brimful_rseq_sections_begin
        .hidden brimful_rseq_sections_begin
brimful_rseq_sections_begin:

        .text

/* malloc's way to the next group. x0 = bytes, CLASS, ID, CS, BLOCK, CONTEXTS, SIZES, SECTION as there. */
.macro ADVANCE name, slow
.Ladvance_\name:
        SECTION_BEGIN advance_\name
        CONTEXT x2, w1
        CHECK_ACTIVE x2, w1, \slow
        add     x16, x2, #BRIMFUL_CONTEXT_LOCK
        ldar    w16, [x16]
        cbnz    w16, \slow
        add     x3, x2, CLASS, lsl #4
        add     x3, x3, #BRIMFUL_CONTEXT_QUEUES
        ldr     x4, [x3, #BRIMFUL_QUEUE_CURRENT]
        cbz     x4, \slow
        ldr     w5, [x4, #BRIMFUL_HEADER_OWNER]
        and     w5, w5, #~BRIMFUL_OWNER_HAS_REMOTE
        cmp     w5, w1
        b.ne    \slow
        ldr     w5, [x2, #BRIMFUL_CONTEXT_HEARTBEAT]
        subs    w5, w5, #BRIMFUL_BEATS_OF_A_GROUP
        str     w5, [x2, #BRIMFUL_CONTEXT_HEARTBEAT]
        b.mi    \slow
        ldr     w5, [x3, #BRIMFUL_QUEUE_SCAN]
        ldrb    w6, [x4, #BRIMFUL_HEADER_LEAST]
        ldrb    w1, [x4, #BRIMFUL_HEADER_OPENED]
        add     x7, x4, #BRIMFUL_HEADER_WORDS-8
        ldr     x9, [x7, x5, lsl #3]
        COUNT_ONES x9, w9
        cmp     w9, w6
        b.hs    .Lfound_\name
.Lscan_\name:
        cmp     w5, w1
        b.hs    \slow
        add     w5, w5, #1
        ldr     x9, [x7, x5, lsl #3]
        COUNT_ONES x9, w9
        cmp     w9, w6
        b.lo    .Lscan_\name
        str     w5, [x3, #BRIMFUL_QUEUE_SCAN]
.Lfound_\name:
        add     x7, x7, x5, lsl #3
        sub     w5, w5, #1
        lsl     w5, w5, #6
        ldr     w1, [SIZES, CLASS, lsl #2]
        ldr     x9, [x4, #BRIMFUL_HEADER_START]
        madd    x9, x5, x1, x9
        ldrb    w5, [x4, #BRIMFUL_HEADER_BATCH]
        add     x2, x2, CLASS, lsl #3
        ZERO_WORD x1
        str     x1, [x2]
        str     x9, [x2, #8]
        ldr     x1, [x7, #BRIMFUL_OFFERED_BEHIND]
        ldr     x17, [x7]
        bic     x17, x17, x1
        mov     x4, #-1
        lsr     x4, x4, x5
        rbit    x9, x17
        clz     x9, x9
        sub     w5, w5, #64
        and     w9, w9, w5
        lsl     x4, x4, x9
        neg     w5, w5
.Lchunk_\name:
        and     x9, x17, x4
        COUNT_ONES x9, w9
        cmp     w9, w6
        b.hs    .Loffer_\name
        lsl     x9, x4, x5
        orr     x9, x9, x4
        cmp     x9, x4
        mov     x4, x9
        b.ne    .Lchunk_\name
.Loffer_\name:
        and     x4, x4, x17
        COUNT_ONES x4, w9
        ldr     w16, [x2, #BRIMFUL_CONTEXT_SAMPLES]
        cmp     w16, w9
        b.lt    \slow
        sub     w16, w16, w9
        str     w16, [x2, #BRIMFUL_CONTEXT_SAMPLES]
        eor     x17, x17, x4
        orr     x4, x4, x1
        add     x1, x7, #BRIMFUL_OFFERED_BEHIND
        stlr    x4, [x1]
        stlr    x17, [x7]
        str     x1, [x2]
        SECTION_END advance_\name
        b       .Lclass_\name
.endm

/* An object of a coarse class. x0 = bytes; THREAD_AREA and what it leads to as in malloc. */
.macro COARSE name, slow
        add     x1, x0, #(1 << BRIMFUL_MEDIUM_SHIFT) - 1
        lsr     x1, x1, #BRIMFUL_MEDIUM_SHIFT
        add     x1, x1, #BRIMFUL_BLOCK_MEDIUM
        ldrb    CLASS32, [BLOCK, x1]
        SECTION_BEGIN coarse_\name
        CONTEXT x3, w1
        CHECK_ACTIVE x3, w1, \slow
        add     x16, x3, #BRIMFUL_CONTEXT_LOCK
        ldar    w16, [x16]
        cbnz    w16, \slow
        add     x2, x3, CLASS, lsl #3
        ldr     x4, [x2]
        ZERO_WORD x5
        cmp     x4, x5
        b.eq    .Lclass_\name
        sub     x4, x4, #BRIMFUL_OFFERED_BEHIND
        ldr     x5, [x4]
        cbz     x5, .Lclass_\name
        ldr     w7, [x3, #BRIMFUL_CONTEXT_HEARTBEAT]
        subs    w7, w7, #1
        str     w7, [x3, #BRIMFUL_CONTEXT_HEARTBEAT]
        b.mi    \slow
        ldr     w7, [x2, #BRIMFUL_CONTEXT_SAMPLES]
        subs    w7, w7, #1
        str     w7, [x2, #BRIMFUL_CONTEXT_SAMPLES]
        b.mi    \slow
        rbit    x6, x5
        sub     x7, x5, #1
        clz     x6, x6
        and     x5, x5, x7
        ldr     w7, [SIZES, CLASS, lsl #2]
        ldr     x3, [x2, #8]
        str     x5, [x4]
        SECTION_END coarse_\name
        madd    x0, x6, x7, x3
        ret
.endm

/* A large block. x0 = bytes, above BRIMFUL_MEDIUM_MAX; THREAD_AREA and what it leads to as in malloc. */
.macro TAKE_RUN name, miss
        mov     x1, #(1 << 16) - 1
        add     x1, x1, x0
        lsr     x1, x1, #16 - BRIMFUL_RUN_STACK_SHIFT
        cmp     x1, #(BRIMFUL_RUN_STACK_MOST + 1) << BRIMFUL_RUN_STACK_SHIFT
        b.hs    \miss
        and     x1, x1, #-1 << BRIMFUL_RUN_STACK_SHIFT
        ROUND_UP_TO_PAGES x7, x0
        SECTION_BEGIN run_\name
        CONTEXT x3, w2
        CHECK_ACTIVE x3, w2, \miss
        add     x4, x3, x1
        ldr     w5, [x4, #BRIMFUL_CONTEXT_RUN_STACKS]
        subs    w5, w5, #1
        b.mi    \miss
        add     x6, x4, x5, lsl #3
        ldr     x6, [x6, #BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACK_RUNS]
        ldr     x16, [x3, #BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACKS_UNTIL_SAMPLE]
        subs    x16, x16, x7
        str     x16, [x3, #BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACKS_UNTIL_SAMPLE]
        b.mi    \miss
        str     w5, [x4, #BRIMFUL_CONTEXT_RUN_STACKS]
        SECTION_END run_\name
        ldr     x0, [x6, #BRIMFUL_HEADER_START]
        str     x7, [x6, #BRIMFUL_HEADER_BYTES]
        mov     w1, #1
        strb    w1, [x6, #BRIMFUL_RUN_DIRTY]
        mov     w1, #BRIMFUL_OWNER_LIVE
        add     x2, x6, #BRIMFUL_HEADER_OWNER
        stlr    w1, [x2]
        ret
.endm

/* void* NAME(size_t bytes): a hit is 26 instructions, one of which is the landing pad. */
.macro ALLOCATE name, slow, begin:vararg
FUNCTION \name
.Lallocate_\name:
        THREAD_AREA
        ldp     ID, CS, [THREAD, #BRIMFUL_THREAD_ID]
        ldp     BLOCK, CONTEXTS, [THREAD, #BRIMFUL_THREAD_BLOCK]
        ldp     SIZES, SECTION, [THREAD, #BRIMFUL_THREAD_SIZES]
        cmp     x0, #BRIMFUL_SMALL_MAX
        b.hi    .Lmedium_\name
        ldrb    CLASS32, [BLOCK, x0]
.Lclass_\name:
        \begin
        CONTEXT x2, w1
        add     x2, x2, CLASS, lsl #3
        ldp     x3, x4, [x2]
        ldr     x5, [x3]
        cbz     x5, .Ladvance_\name
        rbit    x7, x5
        sub     x6, x5, #1
        clz     x7, x7
        and     x6, x6, x5
        ldr     w1, [SIZES, CLASS, lsl #2]
        str     x6, [x3]
        SECTION_END \name
        madd    x0, x7, x1, x4
        ret
.Lmedium_\name:
        mov     x1, #BRIMFUL_COARSE_ABOVE
        cmp     x0, x1
        b.hi    .Lbig_\name
        add     x1, x0, #(1 << BRIMFUL_MEDIUM_SHIFT) - 1
        lsr     x1, x1, #BRIMFUL_MEDIUM_SHIFT
        add     x1, x1, #BRIMFUL_BLOCK_MEDIUM
        ldrb    CLASS32, [BLOCK, x1]
        b       .Lclass_\name
.Lbig_\name:
        cmp     x0, #BRIMFUL_MEDIUM_MAX
        b.hi    .Llarge_\name
        COARSE \name, .Lslow_\name
.Llarge_\name:
        TAKE_RUN \name, .Lslow_\name
        ADVANCE \name, .Lslow_\name
.Lslow_\name:
        b       \slow
FUNCTION_END \name
SECTION_ABORT \name, \slow
SECTION_ABORT advance_\name, \slow
SECTION_ABORT coarse_\name, \slow
SECTION_ABORT run_\name, \slow
.endm

ALLOCATE brimful_malloc, brimful_malloc_slow, SECTION_BEGIN_HERE brimful_malloc
        .globl  brimful_section_brimful_malloc, brimful_section_free
        .hidden brimful_section_brimful_malloc, brimful_section_free
#if BRIMFUL_INTERPOSE
ALLOCATE brimful_new, brimful_new_slow, SECTION_BEGIN brimful_new
        .hidden brimful_new
#endif

/* NAME(alignment, bytes), by registers: malloc of the next multiple, 9 instructions more than `allocate`. */
.macro ALIGNED name, allocate, alignment, bytes, slow
FUNCTION \name
        sub     x2, \alignment, #1
        tst     x2, \alignment
        b.ne    .Lslow_\name
        sub     x3, \bytes, #1
        orr     x3, x3, x2
        adrp    x4, brimful_hot
        ldr     x4, [x4, #:lo12:brimful_hot+BRIMFUL_HOT_ALIGNED_MOST]
        cmp     x3, x4
        b.hs    .Lslow_\name
        add     x0, x3, #1
        b       .Lallocate_\allocate
.Lslow_\name:
        b       \slow
FUNCTION_END \name
.endm

ALIGNED brimful_aligned_alloc, brimful_malloc, x0, x1, brimful_aligned_alloc_slow
ALIGNED brimful_memalign, brimful_malloc, x0, x1, brimful_memalign_slow
#if BRIMFUL_INTERPOSE
ALIGNED brimful_new_aligned, brimful_new, x1, x0, brimful_new_aligned_slow
        .hidden brimful_new_aligned
#endif

/* int brimful_posix_memalign(void** result, size_t alignment, size_t bytes): as brimful_aligned_alloc(). */
FUNCTION brimful_posix_memalign
        sub     x3, x1, #1
        tst     x3, x1
        b.ne    .Lslow_posix_memalign
        sub     x4, x2, #1
        orr     x4, x4, x3
        adrp    x5, brimful_hot
        ldr     x5, [x5, #:lo12:brimful_hot+BRIMFUL_HOT_ALIGNED_MOST]
        cmp     x4, x5
        b.hs    .Lslow_posix_memalign
        cmp     x1, #8
        b.lo    .Lslow_posix_memalign
        FRAME
        str     x0, [sp, #16]
        add     x0, x4, #1
        bl      .Lallocate_brimful_malloc
        ldr     x1, [sp, #16]
        FRAME_END
        cbz     x0, .Lno_memory
        str     x0, [x1]
        mov     w0, #0
        ret
.Lno_memory:
        mov     w0, #ENOMEM
        ret
.Lslow_posix_memalign:
        b       brimful_posix_memalign_slow
FUNCTION_END brimful_posix_memalign

/* void* brimful_calloc(size_t count, size_t bytes): malloc, and memset() of what was asked for. */
FUNCTION brimful_calloc
        umulh   x2, x0, x1
        mul     x3, x0, x1
        cbnz    x2, .Lslow_calloc
        cmp     x3, #BRIMFUL_MEDIUM_MAX
        b.hi    .Lslow_calloc
        FRAME
        str     x3, [sp, #16]
        mov     x0, x3
        bl      .Lallocate_brimful_malloc
        ldr     x2, [sp, #16]
        FRAME_END
        cbz     x0, .Lno_object
        mov     w1, #0
        b       memset
.Lno_object:
        ret
.Lslow_calloc:
        b       brimful_calloc_slow
FUNCTION_END brimful_calloc

/*
 * void brimful_free(void* pointer): a hit is 35 instructions, one of which is the landing pad.
 * x0 = pointer for good, x2 = header, x3 = index, x4 = header + 8 * group.
 */
FUNCTION brimful_free
        THREAD_AREA
        ldp     ID, CS, [THREAD, #BRIMFUL_THREAD_ID]
        ldp     x1, SECTION, [THREAD, #BRIMFUL_THREAD_HOT]
        HEADER  x2, x1, x0
.Lfree_with_header:
        ldp     x3, x4, [x2, #BRIMFUL_HEADER_START]
        sub     x3, x0, x3
        mul     x3, x3, x4
        ror     x3, x3, #BRIMFUL_DIVISION_SHIFT
        cmp     x3, #BRIMFUL_MAX_OBJECTS
        b.hs    .Lfree_slowly
        lsr     x4, x3, #6
        add     x4, x2, x4, lsl #3
        SECTION_BEGIN_HERE free
        ldr     w5, [ID]
        ldr     w6, [x2, #BRIMFUL_HEADER_OWNER]
        cmp     w6, w5
        b.ne    .Lnot_owner
        ldr     x5, [x4, #BRIMFUL_HEADER_WORDS]!
        ldr     x6, [x4, #BRIMFUL_OFFERED_BEHIND]
        mov     x1, #1
        lsl     x1, x1, x3
        orr     x6, x6, x5
        tst     x6, x1
        b.ne    .Ltwice
        orr     x5, x5, x1
        stlr    x5, [x4]
        SECTION_END free
        cmn     x5, #1
        b.eq    .Lgroup_free
        ret
.Lgroup_free:
        /* The group is entirely free: one step nearer to an empty slab. A lost update only delays its release. */
        ldr     w5, [x2, #BRIMFUL_HEADER_COUNTDOWN]
        subs    w5, w5, #1
        str     w5, [x2, #BRIMFUL_HEADER_COUNTDOWN]
        b.le    .Levent
        ret
.Levent:
        mov     x0, x2
        b       brimful_free_event
.Ltwice:
        b       brimful_free_twice
.Lfree_slowly:
        b       brimful_free_slow

/* Somebody else's: into the magazine. The others' mask lies behind the offered words, whose number is rounded up. */
.macro REMOTE_PLACE to, temporary
        ldrh    \temporary, [x2, #BRIMFUL_HEADER_GROUPS]
        add     \temporary, \temporary, #7
        and     \temporary, \temporary, #~7
        add     \to, x4, \to, lsl #3
.endm
.Lnot_owner:
        ldp     BLOCK, CONTEXTS, [THREAD, #BRIMFUL_THREAD_BLOCK]
        SECTION_BEGIN free_foreign, free
        ldr     w5, [ID]
        add     x6, x2, #BRIMFUL_HEADER_OWNER
        ldar    w6, [x6]
        cmn     w6, #(0x100000000 - BRIMFUL_OWNER_SHARED)
        b.hs    .Lno_context
        and     w7, w6, #~BRIMFUL_OWNER_HAS_REMOTE
        cmp     w7, w5
        b.eq    .Lmarked
        tbnz    w5, #31, .Lfree_slowly
        cmn     w6, #(0x100000000 - BRIMFUL_OWNER_DETACHED)
        b.ne    .Lforeign
        ldr     w7, [x2, #BRIMFUL_HEADER_LAST_OWNER]
        cmp     w7, w5
        b.eq    .Lfree_slowly
.Lforeign:
        REMOTE_PLACE x7, w7
        add     x6, x4, #BRIMFUL_HEADER_WORDS
        ldar    x6, [x6]
        ldr     x1, [x4, #BRIMFUL_HEADER_OFFERED]
        ldr     x7, [x7, #BRIMFUL_HEADER_OFFERED]
        orr     x6, x6, x1
        orr     x6, x6, x7
        lsr     x6, x6, x3
        tbnz    x6, #0, .Lfree_slowly
        lsr     x6, x0, #BRIMFUL_ADDRESS_BITS
        cbnz    x6, .Lfree_slowly
        ldrb    w6, [x2, #BRIMFUL_HEADER_CLASS]
        ldr     x7, [CONTEXTS, w5, sxtw #3]
        CHECK_ACTIVE x7, w5, .Lfree_slowly
        add     x1, x7, x6, lsl #2
        ldr     w14, [x1, #BRIMFUL_CONTEXT_COUNTS]
        add     x16, BLOCK, x6
        ldrb    w16, [x16, #BRIMFUL_BLOCK_LIMITS]
        cmp     w14, w16
        b.hs    .Lfree_slowly
        ldr     w16, [x7, #BRIMFUL_CONTEXT_UNTIL_LOOK]
        subs    w16, w16, #1
        str     w16, [x7, #BRIMFUL_CONTEXT_UNTIL_LOOK]
        b.mi    .Lfree_slowly
        lsr     w16, w0, #4
        mov     w17, #(BRIMFUL_FILTER_FACTOR & 0xFFFF)
        movk    w17, #(BRIMFUL_FILTER_FACTOR >> 16), lsl #16
        mul     w16, w16, w17
        lsr     w16, w16, #BRIMFUL_FILTER_SHIFT
        lsr     w17, w16, #6
        add     w17, w17, w6, lsl #3
        add     x17, x7, x17, lsl #3
        ldr     x5, [x17, #BRIMFUL_CONTEXT_FILTERS]
        lsr     x12, x5, x16
        tbnz    x12, #0, .Lfree_slowly
        mov     x12, #1
        lsl     x12, x12, x16
        orr     x5, x5, x12
        str     x5, [x17, #BRIMFUL_CONTEXT_FILTERS]
        add     x17, x7, x6, lsl #BRIMFUL_MAGAZINE_SHIFT
        add     x17, x17, x14, lsl #3
        str     x0, [x17, #BRIMFUL_CONTEXT_MAGAZINES]
        add     w14, w14, #1
        str     w14, [x1, #BRIMFUL_CONTEXT_COUNTS]
        SECTION_END free_foreign
        ret

/*
 * Perhaps a large block, claimed by one exchange. A build for processors that have them (-march=armv8.1-a) uses the atomic
 * instruction; else a pair of exclusives, tried once: what interrupts it each time (a debugger's steps) must not keep it
 * here for ever. The slow path does the same in C++.
 */
.Lno_context:
        add     x6, x2, #BRIMFUL_HEADER_OWNER
        mov     w7, #BRIMFUL_OWNER_LIVE
        mov     w1, #BRIMFUL_OWNER_CACHED
#if defined(__ARM_FEATURE_ATOMICS)
        mov     w5, w7
        casal   w5, w1, [x6]
        cmp     w5, w7
        b.ne    .Lfree_slowly
#else
        ldaxr   w5, [x6]
        cmp     w5, w7
        b.ne    .Lfree_slowly
        stlxr   w5, w1, [x6]
        cbnz    w5, .Lfree_slowly
#endif
        ldr     x5, [x2, #BRIMFUL_HEADER_START]
        cmp     x5, x0
        b.ne    .Lclaimed
        ldrh    w4, [x2, #BRIMFUL_RUN_STACK]
        SECTION_BEGIN free_run, free
        CONTEXT x6, w5
        CHECK_ACTIVE x6, w5, .Lclaimed
        add     x4, x6, x4
        ldr     w7, [x4, #BRIMFUL_CONTEXT_RUN_STACKS]
        ldr     w1, [x4, #BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACK_LIMIT]
        cmp     w7, w1
        b.hs    .Lclaimed
        ldr     w1, [x6, #BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACKS_UNTIL_LOOK]
        subs    w1, w1, #1
        str     w1, [x6, #BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACKS_UNTIL_LOOK]
        b.mi    .Lclaimed
        ldr     x1, [x6, #BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACKS_NOW]
        str     x1, [x2, #BRIMFUL_RUN_STAMP]
        add     x1, x4, x7, lsl #3
        str     x2, [x1, #BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACK_RUNS]
        add     w7, w7, #1
        str     w7, [x4, #BRIMFUL_CONTEXT_RUN_STACKS]
        SECTION_END free_run
        ret
.Lclaimed:
        mov     x1, x0
        mov     x0, x2
        b       brimful_free_claimed

/* Ours, but others have freed objects of the slab: as the fast path, with a look at their mask. */
.Lmarked:
        SECTION_BEGIN free_marked, free
        ldr     w5, [ID]
        orr     w5, w5, #BRIMFUL_OWNER_HAS_REMOTE
        add     x6, x2, #BRIMFUL_HEADER_OWNER
        ldar    w6, [x6]
        cmp     w6, w5
        b.ne    .Lfree_slowly
        REMOTE_PLACE x7, w7
        ldr     x6, [x4, #BRIMFUL_HEADER_OFFERED]
        ldr     x7, [x7, #BRIMFUL_HEADER_OFFERED]
        ldr     x5, [x4, #BRIMFUL_HEADER_WORDS]!
        orr     x6, x6, x7
        orr     x6, x6, x5
        mov     x1, #1
        lsl     x1, x1, x3
        tst     x6, x1
        b.ne    .Lfree_slowly
        orr     x5, x5, x1
        stlr    x5, [x4]
        SECTION_END free_marked
        cmn     x5, #1
        b.eq    .Lgroup_free
        ret
FUNCTION_END brimful_free
SECTION_ABORT free, .Lfree_slowly
SECTION_ABORT free_foreign, .Lfree_slowly
SECTION_ABORT free_run, .Lclaimed
SECTION_ABORT free_marked, .Lfree_slowly

/* void brimful_free_sized(void* pointer, size_t bytes): the size must name the object's class, then it is a free. */
FUNCTION brimful_free_sized
        cmp     x1, #BRIMFUL_SMALL_MAX
        b.hi    .Lslow_free_sized
        THREAD_AREA
        ldp     ID, CS, [THREAD, #BRIMFUL_THREAD_ID]
        ldr     BLOCK, [THREAD, #BRIMFUL_THREAD_BLOCK]
        ldp     x4, SECTION, [THREAD, #BRIMFUL_THREAD_HOT]
        HEADER  x2, x4, x0
        ldrb    w4, [BLOCK, x1]
        ldrb    w5, [x2, #BRIMFUL_HEADER_CLASS]
        cmp     w5, w4, lsr #1
        b.eq    .Lfree_with_header
.Lslow_free_sized:
        b       brimful_free_sized_slow
FUNCTION_END brimful_free_sized

/* To be zero for the start of an object of a slab: what index_of() would rotate to BRIMFUL_MAX_OBJECTS or more. */
#define NO_START ~((BRIMFUL_MAX_OBJECTS - 1) << BRIMFUL_DIVISION_SHIFT)

/* size_t brimful_usable_size(const void* pointer): nothing but loads. */
FUNCTION brimful_usable_size
        HOT_ADDRESS x1
        HEADER  x2, x1, x0
        ldp     x3, x4, [x2, #BRIMFUL_HEADER_START]
        sub     x3, x0, x3
        mul     x3, x3, x4
        tst     x3, #NO_START
        b.ne    .Lslow_usable_size
        ldr     x0, [x2, #BRIMFUL_HEADER_BYTES]
        ret
.Lslow_usable_size:
        b       brimful_usable_size_slow
FUNCTION_END brimful_usable_size

/* void* brimful_realloc(void* pointer, size_t bytes) of an object that stays where it is. */
FUNCTION brimful_realloc
        HOT_ADDRESS x4
        HEADER  x2, x4, x0
        ldp     x3, x4, [x2, #BRIMFUL_HEADER_START]
        sub     x3, x0, x3
        mul     x3, x3, x4
        ror     x3, x3, #BRIMFUL_DIVISION_SHIFT
        cmp     x3, #BRIMFUL_MAX_OBJECTS
        b.hs    .Lrealloc_slowly
        add     x5, x2, #BRIMFUL_HEADER_OWNER
        ldar    w5, [x5]
        tst     w5, #BRIMFUL_OWNER_HAS_REMOTE
        b.ne    .Lrealloc_slowly
        lsr     x4, x3, #6
        add     x4, x2, x4, lsl #3
        add     x5, x4, #BRIMFUL_HEADER_WORDS
        ldar    x5, [x5]
        ldr     x6, [x4, #BRIMFUL_HEADER_OFFERED]
        orr     x5, x5, x6
        lsr     x5, x5, x3
        tbnz    x5, #0, .Lrealloc_slowly
        ldr     x5, [x2, #BRIMFUL_HEADER_BYTES]
        subs    x5, x5, x1
        b.lo    .Lrealloc_slowly
        cmp     x5, x1
        b.hs    .Lrealloc_slowly
        ret
.Lrealloc_slowly:
        b       brimful_realloc_slow
FUNCTION_END brimful_realloc

/* The standard names stand on the fast paths themselves. */
#if BRIMFUL_INTERPOSE
.macro ALIAS target, names:vararg
        .irp    name, \names
        .globl  \name
        .type   \name, %function
        .set    \name, \target
        .endr
.endm
ALIAS brimful_malloc, malloc, __libc_malloc
ALIAS brimful_free, free, cfree, __libc_free, _ZdlPv, _ZdaPv, _ZdlPvRKSt9nothrow_t, _ZdaPvRKSt9nothrow_t
ALIAS brimful_free, _ZdlPvSt11align_val_t, _ZdaPvSt11align_val_t
ALIAS brimful_free, _ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdaPvSt11align_val_tRKSt9nothrow_t
ALIAS brimful_free_sized, free_sized, _ZdlPvm, _ZdaPvm
ALIAS brimful_usable_size, malloc_usable_size
ALIAS brimful_realloc, realloc, __libc_realloc
ALIAS brimful_calloc, calloc, __libc_calloc
ALIAS brimful_aligned_alloc, aligned_alloc
ALIAS brimful_memalign, memalign, __libc_memalign
ALIAS brimful_posix_memalign, posix_memalign
ALIAS brimful_new_aligned, _ZnwmSt11align_val_t, _ZnamSt11align_val_t
ALIAS brimful_new, _Znwm, _Znam
#endif

/* The C-callable sequences: arguments stay in x0 … x4; w14 = the thread's id. */
.macro SEQUENCE name, other=.Lother_context
        THREAD_AREA
        ldp     ID, CS, [THREAD, #BRIMFUL_THREAD_ID]
        ldr     SECTION, [THREAD, #BRIMFUL_THREAD_SECTION]
        SECTION_BEGIN \name
        ldr     w14, [ID]
        CHECK_ACTIVE x0, w14, \other
.endm

/* void* brimful_seq_take(Context* context, uint64_t doubled_class) */
FUNCTION brimful_seq_take
        SEQUENCE take, .Lnothing
        add     x2, x0, x1, lsl #3
        ldp     x3, x4, [x2]
        ldr     x5, [x3]
        cbz     x5, .Lnothing
        ldr     x6, [THREAD, #BRIMFUL_THREAD_SIZES]
        ldr     w6, [x6, x1, lsl #2]
        rbit    x7, x5
        sub     x2, x5, #1
        clz     x7, x7
        and     x2, x2, x5
        str     x2, [x3]
        SECTION_END take
        madd    x0, x7, x6, x4
        ret
.Lnothing:
        mov     x0, #0
        ret
FUNCTION_END brimful_seq_take
SECTION_ABORT take, .Lnothing

/* void* brimful_seq_take_freed(Context* context, uint64_t doubled_class): as COARSE, which counts heartbeats besides. */
FUNCTION brimful_seq_take_freed
        SEQUENCE take_freed, .Lnothing
        add     x16, x0, #BRIMFUL_CONTEXT_LOCK
        ldar    w16, [x16]
        cbnz    w16, .Lnothing
        add     x2, x0, x1, lsl #3
        ldr     x4, [x2]
        ZERO_WORD x5
        cmp     x4, x5
        b.eq    .Lnothing
        sub     x4, x4, #BRIMFUL_OFFERED_BEHIND
        ldr     x5, [x4]
        cbz     x5, .Lnothing
        ldr     w7, [x2, #BRIMFUL_CONTEXT_SAMPLES]
        subs    w7, w7, #1
        str     w7, [x2, #BRIMFUL_CONTEXT_SAMPLES]
        b.mi    .Lnothing
        ldr     x6, [THREAD, #BRIMFUL_THREAD_SIZES]
        ldr     w6, [x6, x1, lsl #2]
        ldr     x3, [x2, #8]
        rbit    x7, x5
        sub     x2, x5, #1
        clz     x7, x7
        and     x5, x5, x2
        str     x5, [x4]
        SECTION_END take_freed
        madd    x0, x7, x6, x3
        ret
FUNCTION_END brimful_seq_take_freed
SECTION_ABORT take_freed, .Lnothing

/* The others answer with arch::Outcome in x0. */
.Laborted:
        mov     x0, #2
        ret
.Lother_context:
        mov     x0, #1
        ret
.Lrefused:
        mov     x0, #3
        ret
.Lset_before:
        mov     x0, #4
        ret

/* Outcome brimful_seq_free(Header* slab, uint64_t index, uint32_t mark) */
FUNCTION brimful_seq_free
        lsr     x4, x1, #6
        add     x4, x0, x4, lsl #3
        THREAD_AREA
        ldp     ID, CS, [THREAD, #BRIMFUL_THREAD_ID]
        ldr     SECTION, [THREAD, #BRIMFUL_THREAD_SECTION]
        SECTION_BEGIN seq_free
        ldr     w5, [ID]
        orr     w5, w5, w2
        add     x6, x0, #BRIMFUL_HEADER_OWNER
        ldar    w6, [x6]
        cmp     w6, w5
        b.ne    .Lother_context
        ldr     x5, [x4, #BRIMFUL_HEADER_WORDS]!
        ldr     x6, [x4, #BRIMFUL_OFFERED_BEHIND]
        mov     x7, #1
        lsl     x7, x7, x1
        orr     x6, x6, x5
        tst     x6, x7
        b.ne    .Lset_before
        orr     x5, x5, x7
        stlr    x5, [x4]
        SECTION_END seq_free
        mov     x0, #0
        cmn     x5, #1
        b.ne    .Lnot_all
        mov     x0, #5
.Lnot_all:
        ret
FUNCTION_END brimful_seq_free
SECTION_ABORT seq_free, .Laborted

/* Outcome brimful_seq_store32(Context* context, uint32_t* address, uint32_t value) */
FUNCTION brimful_seq_store32
        SEQUENCE store32
        stlr    w2, [x1]
        SECTION_END store32
        mov     x0, #0
        ret
FUNCTION_END brimful_seq_store32
SECTION_ABORT store32, .Laborted

/* Outcome brimful_seq_or(Context* context, uint64_t* word, uint64_t mask) */
FUNCTION brimful_seq_or
        SEQUENCE or
        ldr     x5, [x1]
        tst     x5, x2
        b.ne    .Lset_before
        orr     x5, x5, x2
        stlr    x5, [x1]
        SECTION_END or
        mov     x0, #0
        ret
FUNCTION_END brimful_seq_or
SECTION_ABORT or, .Laborted

/* Outcome brimful_seq_install(Context* context, Slot* slot, uint64_t* word, uint64_t base, uint64_t places) */
FUNCTION brimful_seq_install
        ZERO_WORD x7
        SEQUENCE install
        str     x7, [x1]
        str     x3, [x1, #8]
        add     x7, x2, #BRIMFUL_OFFERED_BEHIND
        ldr     x5, [x7]
        ldr     x6, [x2]
        bic     x6, x6, x5
        and     x4, x4, x6
        eor     x6, x6, x4
        orr     x5, x5, x4
        stlr    x5, [x7]
        stlr    x6, [x2]
        str     x7, [x1]
        SECTION_END install
        mov     x0, #0
        ret
FUNCTION_END brimful_seq_install
SECTION_ABORT install, .Laborted

/* Outcome brimful_seq_empty(Context* context, Slot* slot) */
FUNCTION brimful_seq_empty
        ZERO_WORD x7
        SEQUENCE empty
        str     x7, [x1]
        SECTION_END empty
        mov     x0, #0
        ret
FUNCTION_END brimful_seq_empty
SECTION_ABORT empty, .Laborted

/* Outcome brimful_seq_magazine_push(Context* context, uint64_t size_class, uint64_t object) */
FUNCTION brimful_seq_magazine_push
        lsr     w5, w2, #4
        mov     w6, #(BRIMFUL_FILTER_FACTOR & 0xFFFF)
        movk    w6, #(BRIMFUL_FILTER_FACTOR >> 16), lsl #16
        mul     w5, w5, w6
        lsr     w5, w5, #BRIMFUL_FILTER_SHIFT
        mov     x6, #1
        lsl     x6, x6, x5
        lsr     w5, w5, #6
        add     w5, w5, w1, lsl #3
        add     x5, x0, x5, lsl #3
        SEQUENCE magazine_push
        ldr     x7, [THREAD, #BRIMFUL_THREAD_BLOCK]
        add     x7, x7, x1
        ldrb    w7, [x7, #BRIMFUL_BLOCK_LIMITS]
        add     x3, x0, x1, lsl #2
        ldr     w4, [x3, #BRIMFUL_CONTEXT_COUNTS]
        cmp     w4, w7
        b.hs    .Lrefused
        add     x1, x0, x1, lsl #BRIMFUL_MAGAZINE_SHIFT
        ldr     x7, [x5, #BRIMFUL_CONTEXT_FILTERS]
        tst     x7, x6
        b.eq    .Lnew
        mov     w0, w4
.Lcompare:
        subs    w0, w0, #1
        b.lo    .Lnew
        add     x16, x1, x0, lsl #3
        ldr     x16, [x16, #BRIMFUL_CONTEXT_MAGAZINES]
        cmp     x16, x2
        b.eq    .Lset_before
        b       .Lcompare
.Lnew:
        orr     x7, x7, x6
        str     x7, [x5, #BRIMFUL_CONTEXT_FILTERS]
        add     x1, x1, x4, lsl #3
        str     x2, [x1, #BRIMFUL_CONTEXT_MAGAZINES]
        add     w4, w4, #1
        str     w4, [x3, #BRIMFUL_CONTEXT_COUNTS]
        SECTION_END magazine_push
        mov     x0, #0
        ret
FUNCTION_END brimful_seq_magazine_push
SECTION_ABORT magazine_push, .Laborted

/* Copies the words at x5 + `words`, whose count is at x4 + `count`, to x2 and commits a count of 0: ends section and function. */
.macro TAKE_ALL name, count, words
        ldr     w1, [x4, #\count]
        mov     w6, w1
.Lcopy_\name:
        subs    w6, w6, #1
        b.lo    .Lcopied_\name
        add     x7, x5, x6, lsl #3
        ldr     x7, [x7, #\words]
        str     x7, [x2, x6, lsl #3]
        b       .Lcopy_\name
.Lcopied_\name:
        str     wzr, [x4, #\count]
        SECTION_END \name
        mov     x0, #0
        ret
.endm

/* Answer brimful_seq_magazine_take(Context* context, uint64_t size_class, uint64_t* into): value in x1 */
FUNCTION brimful_seq_magazine_take
        add     x4, x0, x1, lsl #2
        add     x5, x0, x1, lsl #BRIMFUL_MAGAZINE_SHIFT
        SEQUENCE magazine_take
        TAKE_ALL magazine_take, BRIMFUL_CONTEXT_COUNTS, BRIMFUL_CONTEXT_MAGAZINES
FUNCTION_END brimful_seq_magazine_take
SECTION_ABORT magazine_take, .Laborted

/* Outcome brimful_seq_magazine_forget(Context* context, uint64_t size_class) */
FUNCTION brimful_seq_magazine_forget
        add     x4, x0, x1, lsl #2
        add     x5, x0, x1, lsl #6
        movi    v0.2d, #0
        SEQUENCE magazine_forget
        ldr     w6, [x4, #BRIMFUL_CONTEXT_COUNTS]
        cbnz    w6, .Lrefused
        str     q0, [x5, #BRIMFUL_CONTEXT_FILTERS]
        str     q0, [x5, #BRIMFUL_CONTEXT_FILTERS+16]
        str     q0, [x5, #BRIMFUL_CONTEXT_FILTERS+32]
        str     q0, [x5, #BRIMFUL_CONTEXT_FILTERS+48]
        SECTION_END magazine_forget
        mov     x0, #0
        ret
FUNCTION_END brimful_seq_magazine_forget
SECTION_ABORT magazine_forget, .Laborted

/* Answer brimful_seq_runs_take(Context* context, uint64_t granules, Run** into): value in x1 */
FUNCTION brimful_seq_runs_take
        add     x4, x0, x1, lsl #BRIMFUL_RUN_STACK_SHIFT
        mov     x5, x4
        SEQUENCE runs_take
        TAKE_ALL runs_take, BRIMFUL_CONTEXT_RUN_STACKS, BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACK_RUNS
FUNCTION_END brimful_seq_runs_take
SECTION_ABORT runs_take, .Laborted

/* void* brimful_take_run(size_t bytes) */
FUNCTION brimful_take_run
        THREAD_AREA
        ldp     ID, CS, [THREAD, #BRIMFUL_THREAD_ID]
        ldr     CONTEXTS, [THREAD, #BRIMFUL_THREAD_CONTEXTS]
        ldr     SECTION, [THREAD, #BRIMFUL_THREAD_SECTION]
        TAKE_RUN take_run, .Lno_run
.Lno_run:
        mov     x0, #0
        ret
FUNCTION_END brimful_take_run
SECTION_ABORT run_take_run, .Lno_run

        .hidden brimful_seq_runs_take, brimful_take_run
        .hidden brimful_seq_take, brimful_seq_take_freed, brimful_seq_free, brimful_seq_store32, brimful_seq_or, brimful_seq_install
        .hidden brimful_seq_empty
        .hidden brimful_seq_magazine_push, brimful_seq_magazine_take, brimful_seq_magazine_forget

        .section .data.rel.ro.brimful_rseq, "aw", %progbits
        .globl  brimful_rseq_sections_end
        .hidden brimful_rseq_sections_end
brimful_rseq_sections_end:

/* This file keeps to branch target identification and pointer authentication. */
        .section .note.gnu.property, "a", %note
        .balign 8
        .word   4, 16, 5
        .asciz  "GNU"
        .word   0xC0000000, 4, 3, 0

        .section .note.GNU-stack, "", %progbits
