/* SPDX-License-Identifier: MIT
 *
 * The restartable sequences for x86-64 (contract: arch/sequences.h; offsets: arch/layout.h).
 *
 * malloc, in words:
 *     thread  = {id pointer, rseq_cs pointer}         (two words of initial-exec TLS)
 *     class   = block->small[n]                       (doubled: a slot is 16 bytes, a size 8)
 *   start:
 *     slot    = block->contexts[1 + *id]->slots[class]
 *     bit     = lowest set bit of *slot.word          (none: slow)
 *     result  = slot.base + bit * size
 *     *slot.word without the bit                      COMMIT
 *
 * free, in words:
 *     header  = table[(p >> 16) & mask]
 *     index   = rotate_right((p - start) * multiplier, 16), below 4096 exactly when p could be the start of an object
 *   start:
 *     header->owner == *id                            (no: slow)
 *     word[index / 64] |= 1 << index % 64             COMMIT
 *     carry: the bit was set before, a double free; word all ones: the group is entirely free
 *
 * Why TZCNT and BTR, not BSF, and not BLSR: one binary serves every x86-64. A processor without TZCNT ignores its prefix and
 * runs BSF, which finds the same bit of a word that has one. Of an empty word they answer different numbers, so neither the
 * number nor TZCNT's flags are asked: BTR puts the bit that it clears into the carry, and in an empty word every bit is 0,
 * whatever number it is given. LLVM's model of Zen 3 counts four micro-operations less. BTR waits for it, where BLSR would
 * not, on a chain (offered word to offered word) that is not the longest; the longest begins at the thread's two words, so
 * they are loaded first (docs/design/0027). The count of a slab is not loaded: words behind a slab's last group are all
 * ones, so an index beyond it looks like a double free and is sorted out there.
 * INC leaves the carry of BTS alone, so a single JBE sees both "was set" and "all ones". An abort never retries here:
 * it goes to the slow path, which counts its attempts, so a
 * single-stepped program makes progress.
 */
#include <asm/errno.h>

#include "arch/layout.h"

#define ID %rdx

/*
 * Begins a restartable section. Clobbers `scratch`; `cs` holds the rseq_cs pointer. From here to SECTION_END everything
 * lies between the two: a thread that is interrupted outside of them is not aborted, so nothing may jump out and in again.
 * The descriptor's name is for tests that name the section (tests/stress/sections.h).
 */
.macro SECTION_BEGIN name, cs, scratch
        leaq    brimful_section_\name(%rip), \scratch
        movq    \scratch, (\cs)
.Lstart_\name:
.endm

/* The thread's two words: where its id is, and its rseq_cs. */
.macro THREAD_AREA id, cs
        movq    brimful_thread@gottpoff(%rip), \cs
        movq    %fs:(\cs), \id
        movq    %fs:8(\cs), \cs
.endm

/* Right behind the commit store. */
.macro SECTION_END name
.Lend_\name:
.endm

/* The descriptor, and the abort handler behind its signature (as the operand of a UD1, so disassemblers stay in step). */
.macro SECTION_ABORT name, target:vararg
        .pushsection .data.rel.ro.brimful_rseq, "aw", @progbits
        .balign 32
brimful_section_\name:
        .long   0, 0
        .quad   .Lstart_\name, .Lend_\name - .Lstart_\name, .Labort_\name
        .popsection
        .pushsection .text.brimful_abort, "ax", @progbits
        .byte   0x0f, 0xb9, 0x3d
        .long   BRIMFUL_RSEQ_SIGNATURE
.Labort_\name:
        \target
        .popsection
.endm

.macro FUNCTION name
        .globl  \name
        .type   \name, @function
        .balign 64
\name:
        .cfi_startproc
.endm

.macro FUNCTION_END name
        .cfi_endproc
        .size   \name, . - \name
.endm

        .section .data.rel.ro.brimful_rseq, "aw", @progbits
        .balign 32
        .globl  brimful_rseq_sections_begin
        .hidden brimful_rseq_sections_begin
brimful_rseq_sections_begin:

        .text

/*
 * The group is used up: puts the next group of the current slab that has a free object into the slot, and goes on. In
 * words, with queue = context->queues[class]:
 *   start:
 *     context is not closed, nobody holds its lock, queue.current is there and ours     (else: slow)
 *     the group just used up, or the first behind it, of which `least` objects are free  (none: slow)
 *     queue.scan behind it                                          (alone it would only skip a group)
 *     slot = {empty, base of the group}
 *     its free objects in the chunk of places where the lowest lies, and in the chunks behind until it is `least` of them:
 *     no more than may go until the class's next sample, which are so many fewer        (else: slow)
 *     these move from the freed word to the offered word
 *     slot.word = the offered word                                                       COMMIT
 * A chunk is a few objects when they are large: memory that was never touched stays so while freed objects below it can be
 * had. Bits that an aborted offer left in both words are not offered twice: this completes it.
 * A group with a few free objects only would bring us back after as many calls, at two mispredicted branches each.
 * POPCNT is younger than x86-64 (2008): where it is missing, the heartbeat stays at 0 and this always ends in the slow
 * path before it gets there.
 * Enters with RDI = bytes, RCX = class doubled, RDX and R9 the thread's id and cs pointers, R8 = block.
 */
