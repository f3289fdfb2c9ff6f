/* SPDX-License-Identifier: MIT
 *
 * Heaps: parts of brimful's memory that can be given back all at once. A heap is for memory whose life ends at one
 * moment: a request, a document, a compiler pass, a plugin. Its blocks are ordinary blocks: free(), realloc(),
 * malloc_usable_size() and the sized deletes take them, from any thread; and destroying the heap frees those that are
 * left, in time that depends on the pages they lie on and not on their number. Part of libbrimful.so and libbrimful.a;
 * works beside any other use of malloc. docs/guide/heaps.md says when a heap is the right thing.
 *
 * Every function is thread-safe. A heap has one lock: threads that share one wait for each other. Errors: NULL and
 * errno ENOMEM unless said otherwise; errno is kept otherwise.
 *
 * Misuse ends the process with one line on stderr and abort(), as everywhere in brimful, or what the option misuse says
 * (brimful/misuse.h): with misuse:warn the functions below return NULL with errno EINVAL, or EINVAL:
 *
 *   - a handle of a heap that was destroyed, or that never was one: always found, in every tier
 *   - a block of a heap freed twice: found at the second free, in every tier, also when the two frees race
 *   - free() or realloc() of a block of a destroyed heap ("use after destroy"): tier:hardened keeps the addresses of destroyed heaps
 *     out of use, the last GiB of them, and finds it; blocks above an eighth of the first window (4 GiB) are foreign pointers
 *     then. In the default tier the memory is free at once: it is reported as a double free while nobody else has that
 *     memory, and after that it is not found
 *
 * Signal handlers that interrupt the allocator itself get memory of no heap, and what they free of a heap counts as
 * live until the heap is next used.
 */
#ifndef BRIMFUL_HEAP_H
#define BRIMFUL_HEAP_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Names a heap. Not an address: a number with a generation, so that a stale one is known. Never NULL. */
typedef struct brimful_heap brimful_heap;

/* A heap without blocks. `limit_bytes`: the most that its live blocks may have together, counted at their usable sizes
 * (malloc_usable_size); 0: no limit. NULL, ENOMEM: no memory, or 1,048,575 heaps exist. Takes 1.5 KiB, and a 64-KiB slab
 * for each size class that it is asked for, of which a page at a time is touched. O(1). */
brimful_heap* brimful_heap_create(size_t limit_bytes) __attribute__((warn_unused_result));

/* Frees every block of the heap, and the heap. NULL: nothing happens. No other thread may use the heap or its blocks any
 * more. Returns 0, or EBUSY when it is some thread's current heap, the caller's included: then nothing has changed.
 * O(slabs + large blocks), and in tier:hardened a system call for each of them. */
int brimful_heap_destroy(brimful_heap* heap);

/* Blocks of the heap, for any thread; otherwise as malloc, calloc, aligned_alloc (`alignment`: a power of two, else EINVAL).
 * ENOMEM also when the heap's limit would be exceeded. */
void* brimful_heap_malloc(brimful_heap* heap, size_t bytes) __attribute__((malloc, alloc_size(2)));
void* brimful_heap_calloc(brimful_heap* heap, size_t count, size_t bytes) __attribute__((malloc, alloc_size(2, 3)));
void* brimful_heap_aligned_alloc(brimful_heap* heap, size_t alignment, size_t bytes)
    __attribute__((malloc, alloc_size(3)));

/* Resizes a block, in place where possible; a block that is not the heap's moves there. NULL pointer: malloc. 0 bytes:
 * frees, returns NULL. On failure the block is unchanged. Plain realloc() leaves a block in the heap that it is of, or of none.
 * A block that grows by moving counts twice against the limit until it has moved. */
void* brimful_heap_realloc(brimful_heap* heap, void* pointer, size_t bytes) __attribute__((alloc_size(3)));

/* From here on this thread's malloc, calloc, aligned_alloc and their kin, operator new and the brimful_* names among them,
 * allocate from the heap; NULL: as usual again. free() and realloc() go by the block, not by this. Ends by itself when
 * the thread ends. Other threads, those that this one creates among them, are not affected; after fork() the child's
 * thread keeps it. Returns 0; EAGAIN or ENOMEM: the C library can't tell us when the thread ends
 * (pthread_key_create(3)); EDEADLK from a signal handler that interrupted this thread in the allocator. O(1). To nest:
 *
 *   brimful_heap* before = brimful_heap_current();
 *   brimful_heap_set_current(mine); ... brimful_heap_set_current(before); */
int brimful_heap_set_current(brimful_heap* heap);

/* This thread's current heap, or NULL. */
brimful_heap* brimful_heap_current(void);

/* The heap that a live block is of; NULL: of none, or `pointer` is NULL. O(1). */
brimful_heap* brimful_heap_of(const void* pointer);

/* Changes the limit; 0: none. A limit below what is live refuses every request until enough is freed. Returns 0; EDEADLK
 * from a signal handler that interrupted this thread in the allocator. O(1). */
int brimful_heap_set_limit(brimful_heap* heap, size_t limit_bytes);

/* One heap's numbers. Later versions may add members at the end. */
struct brimful_heap_stats {
  size_t size;        /* set by the caller: sizeof(struct brimful_heap_stats) */
  size_t limit_bytes; /* 0: none */
  size_t live_bytes;  /* usable bytes of live blocks: what the limit is compared with */
  size_t peak_bytes;  /* the most that live_bytes ever was; see below */
  size_t held_bytes;  /* address space of slabs and large blocks */
  uint64_t live_blocks;
  uint64_t slabs;        /* that blocks of up to 32 KiB lie in */
  uint64_t large_blocks; /* above 32 KiB; of live_blocks */
  uint64_t refused;      /* requests that the limit refused */
};

/* Without a limit, a thread whose current heap it is holds up to 64 blocks or 16 KiB of each size class ready for malloc.
 * They count for peak_bytes, and for nothing else.
 *
 * Fills *into. Members that this library does not know are set to 0. Returns 0, or EINVAL when into->size is less than
 * that of the structure's first version, or EDEADLK as brimful_heap_set_limit(). O(1). */
int brimful_heap_get_stats(brimful_heap* heap, struct brimful_heap_stats* into);

#pragma GCC visibility pop

#if defined(__cplusplus)
}
#endif

#endif
