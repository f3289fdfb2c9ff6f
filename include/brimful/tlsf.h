/* SPDX-License-Identifier: MIT
 *
 * TLSF: a memory pool for real-time work, over memory you own. Each call but those marked otherwise takes constant time,
 * whatever the pool's size and fill: the free block is found by two bitmaps, never by a walk. A freed block is joined with
 * its free neighbours by the next call that frees or that needs its memory (in a growable pool, and in
 * libbrimful-pools-checked.a, by the free itself): no request fails for want of joining.
 *
 * Source: Masmano, Ripoll, Crespo, Real, "TLSF: a New Dynamic Memory Allocator for Real-Time Systems", ECRTS 2004.
 *
 * A pool is not thread-safe: one thread at a time (or <brimful/tlsf_lock.h>, the same calls under a lock of yours).
 * Different pools share nothing. errno is never touched. Part of libbrimful-pools.a; needs no operating system.
 *
 * Blocks are aligned to BRIMFUL_TLSF_ALIGNMENT, carry one word in front (8 bytes), and hold at least 3 words. A request
 * of n bytes takes n + 8 bytes from the pool, rounded up to 16, at least 32; 16 more where the rest would be too short
 * for a block. The largest request is BRIMFUL_TLSF_MOST_BYTES - 64.
 */
#ifndef BRIMFUL_TLSF_H
#define BRIMFUL_TLSF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

#define BRIMFUL_TLSF_ALIGNMENT ((size_t)16)
#define BRIMFUL_TLSF_MOST_BYTES ((size_t)1 << 37)     /* of one region, and so of one block */
#define BRIMFUL_TLSF_MOST_ALIGNMENT ((size_t)1 << 30) /* of brimful_tlsf_aligned_alloc */

typedef struct brimful_tlsf brimful_tlsf;

/* Bytes that the pool's own structure takes at the front of what brimful_tlsf_create() is given: a constant of the build,
 * below 8 KiB. */
size_t brimful_tlsf_control_bytes(void);

/* A pool over `memory`, all of whose bytes it may use at once: the control structure first, the rest is the first region.
 * `memory` of any alignment; `bytes` at least brimful_tlsf_control_bytes() (a pool without a region then). NULL: too few
 * bytes, or `memory` is NULL. A rest of less than 64 bytes is no region. There is nothing to destroy: the memory is yours
 * again when you stop using the pool. O(1). */
brimful_tlsf* brimful_tlsf_create(void* memory, size_t bytes);

/* Called when the growable arena should have `bytes` bytes, a multiple of 4096. Returns the arena's start, of any alignment,
 * which must be the same every time while the arena is not empty (another one is taken for a refusal), or NULL to refuse:
 * growing then means that the request fails, shrinking that the arena stays as it is. 0: nothing is left in it, and the
 * pool does not touch it any more; what is returned does not matter. The steps are exact, so a program that allocates and
 * frees at a boundary is heard each time: keep some more if a step is dear. Must not call the pool. */
typedef void* brimful_tlsf_resize(void* context, size_t bytes);

/* A pool whose memory comes and goes: `control` holds the structure only (brimful_tlsf_control_bytes() bytes), the arena
 * begins empty, grows when no free block is large enough and shrinks when its last block is free. The call that resizes
 * takes as long as `resize` does. Regions may be added, too. NULL: `resize` is NULL or `bytes` too few. */
brimful_tlsf* brimful_tlsf_create_growable(void* control, size_t bytes, brimful_tlsf_resize* resize, void* context);

/* One more region for the pool, of any alignment, which must not overlap another. false: too small (below 64 bytes once its
 * start is aligned to 16) or larger than BRIMFUL_TLSF_MOST_BYTES. 32 bytes of it are overhead. Regions that touch are not
 * joined. O(1). */
bool brimful_tlsf_add_region(brimful_tlsf* pool, void* memory, size_t bytes);

/* Takes a region out again, named as it was added. false: a block in it is live, or there is no such region; nothing has
 * changed then. The region of brimful_tlsf_create() is named by the pool's own `memory`. The growable arena cannot be
 * removed. O(regions). */
bool brimful_tlsf_remove_region(brimful_tlsf* pool, void* memory);

/* At least `bytes` bytes, aligned to 16 (0: a block of its own), or NULL: no free block was found that is long enough. Good
 * fit: the request is rounded up by at most 1/32 and any free block of at least that serves it; before a much longer one
 * is cut up, four blocks that rounding passes by are looked at. At most 200 instructions (a golden test counts them), and
 * no call but resize(). */
void* brimful_tlsf_malloc(brimful_tlsf* pool, size_t bytes) __attribute__((alloc_size(2)));

/* `count` blocks of `bytes`, zeroed: O(count * bytes). NULL also when the product overflows. */
void* brimful_tlsf_calloc(brimful_tlsf* pool, size_t count, size_t bytes) __attribute__((alloc_size(2, 3)));