.macro ADVANCE name, slow
.Ladvance_\name:
        SECTION_BEGIN advance_\name, %r9, %rax
        movslq  (ID), %rax
        movq    BRIMFUL_BLOCK_CONTEXTS+8(%r8,%rax,8), %rsi
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%rsi)
        jne     \slow
        cmpl    $0, BRIMFUL_CONTEXT_LOCK(%rsi)
        jne     \slow
        leaq    (%rcx,%rcx), %r11
        leaq    BRIMFUL_CONTEXT_QUEUES(%rsi,%r11,8), %r11
        movq    BRIMFUL_QUEUE_CURRENT(%r11), %r10
        testq   %r10, %r10
        jz      \slow
        movl    BRIMFUL_HEADER_OWNER(%r10), %r9d
        andl    $~BRIMFUL_OWNER_HAS_REMOTE, %r9d
        cmpl    %eax, %r9d
        jne     \slow
        subl    $BRIMFUL_BEATS_OF_A_GROUP, BRIMFUL_CONTEXT_HEARTBEAT(%rsi)
        js      \slow
        movl    BRIMFUL_QUEUE_SCAN(%r11), %eax
        movzbl  BRIMFUL_HEADER_LEAST(%r10), %r9d
        popcntq BRIMFUL_HEADER_WORDS-8(%r10,%rax,8), %rdx
        cmpl    %r9d, %edx
        jae     .Lfound_\name
        movzbl  BRIMFUL_HEADER_OPENED(%r10), %r11d
.Lscan_\name:
        cmpl    %r11d, %eax
        jae     \slow
        addl    $1, %eax
        popcntq BRIMFUL_HEADER_WORDS-8(%r10,%rax,8), %rdx
        cmpl    %r9d, %edx
        jb      .Lscan_\name
        leaq    (%rcx,%rcx), %r11
        leaq    BRIMFUL_CONTEXT_QUEUES(%rsi,%r11,8), %r11
        movl    %eax, BRIMFUL_QUEUE_SCAN(%r11)
.Lfound_\name:
        leaq    BRIMFUL_HEADER_WORDS-8(%r10,%rax,8), %r9
        subl    $1, %eax
        shll    $6, %eax
        imulq   BRIMFUL_BLOCK_SIZES(%r8,%rcx,4), %rax
        addq    BRIMFUL_HEADER_START(%r10), %rax
        leaq    (%rsi,%rcx,8), %rsi
        movq    %rcx, %r11
        movzbl  BRIMFUL_HEADER_LEAST(%r10), %r8d
        movzbl  BRIMFUL_HEADER_BATCH(%r10), %ecx
        leaq    brimful_zero_word(%rip), %r10
        movq    %r10, (%rsi)
        movq    %rax, 8(%rsi)
        movq    BRIMFUL_OFFERED_BEHIND(%r9), %rdx
        notq    %rdx
        andq    (%r9), %rdx
        movq    $-1, %r10
        shrq    %cl, %r10
        bsfq    %rdx, %rax
        subl    $64, %ecx
        andl    %ecx, %eax
        xchgl   %eax, %ecx
        shlq    %cl, %r10
        negl    %eax
        movl    %eax, %ecx
.Lchunk_\name:
        movq    %rdx, %rax
        andq    %r10, %rax
        popcntq %rax, %rax
        cmpl    %r8d, %eax
        jae     .Loffer_\name
        movq    %r10, %rax
        shlq    %cl, %rax
        orq     %r10, %rax
        cmpq    %r10, %rax
        movq    %rax, %r10
        jne     .Lchunk_\name
.Loffer_\name:
        andq    %rdx, %r10
        popcntq %r10, %rax
        cmpl    %eax, BRIMFUL_CONTEXT_SAMPLES(%rsi)
        jl      \slow
        subl    %eax, BRIMFUL_CONTEXT_SAMPLES(%rsi)
        xorq    %r10, %rdx
        orq     %r10, BRIMFUL_OFFERED_BEHIND(%r9)
        movq    %rdx, (%r9)
        addq    $BRIMFUL_OFFERED_BEHIND, %r9
        movq    %r9, (%rsi)
        SECTION_END advance_\name
        movq    %r11, %rcx
        leaq    brimful_block(%rip), %r8
        THREAD_AREA ID, %r9
        jmp     .Lclass_\name
.endm

/*
 * An object of a coarse class, of which one or two are offered at a time: what has been freed first, without an offer.
 * In words:
 *   start:
 *     context is not closed, nobody holds its lock, the slot leads to a group    (else: slow, or as any class)
 *     bit    = lowest set bit of the group's freed word                          (none: as any class)
 *     it is not the class's next sample, of which it is counted off              (else: slow)
 *     result = slot.base + bit * size
 *     the freed word without the bit                                             COMMIT
 * A slot leads to a group when an offer of it is complete, so no bit is in both words, and what the freed word has is free.
 * Who gives back free pages of the current slab holds the lock.
 * Enters with RDI = bytes, RDX and R9 the thread's id and cs pointers.
 */
.macro COARSE name, slow
        leaq    brimful_block(%rip), %r8
        leaq    (1 << BRIMFUL_MEDIUM_SHIFT) - 1(%rdi), %rax
        shrl    $BRIMFUL_MEDIUM_SHIFT, %eax
        movzbl  BRIMFUL_BLOCK_MEDIUM(%r8,%rax), %ecx
        SECTION_BEGIN coarse_\name, %r9, %rax
        movslq  (ID), %rax
        movq    BRIMFUL_BLOCK_CONTEXTS+8(%r8,%rax,8), %rsi
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%rsi)
        jne     \slow
        cmpl    $0, BRIMFUL_CONTEXT_LOCK(%rsi)
        jne     \slow
        movq    (%rsi,%rcx,8), %r10
        leaq    brimful_zero_word(%rip), %r11
        cmpq    %r11, %r10
        je      .Lclass_\name
        movq    -BRIMFUL_OFFERED_BEHIND(%r10), %r11
        bsfq    %r11, %rax
        jz      .Lclass_\name
        subl    $1, BRIMFUL_CONTEXT_HEARTBEAT(%rsi)
        js      \slow
        subl    $1, BRIMFUL_CONTEXT_SAMPLES(%rsi,%rcx,8)
        js      \slow
        btrq    %rax, %r11
        imulq   BRIMFUL_BLOCK_SIZES(%r8,%rcx,4), %rax
        addq    8(%rsi,%rcx,8), %rax
        movq    %r11, -BRIMFUL_OFFERED_BEHIND(%r10)
        SECTION_END coarse_\name
        ret
.endm

