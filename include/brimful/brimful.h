/* SPDX-License-Identifier: MIT
 *
 * brimful: a general-purpose memory allocator for Linux. Programs need none of this: libbrimful.so replaces malloc
 * and its family by being preloaded or linked. These names are for those who want brimful beside another malloc.
 *
 * Every function is thread-safe. Blocks may be freed by any thread. Errors: NULL and errno ENOMEM unless said
 * otherwise. A pointer that is not a live block's (freed twice, interior, foreign) ends the process with one line on
 * stderr and abort(). Cost: O(1) up to 32 KiB (20 instructions for malloc and 29 for free on a hit), else
 * O(log free runs) plus the system calls for memory that was never touched.
 */
#ifndef BRIMFUL_BRIMFUL_H
#define BRIMFUL_BRIMFUL_H

#include <stddef.h>

#if defined(__cplusplus)
extern "C" {
#endif

#pragma GCC visibility push(default)

/* At least `bytes` bytes, aligned to 16. 0 bytes give a block of their own. */
void* brimful_malloc(size_t bytes) __attribute__((malloc, alloc_size(1)));

/* Gives a block back. NULL: nothing happens. errno is kept. */
void brimful_free(void* pointer);

/* count * bytes zeroed bytes; an overflow of the product is ENOMEM. */
void* brimful_calloc(size_t count, size_t bytes) __attribute__((malloc, alloc_size(1, 2)));

/* Resizes a block, in place where possible. NULL pointer: malloc. 0 bytes: frees, returns NULL (as glibc). On failure
 * the block is unchanged. */
void* brimful_realloc(void* pointer, size_t bytes) __attribute__((alloc_size(2)));
void* brimful_reallocarray(void* pointer, size_t count, size_t bytes) __attribute__((alloc_size(2, 3)));

/* `alignment`: a power of two (else EINVAL), of any size; `bytes`: any. */
void* brimful_aligned_alloc(size_t alignment, size_t bytes) __attribute__((malloc, alloc_size(2)));

/* As aligned_alloc; an alignment that is no power of two is rounded up to one. */
void* brimful_memalign(size_t alignment, size_t bytes) __attribute__((malloc, alloc_size(2)));

/* Returns 0, EINVAL (alignment is no power of two or below sizeof(void*)) or ENOMEM. errno and, on failure, *result
 * are kept. */
int brimful_posix_memalign(void** result, size_t alignment, size_t bytes);

/* Bytes that may be used; constant for the block's life. NULL: 0. */
size_t brimful_usable_size(const void* pointer);

/* C23. A size of another size class is reported as misuse. */
void brimful_free_sized(void* pointer, size_t bytes);
void brimful_free_aligned_sized(void* pointer, size_t alignment, size_t bytes);

/* "0.1.0" */
const char* brimful_version(void);

/* With on_exhaustion:hook, called when the reserved address space is used up, with the size of the request in bytes:
 * nonzero lets the heap reserve more, zero makes the request fail. It runs under the heap's lock: it must not allocate.
 * NULL removes it. */
void brimful_set_exhaustion_hook(int (*hook)(size_t bytes));

#pragma GCC visibility pop

#if defined(__cplusplus)
}
#endif

#endif
