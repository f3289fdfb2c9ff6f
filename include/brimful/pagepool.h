/* SPDX-License-Identifier: MIT
 *
 * Page pool: small blocks in pages that come and go one at a time. xvmalloc's design (Gupta, compcache, 2009; the allocator
 * of Linux' ramzswap until zsmalloc) in user space: TLSF's two-level lists, but a block never crosses a page, free blocks
 * are linked by page and offset, headers are 4 bytes, and a page without a live block is given back at once.
 *
 * Good for blocks below half a page: two blocks share a page up to page_bytes / 2 - 12 bytes, and above that each has a page
 * of its own. docs/guide/pools.md says where it wins, docs/design/0021-page-pool.md how it works. Thread-safe: one lock a pool. errno
 * is never touched. Part of libbrimful-pools.a; needs no operating system.
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

/* A pool that takes its own memory, too, from `host` (brimful_pool_host_linux(), or your own table): two pages now, and 16
 * bytes for each page of blocks, a page at a time. NULL: the table is not usable (its size, page_bytes, a missing
 * get_pages or give_pages, one of wait and wake without the other), or no page is left. */
brimful_page_pool* brimful_page_pool_create(const struct brimful_pool_host* host);

/* Gives every page back, live blocks or not. NULL: nothing happens. No other thread may be inside a call. O(pages). */
void brimful_page_pool_destroy(brimful_page_pool* pool);

/* At least `bytes` bytes, aligned to BRIMFUL_PAGE_POOL_ALIGNMENT, inside one page; 0 bytes give a block of their own. The
 * content is anything. NULL: more than brimful_page_pool_most_bytes(), or no page is left. Takes bytes + 4 rounded up to 8,
 * at least 16, out of the smallest free block that is large enough (best fit). O(1), and one get_pages() under the lock when
 * none is, another when the pool's table of pages grows as well. */
void* brimful_page_pool_malloc(brimful_page_pool* pool, size_t bytes) __attribute__((alloc_size(2)));

/* Gives a block back and joins it with free neighbours; its page goes back to the host, after the unlock, when nothing else
 * lives in it. Returns true for that, and for a NULL pointer, for which nothing happens. Returns false, and changes nothing,
 * when the pointer is no live block of this pool. Found always: memory that is not the pool's (it is not read), a misaligned
 * pointer, and a double free as long as the memory was not handed out again. Found unless what is written there imitates
 * a header and both its neighbours: a pointer into a live block, and a damaged header. O(1) on average (a hash of the
 * page's address decides whether it is the pool's). */
bool brimful_page_pool_free(brimful_page_pool* pool, void* pointer);

/* Bytes that may be used of a live block: what was asked for, or up to 15 more (0 bytes: 12 or 20). 0 for NULL. Any other
 * pointer is undefined. Takes no lock. */
size_t brimful_page_pool_usable_size(const brimful_page_pool* pool, const void* pointer);

/* The largest request that can succeed: page_bytes - 12. */
size_t brimful_page_pool_most_bytes(const brimful_page_pool* pool);

struct brimful_page_pool_stats {
  size_t size;                         /* set by the caller: sizeof(struct brimful_page_pool_stats) */
  size_t pages;                        /* pages that hold blocks now */
  size_t peak_pages;                   /* the most there have been */
  size_t metadata_bytes;               /* pages of the pool's own, bytes; not in `pages` */
  size_t live_blocks;                  /* blocks that were not freed */
  size_t used;                         /* bytes in them, headers with them */
  size_t free_blocks;                  /* pieces that the rest of the pages is in */
  uint64_t gets;                       /* pages for blocks that the host gave so far */
  uint64_t gives;                      /* of those: given back */
  struct brimful_pool_lock_stats lock; /* of the pool's one lock */
};
/* Leaves *into alone when its size is too small. Takes the lock; O(1). */
void brimful_page_pool_get_stats(brimful_page_pool* pool, struct brimful_page_pool_stats* into);

/* Looks at every invariant under the lock: O(blocks). NULL, or the name of the first that is broken (a sentence, static) and,
 * in *where unless that is NULL, the address that breaks it. Never follows a pointer out of the pool, whatever was
 * written over the pages of its blocks. */
const char* brimful_page_pool_check(brimful_page_pool* pool, const void** where);

#if defined(__cplusplus)
}
#endif

#endif /* BRIMFUL_PAGEPOOL_H */