/*
 * A large block: the one of its length that was freed last. In words, with stack = context->run_stacks[granules]:
 *   start:
 *     context is not closed, the stack is not empty                              (else: miss)
 *     run = the stack's top; its bytes are taken off what is left until the next sample (below zero: miss, this is it)
 *     stack.count less one                                                       COMMIT
 *     run is ours: live, as long as was asked for in pages, and holds what its last user left
 * Enters with RDI = bytes, above BRIMFUL_MEDIUM_MAX, RDX and R9 the thread's id and cs pointers.
 */
.macro TAKE_RUN name, miss
        leaq    (1 << 16) - 1(%rdi), %rcx
        shrq    $16 - BRIMFUL_RUN_STACK_SHIFT, %rcx
        cmpq    $(BRIMFUL_RUN_STACK_MOST + 1) << BRIMFUL_RUN_STACK_SHIFT, %rcx
        jae     \miss
        andl    $-1 << BRIMFUL_RUN_STACK_SHIFT, %ecx
        leaq    brimful_block(%rip), %r8
        SECTION_BEGIN run_\name, %r9, %rax
        movslq  (ID), %rax
        movq    BRIMFUL_BLOCK_CONTEXTS+8(%r8,%rax,8), %rsi
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%rsi)
        jne     \miss
        leaq    (%rsi,%rcx), %r11
        movl    BRIMFUL_CONTEXT_RUN_STACKS(%r11), %ecx
        subl    $1, %ecx
        js      \miss
        movq    BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACK_RUNS(%r11,%rcx,8), %r10
        leaq    (1 << BRIMFUL_PAGE_SHIFT) - 1(%rdi), %rdx
        andq    $-1 << BRIMFUL_PAGE_SHIFT, %rdx
        subq    %rdx, BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACKS_UNTIL_SAMPLE(%rsi)
        js      \miss
        movl    %ecx, BRIMFUL_CONTEXT_RUN_STACKS(%r11)
        SECTION_END run_\name
        movq    BRIMFUL_HEADER_START(%r10), %rax
        movq    %rdx, BRIMFUL_HEADER_BYTES(%r10)
        movb    $1, BRIMFUL_RUN_DIRTY(%r10)
        movl    $BRIMFUL_OWNER_LIVE, BRIMFUL_HEADER_OWNER(%r10)
        ret
.endm

/* void* NAME(size_t bytes): a hit is the 20 instructions from the entry to the first RET. */
.macro ALLOCATE name, slow
FUNCTION \name
        THREAD_AREA ID, %r9
        cmpq    $BRIMFUL_SMALL_MAX, %rdi
        ja      .Lmedium_\name
        leaq    brimful_block(%rip), %r8
        movzbl  BRIMFUL_BLOCK_SMALL(%r8,%rdi), %ecx
.Lclass_\name:
        SECTION_BEGIN \name, %r9, %rax
        movslq  (ID), %rax
        movq    BRIMFUL_BLOCK_CONTEXTS+8(%r8,%rax,8), %rsi
        movq    (%rsi,%rcx,8), %r10
        movq    (%r10), %r11
        tzcntq  %r11, %rax
        btrq    %rax, %r11
        jnc     .Ladvance_\name
        imulq   BRIMFUL_BLOCK_SIZES(%r8,%rcx,4), %rax
        addq    8(%rsi,%rcx,8), %rax
        movq    %r11, (%r10)
        SECTION_END \name
        ret
.Lmedium_\name:
        cmpq    $BRIMFUL_COARSE_ABOVE, %rdi
        ja      .Lbig_\name
        leaq    brimful_block(%rip), %r8
        leaq    (1 << BRIMFUL_MEDIUM_SHIFT) - 1(%rdi), %rax
        shrl    $BRIMFUL_MEDIUM_SHIFT, %eax
        movzbl  BRIMFUL_BLOCK_MEDIUM(%r8,%rax), %ecx
        jmp     .Lclass_\name
.Lbig_\name:
        cmpq    $BRIMFUL_MEDIUM_MAX, %rdi
        ja      .Llarge_\name
        COARSE \name, \slow
.Llarge_\name:
        TAKE_RUN \name, \slow
        ADVANCE \name, \slow
FUNCTION_END \name
SECTION_ABORT \name, jmp \slow
SECTION_ABORT advance_\name, jmp \slow
SECTION_ABORT coarse_\name, jmp \slow
SECTION_ABORT run_\name, jmp \slow
.endm

ALLOCATE brimful_malloc, brimful_malloc_slow
#if BRIMFUL_INTERPOSE
ALLOCATE brimful_new, brimful_new_slow
        .hidden brimful_new
#endif

/*
 * RCX = one less than the next multiple of the alignment (classes/size_classes.h, aligned_request()), in words
 *     (bytes - 1) | (alignment - 1)
 * 0 is the largest number when 1 is taken off, so the caller finds it too large; what is no power of two is slow.
 */
.macro ONE_LESS_THAN_MULTIPLE alignment, bytes, slow
        leaq    -1(\alignment), %rax
        testq   \alignment, %rax
        jnz     \slow
        leaq    -1(\bytes), %rcx
        orq     %rax, %rcx
.endm

/* NAME(alignment, bytes), by registers: malloc of the next multiple, 7 instructions more than `allocate`. */
.macro ALIGNED name, allocate, alignment, bytes, slow
FUNCTION \name
        ONE_LESS_THAN_MULTIPLE \alignment, \bytes, \slow
        cmpq    brimful_hot+BRIMFUL_HOT_ALIGNED_SMALL(%rip), %rcx
        jae     .Lmedium_\name
        leaq    1(%rcx), %rdi
        THREAD_AREA ID, %r9
        leaq    brimful_block(%rip), %r8
        movzbl  BRIMFUL_BLOCK_SMALL+1(%r8,%rcx), %ecx
        jmp     .Lclass_\allocate
.Lmedium_\name:
        cmpq    brimful_hot+BRIMFUL_HOT_ALIGNED_MOST(%rip), %rcx
        jae     \slow
        leaq    1(%rcx), %rdi
        jmp     \allocate
