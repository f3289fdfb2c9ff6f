/* SPDX-License-Identifier: MIT
 *
 * What the page pool and the handle pool ask of whoever runs them: pages, and how to wait for a lock. Part of
 * libbrimful-pools.a, which needs neither an operating system nor libc beyond memcpy, memmove, memset and memcmp (which
 * every freestanding compiler asks for): firmware and kernels fill in the table themselves, programs on Linux take
 * brimful_pool_host_linux().
 */
#ifndef BRIMFUL_POOL_HOST_H
#define BRIMFUL_POOL_HOST_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* Copied by the pool at its creation; `context` must outlive the pool. The calls may come from any thread that uses the
 * pool, with at most one of the pool's locks held; they must not call the pool. */
struct brimful_pool_host {
  size_t size;       /* set by whoever fills in the table: sizeof(struct brimful_pool_host) */
  size_t page_bytes; /* what pages are: a power of two, 4096 ... 65536 */
  void* context;     /* handed to every call */

  /* `bytes`, a multiple of page_bytes, aligned to page_bytes; any content. NULL: none left. */
  void* (*get_pages)(void* context, size_t bytes);

  /* Takes back all of what one get_pages() gave. */
  void (*give_pages)(void* context, void* pages, size_t bytes);

  /* As futex(2): wait() returns some time after `*word` is no longer `expected`, or early; wake() wakes one waiter.
   * Both NULL: the pool's locks spin, which is right where each thread has a CPU of its own, and with one thread. */
  void (*wait)(void* context, uint32_t* word, uint32_t expected);
  void (*wake)(void* context, uint32_t* word);

  /* Nanoseconds of a clock that never goes back, to count how long locks are waited for. NULL: counted as 0. */
  uint64_t (*now_ns)(void* context);
};

/* Linux: mmap, munmap, futex and CLOCK_MONOTONIC. A static table. Keeps errno. A member of the archive of its own: a
 * program that does not name it does not link it. */
const struct brimful_pool_host* brimful_pool_host_linux(void);

/* How one lock of a pool was used since its creation. */
struct brimful_pool_lock_stats {
  uint64_t acquisitions; /* times taken */
  uint64_t contended;    /* of those: it was held, and the thread waited, spinning or asleep */
  uint64_t sleeps;       /* calls of wait() */
  uint64_t wait_ns;      /* time from the failed attempt until it was taken, nanoseconds */
};

#if defined(__cplusplus)
}
#endif

#endif /* BRIMFUL_POOL_HOST_H */
