/* SPDX-License-Identifier: MIT
 *
 * Page pool: small blocks in pages that come and go one at a time. xvmalloc's design (Gupta, compcache, 2009; the allocator
 * of Linux' ramzswap until zsmalloc) in user space: TLSF's two-level lists, but a block never crosses a page, free blocks
 * are linked by page number and offset, headers are 4 bytes, and a page without a live block is given back at once.
 *
 * Good for blocks well below half a page; see docs/guide/pools.md for where it wins. Thread-safe: one lock a pool. errno is never
 * touched. Part of libbrimful-pools.a; needs no operating system.
 */
#ifndef BRIMFUL_PAGEPOOL_H
#define BRIMFUL_PAGEPOOL_H

#include <stdbool.h>

#include <brimful/pool_host.h>

#if defined(__cplusplus)
extern "C" {
#endif

#define BRIMFUL_PAGE_POOL_ALIGNMENT ((size_t)8)

typedef struct brimful_page_pool brimful_page_pool;

/* A pool that takes its own memory, too, from `host` (brimful_pool_host_linux(), or your own table). NULL: the table is
 * not usable (page_bytes, a missing call), or no page is left. */
brimful_page_pool* brimful_page_pool_create(const struct brimful_pool_host* host);

/* Gives every page back, live blocks or not. NULL: nothing happens. No other thread may be inside a call. O(pages). */
void brimful_page_pool_destroy(brimful_page_pool* pool);

/* At least `bytes` bytes, aligned to BRIMFUL_PAGE_POOL_ALIGNMENT, inside one page; 0 bytes give a block of their own. NULL: more
 * than brimful_page_pool_most_bytes(), or no page is left. O(1), and one get_pages() when no page has room. */
void* brimful_page_pool_malloc(brimful_page_pool* pool, size_t bytes) __attribute__((alloc_size(2)));

/* Gives a block back and joins it with free neighbours; its page goes back to the host when nothing else lives in it. NULL
 * pointer: nothing happens. Returns false, and changes nothing, when the pointer is no live block of this pool
 * as far as its page and header tell (another's memory, a double free before the memory was used again). O(1). */
bool brimful_page_pool_free(brimful_page_pool* pool, void* pointer);

/* Bytes that may be used of a live block; 0 for NULL. */
size_t brimful_page_pool_usable_size(const brimful_page_pool* pool, const void* pointer);

/* The largest request that can succeed: page_bytes without the headers. */
size_t brimful_page_pool_most_bytes(const brimful_page_pool* pool);

struct brimful_page_pool_stats {
  size_t size;                         /* set by the caller: sizeof(struct brimful_page_pool_stats) */
  size_t pages;                        /* pages that hold blocks now */
  size_t peak_pages;                   /* the most there have been */
  size_t metadata_bytes;               /* pages of the pool's own, bytes */
  size_t live_blocks;                  /* blocks that were not freed */
  size_t used;                         /* bytes in them, headers with them */
  size_t free_blocks;                  /* pieces that the rest of the pages is in */
  uint64_t gets;                       /* pages asked of the host so far, and got */
  uint64_t gives;                      /* pages given back so far */
  struct brimful_pool_lock_stats lock; /* of the pool's one lock */
};
/* Takes the lock; O(1). */
void brimful_page_pool_get_stats(brimful_page_pool* pool, struct brimful_page_pool_stats* into);

/* Looks at every invariant under the lock: O(blocks). NULL, or the name of the first that is broken and in *where, unless that is
 * NULL, the address that breaks it. */
const char* brimful_page_pool_check(brimful_page_pool* pool, const void** where);

#if defined(__cplusplus)
}
#endif

#endif /* BRIMFUL_PAGEPOOL_H */