FUNCTION_END \name
.endm

ALIGNED brimful_aligned_alloc, brimful_malloc, %rdi, %rsi, brimful_aligned_alloc_slow
ALIGNED brimful_memalign, brimful_malloc, %rdi, %rsi, brimful_memalign_slow
#if BRIMFUL_INTERPOSE
ALIGNED brimful_new_aligned, brimful_new, %rsi, %rdi, brimful_new_aligned_slow
        .hidden brimful_new_aligned
#endif

/* int brimful_posix_memalign(void** result, size_t alignment, size_t bytes): as brimful_aligned_alloc(). */
FUNCTION brimful_posix_memalign
        ONE_LESS_THAN_MULTIPLE %rsi, %rdx, brimful_posix_memalign_slow
        cmpq    brimful_hot+BRIMFUL_HOT_ALIGNED_MOST(%rip), %rcx
        jae     brimful_posix_memalign_slow
        cmpq    $8, %rsi
        jb      brimful_posix_memalign_slow
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        leaq    1(%rcx), %rdi
        call    brimful_malloc
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        jz      .Lno_memory
        movq    %rax, (%rdi)
        xorl    %eax, %eax
        ret
.Lno_memory:
        movl    $ENOMEM, %eax
        ret
FUNCTION_END brimful_posix_memalign

/* void* brimful_calloc(size_t count, size_t bytes): malloc, and memset() of what was asked for. */
FUNCTION brimful_calloc
        movq    %rdi, %rax
        mulq    %rsi
        jo      brimful_calloc_slow
        cmpq    $BRIMFUL_MEDIUM_MAX, %rax
        ja      brimful_calloc_slow
        pushq   %rax
        .cfi_adjust_cfa_offset 8
        movq    %rax, %rdi
        call    brimful_malloc
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        jz      .Lno_object
        movq    %rax, %rdi
        xorl    %esi, %esi
        jmp     memset@PLT
.Lno_object:
        ret
FUNCTION_END brimful_calloc

/* void brimful_free(void* pointer): a hit is 30 instructions, one of which keeps the pointer in R10:
 * the slow paths look everything up again, because a block that is freed twice at the same moment may be another by now. */
FUNCTION brimful_free
        movq    %rdi, %rax
        shrq    $16, %rax
        andq    brimful_hot+BRIMFUL_HOT_MASK(%rip), %rax
        movq    brimful_hot+BRIMFUL_HOT_TABLE(%rip), %rsi
        movq    (%rsi,%rax,8), %rsi
.Lfree_with_header:
        movq    %rdi, %r10
        subq    BRIMFUL_HEADER_START(%rsi), %rdi
        imulq   BRIMFUL_HEADER_MULTIPLIER(%rsi), %rdi
        rorq    $BRIMFUL_DIVISION_SHIFT, %rdi
        cmpq    $BRIMFUL_MAX_OBJECTS, %rdi
        jae     .Lother
        movq    %rdi, %rcx
        shrq    $6, %rcx
        THREAD_AREA ID, %r9
        SECTION_BEGIN free, %r9, %rax
        movl    (ID), %eax
        cmpl    %eax, BRIMFUL_HEADER_OWNER(%rsi)
        jne     .Lnot_owner
        movq    BRIMFUL_HEADER_WORDS(%rsi,%rcx,8), %r8
        movq    BRIMFUL_HEADER_OFFERED(%rsi,%rcx,8), %rax
        btq     %rdi, %rax
        jc      .Ltwice
        btsq    %rdi, %r8
        movq    %r8, BRIMFUL_HEADER_WORDS(%rsi,%rcx,8)
        SECTION_END free
        incq    %r8
        jbe     .Lunusual
        ret
.Lunusual:
        jc      .Ltwice
        /* The group is entirely free: one step nearer to an empty slab. A lost update only delays its release. */
        subl    $1, BRIMFUL_HEADER_COUNTDOWN(%rsi)
        jle     .Levent
        ret
.Levent:
        movq    %rsi, %rdi
        jmp     brimful_free_event
.Ltwice:
        movq    %r10, %rdi
        jmp     brimful_free_twice
.Lother:
.Lfree_slowly:
        movq    %r10, %rdi
        jmp     brimful_free_slow

/*
 * Somebody else's: into the magazine. Whatever is unusual goes the slow way: to the C++ of the same steps (slots/magazine.h).
 * In words, with context = block->contexts[1 + *id] (not closed), count = context->counts[class] (below its limit):
 *   start:
 *     the owner is another context, or nobody who shares; not free by its words and the others' mask
 *     context->until_look is counted down; the object's hash is in the filter (alone, both do no harm)
 *     context->magazines[class][count] = object
 *     context->counts[class] = count + 1                                      COMMIT
 * The filter has a bit for each of 512 hash values, set if such an object may lie in the magazine: so a free has to be
 * compared with the others once in about 30 times. A loop each time, of ever another length, is mispredicted each time,
 * and then the processor does not look ahead to the next object, whose lines are still on their way from another CPU.
 */
.Lnot_owner:
        SECTION_BEGIN free_foreign, %r9, %rax
        movslq  (ID), %rax
        movl    BRIMFUL_HEADER_OWNER(%rsi), %r8d
        cmpl    $BRIMFUL_OWNER_SHARED, %r8d
        jae     .Lno_context
        movl    %r8d, %r11d
        andl    $~BRIMFUL_OWNER_HAS_REMOTE, %r11d
        cmpl    %eax, %r11d
        je      .Lmarked
        testl   %eax, %eax
        js      .Lfree_slowly
        cmpl    $BRIMFUL_OWNER_DETACHED, %r8d
        jne     .Lforeign
        cmpl    %eax, BRIMFUL_HEADER_LAST_OWNER(%rsi)
        je      .Lfree_slowly