/* `alignment`: a power of two up to BRIMFUL_TLSF_MOST_ALIGNMENT; else NULL. Searches for `bytes` + `alignment` + 16; what is
 * skipped to reach the alignment goes back to the pool. */
void* brimful_tlsf_aligned_alloc(brimful_tlsf* pool, size_t alignment, size_t bytes) __attribute__((alloc_size(3)));

/* Resizes a block: shrinks in place, grows into a free block behind it or in front of it (then the content moves), grows
 * the arena if it is the last there, or else moves to another block. O(1) in place, at most 200 instructions; O(bytes)
 * when content moves. NULL pointer: malloc. 0 bytes: frees, returns NULL.
 * On failure NULL, and the block is as it was. Alignment beyond 16 is kept only while the block stays in place. */
void* brimful_tlsf_realloc(brimful_tlsf* pool, void* pointer, size_t bytes) __attribute__((alloc_size(3)));

/* Gives a block back. It is joined with free neighbours now or by the next call that frees or needs memory: no result but
 * addresses shows which. NULL: nothing happens. At most 200 instructions, and no call but resize(). */
void brimful_tlsf_free(brimful_tlsf* pool, void* pointer);

/* Bytes that may be used of a live block: what was asked for, or up to 31 more (24 or 40 for 0 bytes). NULL: 0. O(1). */
size_t brimful_tlsf_usable_size(const void* pointer);

/* Every region is one free block again; all pointers into the pool are void. O(regions). A growable arena is given back. */
void brimful_tlsf_reset(brimful_tlsf* pool);

/* What is in the pool, exactly. O(blocks): blocks are counted when you ask, so that malloc and free need not. As the walk, it
 * follows headers: of a pool that may be damaged ask brimful_tlsf_check() first. */
struct brimful_tlsf_stats {
  size_t size;          /* set by the caller: sizeof(struct brimful_tlsf_stats) */
  size_t total;         /* bytes of all regions, without the control structure */
  size_t used;          /* of those: in live blocks, their headers with them */
  size_t peak;          /* the most that `used` has been */
  size_t overhead;      /* at the ends of regions, never usable */
  size_t live_blocks;   /* blocks that were not freed */
  size_t free_blocks;   /* pieces that the free memory is in */
  size_t largest_free;  /* the largest request that malloc() serves now without growing */
  size_t regions;       /* the growable arena counts as one when it is not empty */
  double fragmentation; /* 1 - largest free block / all free bytes; 0: all free memory is one block, or none is free */
};
void brimful_tlsf_get_stats(const brimful_tlsf* pool, struct brimful_tlsf_stats* into);

/* Calls `visit` for each block of the pool in order of address within each region: its first usable byte, its usable bytes
 * and whether it is live. Stops when `visit` returns false. O(blocks). `visit` must not change the pool. */
typedef bool brimful_tlsf_visit(void* context, void* block, size_t bytes, bool live);
void brimful_tlsf_walk(const brimful_tlsf* pool, brimful_tlsf_visit* visit, void* context);

/* Looks at every invariant of the pool. O(blocks * regions). Returns NULL, or the name of the first invariant that is broken (a
 * sentence, static) and, in *where unless that is NULL, the address of the block or list that breaks it. Never follows a
 * pointer out of the pool. */
const char* brimful_tlsf_check(const brimful_tlsf* pool, const void** where);

/* Called when a call finds misuse: `what` names what should hold, as brimful_tlsf_check() does, `pointer` what was passed. Calls check only when the
 * library was compiled with BRIMFUL_TLSF_CHECK (libbrimful-pools-checked.a is); then a double free, a foreign or interior
 * pointer and a smashed header end here, before the pool is changed. The default prints nothing (there is nowhere to) and
 * traps. If the hook returns, the call does nothing (realloc: NULL). */
typedef void brimful_tlsf_misuse(brimful_tlsf* pool, const char* what, const void* pointer);
void brimful_tlsf_set_misuse(brimful_tlsf* pool, brimful_tlsf_misuse* hook);

/* How much to reserve: with `bytes` from here given to brimful_tlsf_create(), no request fails while at most demands[i].blocks
 * blocks of up to demands[i].bytes bytes are live, for every i, whatever the order of calls before. Holds for malloc,
 * calloc and aligned_alloc up to demands[i].alignment (0: 16); for realloc when one more block of that size is counted.
 * The proof is in docs/design/0020-tlsf.md. It is about twice the blocks' own bytes when all are of one size; with few large
 * and many small ones a pool for each needs much less. SIZE_MAX: not possible in one pool. O(count). */
struct brimful_tlsf_demand {
  size_t blocks;
  size_t bytes;
  size_t alignment;
};
size_t brimful_tlsf_bytes_for(const struct brimful_tlsf_demand* demands, size_t count);

#if defined(__cplusplus)
}
#endif

#endif /* BRIMFUL_TLSF_H */