.Lforeign:
        movzwl  BRIMFUL_HEADER_GROUPS(%rsi), %r9d
        addl    $7, %r9d
        andl    $-8, %r9d
        addl    %ecx, %r9d
        movq    BRIMFUL_HEADER_WORDS(%rsi,%rcx,8), %r8
        orq     BRIMFUL_HEADER_OFFERED(%rsi,%rcx,8), %r8
        orq     BRIMFUL_HEADER_OFFERED(%rsi,%r9,8), %r8
        btq     %rdi, %r8
        jc      .Lfree_slowly
        leaq    brimful_block(%rip), %r8
        movzbl  BRIMFUL_HEADER_CLASS(%rsi), %ecx
        movq    BRIMFUL_BLOCK_CONTEXTS+8(%r8,%rax,8), %r11
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%r11)
        jne     .Lfree_slowly
        movl    BRIMFUL_CONTEXT_COUNTS(%r11,%rcx,4), %r9d
        movzbl  BRIMFUL_BLOCK_LIMITS(%r8,%rcx), %eax
        cmpl    %eax, %r9d
        jae     .Lfree_slowly
        subl    $1, BRIMFUL_CONTEXT_UNTIL_LOOK(%r11)
        js      .Lfree_slowly
        movl    %r10d, %eax
        shrl    $4, %eax
        imull   $BRIMFUL_FILTER_FACTOR, %eax, %eax
        shrl    $BRIMFUL_FILTER_SHIFT, %eax
        movl    %eax, %edx
        shrl    $6, %edx
        leal    (%rdx,%rcx,8), %edx
        movq    BRIMFUL_CONTEXT_FILTERS(%r11,%rdx,8), %r8
        btsq    %rax, %r8
        jc      .Lfree_slowly
        movq    %r8, BRIMFUL_CONTEXT_FILTERS(%r11,%rdx,8)
        leaq    (%r11,%rcx,4), %rdx
        shll    $BRIMFUL_MAGAZINE_SHIFT, %ecx
        addq    %r11, %rcx
        movq    %r10, BRIMFUL_CONTEXT_MAGAZINES(%rcx,%r9,8)
        addl    $1, %r9d
        movl    %r9d, BRIMFUL_CONTEXT_COUNTS(%rdx)
        SECTION_END free_foreign
        ret

/*
 * Perhaps a large block. It is claimed first, by one exchange: of two frees, one wins (pages/large_run.h); the other and
 * what is no live large block go the slow way. In words, with stack = context->run_stacks[the block's length]:
 *   start:
 *     context is not closed, the stack has room (one that is for no length has none)   (else: slow)
 *     it is not time to look at the clock
 *     stack[count] = run; the run was freed when the clock was looked at last            (alone, both do no harm)
 *     stack.count one more                                                              COMMIT
 */
.Lno_context:
        movl    $BRIMFUL_OWNER_LIVE, %eax
        movl    $BRIMFUL_OWNER_CACHED, %r8d
        lock cmpxchgl %r8d, BRIMFUL_HEADER_OWNER(%rsi)
        jne     .Lfree_slowly
        cmpq    %r10, BRIMFUL_HEADER_START(%rsi)
        jne     .Lclaimed
        leaq    brimful_block(%rip), %r8
        movzwl  BRIMFUL_RUN_STACK(%rsi), %ecx
        SECTION_BEGIN free_run, %r9, %rax
        movslq  (ID), %rax
        movq    BRIMFUL_BLOCK_CONTEXTS+8(%r8,%rax,8), %r11
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%r11)
        jne     .Lclaimed
        addq    %r11, %rcx
        movl    BRIMFUL_CONTEXT_RUN_STACKS(%rcx), %eax
        cmpl    BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACK_LIMIT(%rcx), %eax
        jae     .Lclaimed
        subl    $1, BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACKS_UNTIL_LOOK(%r11)
        js      .Lclaimed
        movq    BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACKS_NOW(%r11), %rdx
        movq    %rdx, BRIMFUL_RUN_STAMP(%rsi)
        movq    %rsi, BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACK_RUNS(%rcx,%rax,8)
        addl    $1, %eax
        movl    %eax, BRIMFUL_CONTEXT_RUN_STACKS(%rcx)
        SECTION_END free_run
        ret
.Lclaimed:
        movq    %rsi, %rdi
        movq    %r10, %rsi
        jmp     brimful_free_claimed

/* Ours, but others have freed objects of the slab: as the fast path, with a look at their mask. */
.Lmarked:
        SECTION_BEGIN free_marked, %r9, %rax
        movl    (ID), %eax
        orl     $BRIMFUL_OWNER_HAS_REMOTE, %eax
        cmpl    %eax, BRIMFUL_HEADER_OWNER(%rsi)
        jne     .Lfree_slowly
        movzwl  BRIMFUL_HEADER_GROUPS(%rsi), %r11d
        addl    $7, %r11d
        andl    $-8, %r11d
        addl    %ecx, %r11d
        movq    BRIMFUL_HEADER_OFFERED(%rsi,%rcx,8), %rax
        orq     BRIMFUL_HEADER_OFFERED(%rsi,%r11,8), %rax
        movq    BRIMFUL_HEADER_WORDS(%rsi,%rcx,8), %r8
        btq     %rdi, %rax
        jc      .Lfree_slowly
        btsq    %rdi, %r8
        movq    %r8, BRIMFUL_HEADER_WORDS(%rsi,%rcx,8)
        SECTION_END free_marked
        incq    %r8
        jbe     .Lunusual
        ret
FUNCTION_END brimful_free
SECTION_ABORT free, jmp .Lfree_slowly
SECTION_ABORT free_foreign, jmp .Lfree_slowly
SECTION_ABORT free_run, jmp .Lclaimed
SECTION_ABORT free_marked, jmp .Lfree_slowly

/* void brimful_free_sized(void* pointer, size_t bytes): the size must name the object's class, then it is a free. */
FUNCTION brimful_free_sized
        cmpq    $BRIMFUL_SMALL_MAX, %rsi
        ja      brimful_free_sized_slow
        leaq    brimful_block(%rip), %r8
        movzbl  BRIMFUL_BLOCK_SMALL(%r8,%rsi), %ecx
        shrl    $1, %ecx
        movq    %rsi, %rdx
        movq    %rdi, %rax
        shrq    $16, %rax
        andq    brimful_hot+BRIMFUL_HOT_MASK(%rip), %rax
        movq    brimful_hot+BRIMFUL_HOT_TABLE(%rip), %rsi
        movq    (%rsi,%rax,8), %rsi
        cmpb    %cl, BRIMFUL_HEADER_CLASS(%rsi)
        jne     .Lother_size
        jmp     .Lfree_with_header
.Lother_size:
        movq    %rdx, %rsi
        jmp     brimful_free_sized_slow
FUNCTION_END brimful_free_sized

/* To be zero for the start of an object of a slab: what index_of() would rotate to BRIMFUL_MAX_OBJECTS or more. */
#define NO_START ~((BRIMFUL_MAX_OBJECTS - 1) << BRIMFUL_DIVISION_SHIFT)

/*
 * size_t brimful_usable_size(const void* pointer): 12 instructions, nothing but loads. Whether the object is live is not
 * asked: its free() asks.
 */
FUNCTION brimful_usable_size
        movq    %rdi, %rax
        shrq    $16, %rax
        andq    brimful_hot+BRIMFUL_HOT_MASK(%rip), %rax
        movq    brimful_hot+BRIMFUL_HOT_TABLE(%rip), %rsi
        movq    (%rsi,%rax,8), %rsi
        movq    %rdi, %rax
        subq    BRIMFUL_HEADER_START(%rsi), %rax
        imulq   BRIMFUL_HEADER_MULTIPLIER(%rsi), %rax
        testq   $NO_START, %rax
        jnz     brimful_usable_size_slow
        movq    BRIMFUL_HEADER_BYTES(%rsi), %rax
        ret
FUNCTION_END brimful_usable_size

/*
 * void* brimful_realloc(void* pointer, size_t bytes): an object that stays where it is, because it holds `bytes` and
 * less than half of it would be unused, is 25 instructions. It must be live by the words of its slab, which say all there
 * is to know when a context owns it and others have freed none of it; else: slow.
 */
FUNCTION brimful_realloc
        movq    %rdi, %rax
        movq    %rdi, %rcx
        shrq    $16, %rcx
        andq    brimful_hot+BRIMFUL_HOT_MASK(%rip), %rcx
        movq    brimful_hot+BRIMFUL_HOT_TABLE(%rip), %rdx
        movq    (%rdx,%rcx,8), %rdx
        subq    BRIMFUL_HEADER_START(%rdx), %rdi
        imulq   BRIMFUL_HEADER_MULTIPLIER(%rdx), %rdi
        rorq    $BRIMFUL_DIVISION_SHIFT, %rdi
        cmpq    $BRIMFUL_MAX_OBJECTS, %rdi
        jae     .Lrealloc_slowly
        testl   $BRIMFUL_OWNER_HAS_REMOTE, BRIMFUL_HEADER_OWNER(%rdx)
        jnz     .Lrealloc_slowly
        movq    %rdi, %rcx
        shrq    $6, %rcx
        movq    BRIMFUL_HEADER_WORDS(%rdx,%rcx,8), %r8
        orq     BRIMFUL_HEADER_OFFERED(%rdx,%rcx,8), %r8
        btq     %rdi, %r8
        jc      .Lrealloc_slowly
        movq    BRIMFUL_HEADER_BYTES(%rdx), %rcx
        subq    %rsi, %rcx
        jb      .Lrealloc_slowly
        cmpq    %rsi, %rcx
        jae     .Lrealloc_slowly
        ret
.Lrealloc_slowly:
        movq    %rax, %rdi
        jmp     brimful_realloc_slow
FUNCTION_END brimful_realloc

/* The standard names stand on the fast paths themselves. */
#if BRIMFUL_INTERPOSE
.macro ALIAS target, names:vararg
        .irp    name, \names
        .globl  \name
        .type   \name, @function
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

/* The C-callable sequences: arguments stay in RDI, RSI, RDX, RCX. */
/* void* brimful_seq_take(Context* context, uint64_t doubled_class) */
FUNCTION brimful_seq_take
        leaq    brimful_block(%rip), %rcx
        THREAD_AREA %r8, %r9
        SECTION_BEGIN take, %r9, %rax
        movl    (%r8), %eax
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%rdi)
        jne     .Lnothing
        movq    (%rdi,%rsi,8), %r10
        movq    (%r10), %r11
        bsfq    %r11, %rax
        jz      .Lnothing
        btrq    %rax, %r11
        imulq   BRIMFUL_BLOCK_SIZES(%rcx,%rsi,4), %rax
        addq    8(%rdi,%rsi,8), %rax
        movq    %r11, (%r10)
        SECTION_END take
        ret
.Lnothing:
        xorl    %eax, %eax
        ret
FUNCTION_END brimful_seq_take
        .pushsection .text.brimful_abort, "ax", @progbits
.Ltake_aborted:
        xorl    %eax, %eax
        ret
        .popsection
SECTION_ABORT take, jmp .Ltake_aborted

/* void* brimful_seq_take_freed(Context* context, uint64_t doubled_class): as COARSE, which counts heartbeats besides. */
FUNCTION brimful_seq_take_freed
        leaq    brimful_block(%rip), %rcx
        leaq    brimful_zero_word(%rip), %rdx
        THREAD_AREA %r8, %r9
        SECTION_BEGIN take_freed, %r9, %rax
        movl    (%r8), %eax
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%rdi)
        jne     .Lnothing
        cmpl    $0, BRIMFUL_CONTEXT_LOCK(%rdi)
        jne     .Lnothing
        movq    (%rdi,%rsi,8), %r10
        cmpq    %rdx, %r10
        je      .Lnothing
        movq    -BRIMFUL_OFFERED_BEHIND(%r10), %r11
        bsfq    %r11, %rax
        jz      .Lnothing
        subl    $1, BRIMFUL_CONTEXT_SAMPLES(%rdi,%rsi,8)
        js      .Lnothing
        btrq    %rax, %r11
        imulq   BRIMFUL_BLOCK_SIZES(%rcx,%rsi,4), %rax
        addq    8(%rdi,%rsi,8), %rax
        movq    %r11, -BRIMFUL_OFFERED_BEHIND(%r10)
        SECTION_END take_freed
        ret
FUNCTION_END brimful_seq_take_freed
SECTION_ABORT take_freed, jmp .Ltake_aborted

/* The others answer with arch::Outcome in RAX. */

        .pushsection .text.brimful_abort, "ax", @progbits
.Laborted:
        movl    $2, %eax
        ret
        .popsection

        .section .text.brimful_outcome, "ax", @progbits
.Lother_context:
        movl    $1, %eax
        ret
.Lrefused:
        movl    $3, %eax
        ret
        .text

/* Outcome brimful_seq_free(Header* slab, uint64_t index, uint32_t mark) */
FUNCTION brimful_seq_free
        movq    %rsi, %rcx
        shrq    $6, %rcx
        movl    %edx, %r10d
        THREAD_AREA %r8, %r9
        SECTION_BEGIN seq_free, %r9, %rax
        movl    (%r8), %eax
        orl     %r10d, %eax
        cmpl    %eax, BRIMFUL_HEADER_OWNER(%rdi)
        jne     .Lother_context
        movq    BRIMFUL_HEADER_WORDS(%rdi,%rcx,8), %rdx
        movq    BRIMFUL_HEADER_OFFERED(%rdi,%rcx,8), %rax
        btq     %rsi, %rax
        jc      .Lset_before
        btsq    %rsi, %rdx
        movq    %rdx, BRIMFUL_HEADER_WORDS(%rdi,%rcx,8)
        SECTION_END seq_free
        jc      .Lset_before
        xorl    %eax, %eax
        incq    %rdx
        jz      .Lgroup_free
        ret
.Lset_before:
        movl    $4, %eax
        ret
.Lgroup_free:
        movl    $5, %eax
        ret
FUNCTION_END brimful_seq_free
SECTION_ABORT seq_free, jmp .Laborted

/* Outcome brimful_seq_store32(Context* context, uint32_t* address, uint32_t value) */
FUNCTION brimful_seq_store32
        THREAD_AREA %r8, %r9
        SECTION_BEGIN store32, %r9, %rax
        movl    (%r8), %eax
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%rdi)
        jne     .Lother_context
        movl    %edx, (%rsi)
        SECTION_END store32
        xorl    %eax, %eax
        ret
FUNCTION_END brimful_seq_store32
SECTION_ABORT store32, jmp .Laborted

/* Outcome brimful_seq_or(Context* context, uint64_t* word, uint64_t mask) */
FUNCTION brimful_seq_or
        THREAD_AREA %r8, %r9
        SECTION_BEGIN or, %r9, %rax
        movl    (%r8), %eax
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%rdi)
        jne     .Lother_context
        movq    (%rsi), %rax
        testq   %rdx, %rax
        jnz     .Lset_before
        orq     %rdx, %rax
        movq    %rax, (%rsi)
        SECTION_END or
        xorl    %eax, %eax
        ret
FUNCTION_END brimful_seq_or
SECTION_ABORT or, jmp .Laborted

/* Outcome brimful_seq_install(Context* context, Slot* slot, uint64_t* word, uint64_t base, uint64_t places) */
FUNCTION brimful_seq_install
        movq    %r8, %r11
        leaq    brimful_zero_word(%rip), %r10
        THREAD_AREA %r8, %r9
        SECTION_BEGIN install, %r9, %rax
        movl    (%r8), %eax
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%rdi)
        jne     .Lother_context
        movq    %r10, (%rsi)
        movq    %rcx, 8(%rsi)
        movq    BRIMFUL_OFFERED_BEHIND(%rdx), %rax
        notq    %rax
        andq    (%rdx), %rax
        andq    %rax, %r11
        xorq    %r11, %rax
        orq     %r11, BRIMFUL_OFFERED_BEHIND(%rdx)
        movq    %rax, (%rdx)
        addq    $BRIMFUL_OFFERED_BEHIND, %rdx
        movq    %rdx, (%rsi)
        SECTION_END install
        xorl    %eax, %eax
        ret
FUNCTION_END brimful_seq_install
SECTION_ABORT install, jmp .Laborted

/* Outcome brimful_seq_empty(Context* context, Slot* slot) */
FUNCTION brimful_seq_empty
        leaq    brimful_zero_word(%rip), %r10
        THREAD_AREA %r8, %r9
        SECTION_BEGIN empty, %r9, %rax
        movl    (%r8), %eax
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%rdi)
        jne     .Lother_context
        movq    %r10, (%rsi)
        SECTION_END empty
        xorl    %eax, %eax
        ret
FUNCTION_END brimful_seq_empty
SECTION_ABORT empty, jmp .Laborted

/* Outcome brimful_seq_magazine_push(Context* context, uint64_t size_class, uint64_t object) */
FUNCTION brimful_seq_magazine_push
        movl    %edx, %eax
        shrl    $4, %eax
        imull   $BRIMFUL_FILTER_FACTOR, %eax, %eax
        shrl    $BRIMFUL_FILTER_SHIFT, %eax
        movl    %eax, %r11d
        shrl    $6, %r11d
        leaq    (%r11,%rsi,8), %r11
        movl    %eax, %r10d
        leaq    brimful_block(%rip), %rcx
        movzbl  BRIMFUL_BLOCK_LIMITS(%rcx,%rsi), %ecx
        THREAD_AREA %r8, %r9
        SECTION_BEGIN magazine_push, %r9, %rax
        movl    (%r8), %eax
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%rdi)
        jne     .Lother_context
        movl    BRIMFUL_CONTEXT_COUNTS(%rdi,%rsi,4), %eax
        cmpl    %ecx, %eax
        jae     .Lrefused
        movq    BRIMFUL_CONTEXT_FILTERS(%rdi,%r11,8), %rcx
        btsq    %r10, %rcx
        movq    %rsi, %r8
        leaq    (%rdi,%rsi,4), %rsi
        jnc     .Lnew
        movl    %eax, %r10d
        movq    %r8, %r9
        shlq    $BRIMFUL_MAGAZINE_SHIFT, %r9
        addq    %rdi, %r9
.Lcompare:
        subl    $1, %r10d
        jb      .Lnew
        cmpq    BRIMFUL_CONTEXT_MAGAZINES(%r9,%r10,8), %rdx
        je      .Lset_before
        jmp     .Lcompare
.Lnew:
        movq    %rcx, BRIMFUL_CONTEXT_FILTERS(%rdi,%r11,8)
        shlq    $BRIMFUL_MAGAZINE_SHIFT, %r8
        addq    %r8, %rdi
        movq    %rdx, BRIMFUL_CONTEXT_MAGAZINES(%rdi,%rax,8)
        addl    $1, %eax
        movl    %eax, BRIMFUL_CONTEXT_COUNTS(%rsi)
        SECTION_END magazine_push
        xorl    %eax, %eax
        ret
FUNCTION_END brimful_seq_magazine_push
SECTION_ABORT magazine_push, jmp .Laborted

/* Copies the words at `words`(R10), whose count is at `count``place`, to (RDX) and commits a count of 0: ends section and function. */
.macro TAKE_ALL name, count, place, words
        movl    \count\place, %ecx
        movl    %ecx, %r11d
.Lcopy_\name:
        subl    $1, %r11d
        jb      .Lcopied_\name
        movq    \words(%r10,%r11,8), %rax
        movq    %rax, (%rdx,%r11,8)
        jmp     .Lcopy_\name
.Lcopied_\name:
        movl    $0, \count\place
        SECTION_END \name
        movl    %ecx, %edx
        xorl    %eax, %eax
        ret
.endm

/* Answer brimful_seq_magazine_take(Context* context, uint64_t size_class, uint64_t* into): value in RDX */
FUNCTION brimful_seq_magazine_take
        movq    %rsi, %r10
        shlq    $BRIMFUL_MAGAZINE_SHIFT, %r10
        addq    %rdi, %r10
        THREAD_AREA %r8, %r9
        SECTION_BEGIN magazine_take, %r9, %rax
        movl    (%r8), %eax
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%rdi)
        jne     .Lother_context
        TAKE_ALL magazine_take, BRIMFUL_CONTEXT_COUNTS, "(%rdi,%rsi,4)", BRIMFUL_CONTEXT_MAGAZINES
FUNCTION_END brimful_seq_magazine_take
SECTION_ABORT magazine_take, jmp .Laborted

/* Outcome brimful_seq_magazine_forget(Context* context, uint64_t size_class) */
FUNCTION brimful_seq_magazine_forget
        movq    %rsi, %r10
        shlq    $6, %r10
        addq    %rdi, %r10
        pxor    %xmm0, %xmm0
        THREAD_AREA %r8, %r9
        SECTION_BEGIN magazine_forget, %r9, %rax
        movl    (%r8), %eax
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%rdi)
        jne     .Lother_context
        cmpl    $0, BRIMFUL_CONTEXT_COUNTS(%rdi,%rsi,4)
        jne     .Lrefused
        movaps  %xmm0, BRIMFUL_CONTEXT_FILTERS(%r10)
        movaps  %xmm0, BRIMFUL_CONTEXT_FILTERS+16(%r10)
        movaps  %xmm0, BRIMFUL_CONTEXT_FILTERS+32(%r10)
        movaps  %xmm0, BRIMFUL_CONTEXT_FILTERS+48(%r10)
        SECTION_END magazine_forget
        xorl    %eax, %eax
        ret
FUNCTION_END brimful_seq_magazine_forget
SECTION_ABORT magazine_forget, jmp .Laborted

/* Answer brimful_seq_runs_take(Context* context, uint64_t granules, Run** into): value in RDX */
FUNCTION brimful_seq_runs_take
        movq    %rsi, %r10
        shlq    $BRIMFUL_RUN_STACK_SHIFT, %r10
        addq    %rdi, %r10
        THREAD_AREA %r8, %r9
        SECTION_BEGIN runs_take, %r9, %rax
        movl    (%r8), %eax
        cmpl    %eax, BRIMFUL_CONTEXT_ACTIVE_ID(%rdi)
        jne     .Lother_context
        TAKE_ALL runs_take, BRIMFUL_CONTEXT_RUN_STACKS, "(%r10)", BRIMFUL_CONTEXT_RUN_STACKS+BRIMFUL_RUN_STACK_RUNS
FUNCTION_END brimful_seq_runs_take
SECTION_ABORT runs_take, jmp .Laborted

/* void* brimful_take_run(size_t bytes) */
FUNCTION brimful_take_run
        THREAD_AREA ID, %r9
        TAKE_RUN take_run, .Lno_run
.Lno_run:
        xorl    %eax, %eax
        ret
FUNCTION_END brimful_take_run
SECTION_ABORT run_take_run, jmp .Lno_run

        .hidden brimful_seq_runs_take, brimful_take_run
        .hidden brimful_seq_take, brimful_seq_take_freed, brimful_seq_free, brimful_seq_store32, brimful_seq_or, brimful_seq_install
        .hidden brimful_seq_empty
        .hidden brimful_seq_magazine_push, brimful_seq_magazine_take, brimful_seq_magazine_forget

        .section .data.rel.ro.brimful_rseq, "aw", @progbits
        .globl  brimful_rseq_sections_end
        .hidden brimful_rseq_sections_end
brimful_rseq_sections_end:

        .section .note.GNU-stack, "", @progbits
