// SPDX-License-Identifier: MIT
//
// include/brimful/heap.h as a C program uses it, line by line: blocks of a heap are blocks like others, destroy takes
// those that are left, a thread's current heap, limits, statistics, forks. What must end the process runs in a child.
// glibc has none of this; there, everything is skipped.
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>

#pragma weak brimful_get_lock_stats
#pragma weak brimful_get_memory_stats
#pragma weak brimful_heap_create
#include "brimful/brimful.h"
#pragma weak brimful_heap_destroy
#pragma weak brimful_heap_malloc
#pragma weak brimful_heap_calloc
#pragma weak brimful_heap_aligned_alloc
#pragma weak brimful_heap_realloc
#pragma weak brimful_heap_set_current
#pragma weak brimful_heap_current
#pragma weak brimful_heap_of
#pragma weak brimful_heap_set_limit
#pragma weak brimful_heap_get_stats
#include "brimful/heap.h"

static int is_hardened(void) {
  const char* conf = getenv("BRIMFUL_CONF");
  return conf != NULL && strstr(conf, "hardened") != NULL;
}

static brimful_heap* new_heap(size_t limit) {
  brimful_heap* heap = brimful_heap_create(limit);
  CHECK(heap != NULL);
  return heap;
}

static struct brimful_heap_stats stats_of(brimful_heap* heap) {
  struct brimful_heap_stats stats = {.size = sizeof stats};
  CHECK_EQ(brimful_heap_get_stats(heap, &stats), 0);
  return stats;
}

// Sizes of every kind: small classes, the last class, granules, blocks above 1 MiB.
static const size_t kSizes[] = {0, 1, 16, 17, 100, 255, 1024, 1025, 4000, 32768, 32769, 65536, 200000, 3 << 20};
enum { kSizeCount = sizeof kSizes / sizeof kSizes[0] };

static void blocks_are_aligned_usable_and_their_heaps(void) {
  brimful_heap* heap = new_heap(0);
  void* blocks[kSizeCount];
  for (int i = 0; i < kSizeCount; ++i) {
    blocks[i] = brimful_heap_malloc(heap, opaque(kSizes[i]));
    CHECK_MSG(blocks[i] != NULL && (uintptr_t)blocks[i] % 16 == 0, "%zu bytes at %p", kSizes[i], blocks[i]);
    CHECK_GE(malloc_usable_size(blocks[i]), kSizes[i]);
    fill_pattern(blocks[i], malloc_usable_size(blocks[i]), (uint64_t)i);
    CHECK_PTR_EQ(brimful_heap_of(blocks[i]), heap);
  }
  for (int i = 0; i < kSizeCount; ++i) {
    size_t usable = malloc_usable_size(blocks[i]);
    CHECK_EQ(find_damage(blocks[i], usable, usable, (uint64_t)i), usable);
  }
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

static void ordinary_blocks_are_of_no_heap(void) {
  void* small = malloc(100);
  void* large = malloc(100000);
  CHECK_PTR_EQ(brimful_heap_of(small), NULL);
  CHECK_PTR_EQ(brimful_heap_of(large), NULL);
  CHECK_PTR_EQ(brimful_heap_of(NULL), NULL);
  free(small);
  free(large);
}

static void free_and_sized_free_take_blocks_of_heaps(void) {
  brimful_heap* heap = new_heap(0);
  errno = 4711;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kSizeCount; ++i) {
      void* block = brimful_heap_malloc(heap, kSizes[i]);
      memset(block, 1, kSizes[i]);
      if (round == 1 && free_sized != NULL && kSizes[i] != 0) {
        free_sized(block, kSizes[i]);
      } else {
        free(block);
      }
    }
  }
  CHECK_EQ(errno, 4711);
  CHECK_EQ(stats_of(heap).live_blocks, 0);
  CHECK_EQ(stats_of(heap).live_bytes, 0);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

static void calloc_gives_zeros_also_of_memory_that_was_used(void) {
  brimful_heap* heap = new_heap(0);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kSizeCount; ++i) {
      char* block = brimful_heap_calloc(heap, kSizes[i], 1);
      CHECK_EQ(find_nonzero(block, kSizes[i]), kSizes[i]);
      memset(block, 0x5A, kSizes[i]);
      free(block);
    }
  }
  errno = 0;
  CHECK_PTR_EQ(brimful_heap_calloc(heap, opaque(SIZE_MAX / 2), 3), NULL);
  CHECK_EQ(errno, ENOMEM);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

static void aligned_blocks_are_aligned(void) {
  brimful_heap* heap = new_heap(0);
  for (size_t alignment = 1; alignment <= 4 << 20; alignment *= 2) {
    for (size_t size = 1; size <= 100000; size = size * 10 + 7) {
      void* block = brimful_heap_aligned_alloc(heap, alignment, size);
      CHECK_MSG(block != NULL && (uintptr_t)block % alignment == 0, "%zu on %zu: %p", size, alignment, block);
      memset(block, 1, size);
      CHECK_PTR_EQ(brimful_heap_of(block), heap);
      if (alignment % 3 == 1) free(block);
    }
  }
  errno = 0;
  CHECK_PTR_EQ(brimful_heap_aligned_alloc(heap, opaque(48), 100), NULL);
  CHECK_EQ(errno, EINVAL);
  CHECK_PTR_EQ(brimful_heap_aligned_alloc(heap, 0, 100), NULL);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

// Steps that grow and shrink through all kinds of blocks, in place and not.
static void resize_through_all_sizes(brimful_heap* heap, int by_heap) {
  size_t size = 10;
  char* block = brimful_heap_malloc(heap, size);
  fill_pattern(block, size, 1);
  static const size_t steps[] = {100, 90, 5000, 40000, 39000, 80000, 3 << 20, 5 << 20, 1 << 20, 70000, 33000, 3000, 20};
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; ++i) {
    char* moved = by_heap ? brimful_heap_realloc(heap, block, steps[i]) : realloc(block, steps[i]);
    size_t kept = size < steps[i] ? size : steps[i];
    CHECK(moved != NULL);
    CHECK_MSG(find_damage(moved, kept, size, 1) == kept, "from %zu to %zu", size, steps[i]);
    CHECK_PTR_EQ(brimful_heap_of(moved), heap);
    block = moved;
    size = steps[i];
    fill_pattern(block, size, 1);
  }
  struct brimful_heap_stats stats = stats_of(heap);
  CHECK_EQ(stats.live_blocks, 1);
  CHECK_EQ(stats.live_bytes, malloc_usable_size(block));
  free(block);
}

static void realloc_leaves_a_block_in_its_heap(void) {
  brimful_heap* heap = new_heap(0);
  resize_through_all_sizes(heap, 0);
  resize_through_all_sizes(heap, 1);
  CHECK_EQ(stats_of(heap).live_blocks, 0);
  CHECK_PTR_EQ(brimful_heap_realloc(heap, brimful_heap_realloc(heap, NULL, 100), 0), NULL);
  CHECK_EQ(stats_of(heap).live_blocks, 0);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

static void heap_realloc_moves_a_block_that_is_not_the_heaps(void) {
  brimful_heap* heap = new_heap(0);
  brimful_heap* other = new_heap(0);
  for (int i = 2; i < kSizeCount; ++i) {
    char* block = i % 2 ? malloc(kSizes[i]) : brimful_heap_malloc(other, kSizes[i]);
    fill_pattern(block, kSizes[i], 7);
    char* moved = brimful_heap_realloc(heap, block, kSizes[i] + 1);
    CHECK_PTR_EQ(brimful_heap_of(moved), heap);
    CHECK_EQ(find_damage(moved, kSizes[i], kSizes[i], 7), kSizes[i]);
  }
  CHECK_EQ(stats_of(heap).live_blocks, kSizeCount - 2);
  CHECK_EQ(stats_of(other).live_blocks, 0);
  CHECK_EQ(brimful_heap_destroy(other), 0);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

enum { kMany = 20000 };
static void* many[kMany];

static void* free_every_second(void* first) {
  for (size_t i = (size_t)(uintptr_t)first; i < kMany; i += 2) free(many[i]);
  return NULL;
}

static void any_thread_frees_a_heaps_blocks(void) {
  brimful_heap* heap = new_heap(0);
  for (size_t i = 0; i < kMany; ++i) many[i] = brimful_heap_malloc(heap, 16 + i % 700);
  CHECK_EQ(stats_of(heap).live_blocks, kMany);
  pthread_t threads[2];
  for (size_t i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, free_every_second, (void*)(uintptr_t)i);
  for (size_t i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  struct brimful_heap_stats stats = stats_of(heap);
  CHECK_EQ(stats.live_blocks, 0);
  CHECK_LE(stats.slabs, 72);  // one for each class stays
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

static void destroy_gives_everything_back(void) {
  if (brimful_get_memory_stats == NULL) return;
  malloc_trim(0);
  long before = resident_kib();
  size_t live = mallinfo2().uordblks;
  brimful_heap* heap = new_heap(0);
  uint64_t state = 4;
  for (size_t i = 0; i < kMany; ++i) {
    size_t size = 16 + next_random(&state) % (i % 100 == 0 ? 100000 : 3000);
    memset(brimful_heap_malloc(heap, size), 1, size);
  }
  CHECK_GE(resident_kib() - before, 20 << 10);
  CHECK_GE(mallinfo2().uordblks - live, 20 << 20);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
  CHECK_LE(mallinfo2().uordblks, live + 4096);
  malloc_trim(0);
  CHECK_LE(resident_kib() - before, 2 << 10);
}

static void an_emptied_heap_keeps_little_and_works_on(void) {
  brimful_heap* heap = new_heap(0);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < kMany; ++i) memset(many[i] = brimful_heap_malloc(heap, 500), 1, 500);
    CHECK_GE(stats_of(heap).slabs, 100);
    for (size_t i = 0; i < kMany; ++i) free(many[i]);
    CHECK_LE(stats_of(heap).slabs, 1);
  }
  malloc_trim(0);
  CHECK_EQ(stats_of(heap).slabs, 0);
  CHECK_EQ(stats_of(heap).held_bytes, 0);
  free(brimful_heap_malloc(heap, 500));
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

static void a_limit_is_hard_and_freed_bytes_count_back(void) {
  brimful_heap* heap = new_heap(1 << 20);
  size_t count = 0;
  errno = 0;
  while (count < kMany && (many[count] = brimful_heap_malloc(heap, 1024)) != NULL) ++count;
  CHECK_EQ(count, 1024);
  CHECK_EQ(errno, ENOMEM);
  CHECK_EQ(stats_of(heap).live_bytes, 1 << 20);
  CHECK_GE(stats_of(heap).refused, 1);
  CHECK_PTR_EQ(brimful_heap_malloc(heap, 1), NULL);
  CHECK_PTR_EQ(brimful_heap_malloc(heap, 100000), NULL);
  CHECK_PTR_EQ(brimful_heap_calloc(heap, 1, 1), NULL);
  CHECK_PTR_EQ(brimful_heap_aligned_alloc(heap, 64, 1), NULL);
  errno = 0;
  CHECK_PTR_EQ(brimful_heap_realloc(heap, many[0], 5000), NULL);
  CHECK_EQ(errno, ENOMEM);
  free(many[--count]);
  many[count] = brimful_heap_malloc(heap, 1000);
  CHECK(many[count] != NULL);
  for (size_t i = 0; i <= count; ++i) free(many[i]);
  char* large = brimful_heap_malloc(heap, 600000);
  CHECK(large != NULL);
  CHECK_PTR_EQ(brimful_heap_malloc(heap, 600000), NULL);
  CHECK_PTR_EQ(realloc(large, 2 << 20), NULL);
  CHECK_EQ(stats_of(heap).live_bytes, malloc_usable_size(large));
  free(large);
  CHECK_EQ(stats_of(heap).live_bytes, 0);
  CHECK_EQ(stats_of(heap).peak_bytes, 1 << 20);
  CHECK_EQ(brimful_heap_set_limit(heap, 0), 0);
  CHECK(brimful_heap_malloc(heap, 2 << 20) != NULL);
  CHECK_EQ(brimful_heap_set_limit(heap, 100), 0);
  CHECK_EQ(stats_of(heap).limit_bytes, 100);
  CHECK_PTR_EQ(brimful_heap_malloc(heap, 16), NULL);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

static void the_current_heap_serves_every_name(void) {
  brimful_heap* heap = new_heap(0);
  void* before = malloc(100);
  CHECK_PTR_EQ(brimful_heap_current(), NULL);
  CHECK_EQ(brimful_heap_set_current(heap), 0);
  CHECK_PTR_EQ(brimful_heap_current(), heap);
  void* blocks[] = {malloc(100),
                    malloc(5000),
                    malloc(100000),
                    malloc(3 << 20),
                    calloc(10, 10),
                    calloc(1000, 100),
                    realloc(NULL, 50),
                    aligned_alloc(256, 100),
                    memalign(4096, 100),
                    valloc(100),
                    aligned_alloc(65536, 10),
                    brimful_malloc(100),
                    NULL};
  enum { kBlocks = sizeof blocks / sizeof blocks[0] };
  CHECK_EQ(posix_memalign(&blocks[kBlocks - 1], 64, 100), 0);
  for (size_t i = 0; i < kBlocks; ++i) {
    CHECK_MSG(brimful_heap_of(blocks[i]) == heap, "block %zu", i);
    memset(blocks[i], 1, malloc_usable_size(blocks[i]));
  }
  CHECK_EQ(stats_of(heap).live_blocks, kBlocks);
  // free() and realloc() go by the block.
  before = realloc(before, 100000);
  CHECK_PTR_EQ(brimful_heap_of(before), NULL);
  before = realloc(before, 10);
  CHECK_PTR_EQ(brimful_heap_of(before), NULL);
  free(before);
  for (size_t i = 0; i < kBlocks; i += 2) free(blocks[i]);
  CHECK_EQ(brimful_heap_set_current(NULL), 0);
  CHECK_PTR_EQ(brimful_heap_current(), NULL);
  void* after = malloc(100);
  CHECK_PTR_EQ(brimful_heap_of(after), NULL);
  for (size_t i = 1; i < kBlocks; i += 2) {
    blocks[i] = realloc(blocks[i], 20000);
    CHECK_PTR_EQ(brimful_heap_of(blocks[i]), heap);
    free(blocks[i]);
  }
  free(after);
  CHECK_EQ(stats_of(heap).live_blocks, 0);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

static void a_current_heap_at_its_limit_refuses_malloc(void) {
  brimful_heap* heap = new_heap(1000);
  CHECK_EQ(brimful_heap_set_current(heap), 0);
  errno = 0;
  CHECK_PTR_EQ(malloc(2000), NULL);
  CHECK_EQ(errno, ENOMEM);
  errno = 0;
  CHECK_PTR_EQ(malloc(100000), NULL);
  CHECK_EQ(errno, ENOMEM);
  errno = 0;
  CHECK_PTR_EQ(calloc(1, 100000), NULL);
  CHECK_EQ(errno, ENOMEM);
  CHECK(malloc(900) != NULL);
  CHECK_EQ(brimful_heap_set_current(NULL), 0);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

// Slabs that the thread owned before, others' and the heap's, freed in turns while it has a current heap.
static void ordinary_memory_works_beside_a_current_heap(void) {
  brimful_heap* heap = new_heap(0);
  size_t live = mallinfo2().uordblks;
  for (int round = 0; round < 5; ++round) {
    for (size_t i = 0; i < kMany; ++i) {
      if (i % 100 == 0) brimful_heap_set_current(i % 200 == 0 ? heap : NULL);
      many[i] = malloc(16 + i % 300);
      fill_pattern(many[i], 16 + i % 300, i);
    }
    for (size_t i = 0; i < kMany; ++i) {
      if (i % 77 == 0) brimful_heap_set_current(i % 2 == 0 ? heap : NULL);
      size_t size = 16 + i % 300;
      CHECK_EQ(find_damage(many[i], size, size, i), size);
      CHECK_EQ(brimful_heap_of(many[i]) == heap, i % 200 < 100);
      free(many[i]);
    }
  }
  CHECK_EQ(brimful_heap_set_current(NULL), 0);
  CHECK_EQ(stats_of(heap).live_blocks, 0);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
  CHECK_LE(mallinfo2().uordblks, live + 65536);  // what still lies in magazines counts as live
}

static void a_current_heap_cannot_be_destroyed(void) {
  brimful_heap* heap = new_heap(0);
  brimful_heap* other = new_heap(0);
  CHECK_EQ(brimful_heap_set_current(heap), 0);
  CHECK_EQ(brimful_heap_set_current(heap), 0);  // twice is once
  errno = 4711;
  CHECK_EQ(brimful_heap_destroy(heap), EBUSY);
  CHECK_EQ(errno, 4711);
  void* block = malloc(10);
  CHECK_PTR_EQ(brimful_heap_of(block), heap);
  CHECK_EQ(brimful_heap_set_current(other), 0);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
  CHECK_EQ(brimful_heap_destroy(other), EBUSY);
  CHECK_EQ(brimful_heap_set_current(NULL), 0);
  CHECK_EQ(brimful_heap_destroy(other), 0);
  CHECK_EQ(brimful_heap_destroy(NULL), 0);
}

static pthread_barrier_t barrier;

static void* use_as_current(void* heap) {
  CHECK_PTR_EQ(brimful_heap_current(), NULL);
  CHECK_EQ(brimful_heap_set_current(heap), 0);
  void* block = malloc(100);
  CHECK_PTR_EQ(brimful_heap_of(block), heap);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return block;
}

static void each_thread_has_its_own_and_leaves_it_when_it_ends(void) {
  brimful_heap* heap = new_heap(0);
  pthread_t thread;
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&thread, NULL, use_as_current, heap);
  pthread_barrier_wait(&barrier);
  CHECK_PTR_EQ(brimful_heap_current(), NULL);
  void* own = malloc(100);
  CHECK_PTR_EQ(brimful_heap_of(own), NULL);
  free(own);
  CHECK_EQ(brimful_heap_destroy(heap), EBUSY);
  pthread_barrier_wait(&barrier);
  void* block = NULL;
  pthread_join(thread, &block);
  CHECK_PTR_EQ(brimful_heap_of(block), heap);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

static void a_forked_child_goes_on_with_its_heaps(void) {
  brimful_heap* heap = new_heap(0);
  brimful_heap* others = new_heap(0);
  pthread_t thread;
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&thread, NULL, use_as_current, others);
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < kMany; ++i) fill_pattern(many[i] = brimful_heap_malloc(heap, 100), 100, i);
  CHECK_EQ(brimful_heap_set_current(heap), 0);
  pid_t child = fork();
  if (child == 0) {
    CHECK_PTR_EQ(brimful_heap_current(), heap);
    CHECK_EQ(brimful_heap_destroy(heap), EBUSY);
    for (size_t i = 0; i < kMany; ++i) {
      CHECK_EQ(find_damage(many[i], 100, 100, i), 100);
      if (i % 2) free(many[i]);
    }
    CHECK_PTR_EQ(brimful_heap_of(malloc(50)), heap);
    CHECK_EQ(brimful_heap_set_current(NULL), 0);
    CHECK_EQ(brimful_heap_destroy(heap), 0);
    CHECK_EQ(brimful_heap_destroy(others), 0);  // the thread whose current heap it was is not here
    _exit(check_failures == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK_EQ(brimful_heap_set_current(NULL), 0);
  CHECK_EQ(stats_of(heap).live_blocks, kMany);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  CHECK_EQ(brimful_heap_destroy(others), 0);
}

static void statistics_add_up(void) {
  brimful_heap* heap = new_heap(12345678);
  struct brimful_heap_stats stats = stats_of(heap);
  CHECK_EQ(stats.limit_bytes, 12345678);
  CHECK_EQ(stats.live_bytes + stats.peak_bytes + stats.held_bytes + stats.live_blocks + stats.slabs + stats.refused, 0);
  size_t usable = 0;
  for (size_t i = 0; i < 1000; ++i) {
    void* block = brimful_heap_malloc(heap, i % 100 == 0 ? 50000 : i);
    usable += malloc_usable_size(block);
  }
  stats = stats_of(heap);
  CHECK_EQ(stats.live_blocks, 1000);
  CHECK_EQ(stats.large_blocks, 10);
  CHECK_EQ(stats.live_bytes, usable);
  CHECK_EQ(stats.peak_bytes, usable);
  CHECK_GE(stats.held_bytes, usable);
  CHECK_GE(stats.slabs, 10);
  struct {
    struct brimful_heap_stats known;
    uint64_t later;
  } wide;
  memset(&wide, 0x5A, sizeof wide);
  wide.known.size = sizeof wide;
  CHECK_EQ(brimful_heap_get_stats(heap, &wide.known), 0);
  CHECK_EQ(wide.later, 0);
  CHECK_EQ(wide.known.live_bytes, usable);
  wide.known.size = 8;
  CHECK_EQ(brimful_heap_get_stats(heap, &wide.known), EINVAL);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

static void the_whole_heaps_statistics_count_heaps(void) {
  if (brimful_get_memory_stats == NULL) return;
  struct brimful_memory_stats before = {.size = sizeof before};
  CHECK_EQ(brimful_get_memory_stats(&before, NULL, 0), 0);
  brimful_heap* heap = new_heap(0);
  for (size_t i = 0; i < 5000; ++i) memset(brimful_heap_malloc(heap, 2048), 1, 2048);
  memset(brimful_heap_malloc(heap, 5 << 20), 1, 5 << 20);
  struct brimful_memory_stats now = {.size = sizeof now};
  CHECK_EQ(brimful_get_memory_stats(&now, NULL, 0), 0);
  size_t bytes = 5000 * 2048 + (5 << 20);
  CHECK_GE(now.live - before.live, bytes);
  CHECK_LE(now.live - before.live, bytes + 65536);
  CHECK_EQ(now.live + now.slab_free + now.run_free + now.metadata, now.resident);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
  CHECK_EQ(brimful_get_memory_stats(&now, NULL, 0), 0);
  CHECK_LE(now.live, before.live + 65536);
  CHECK_EQ(now.live + now.slab_free + now.run_free + now.metadata, now.resident);
}

static void locks_of_heaps_are_counted(void) {
  brimful_heap* heap = new_heap(0);
  struct brimful_lock_stats before = {.size = sizeof before};
  CHECK_EQ(brimful_get_lock_stats(BRIMFUL_LOCK_USER_HEAP, 0, &before), 0);
  CHECK_GE(before.locks, 2);
  for (int i = 0; i < 1000; ++i) free(brimful_heap_malloc(heap, 64));
  struct brimful_lock_stats after = {.size = sizeof after};
  CHECK_EQ(brimful_get_lock_stats(BRIMFUL_LOCK_USER_HEAP, 0, &after), 0);
  CHECK_GE(after.acquisitions - before.acquisitions, 2000);
  CHECK_LE(after.acquisitions - before.acquisitions, 2100);
  CHECK_EQ(brimful_get_lock_stats(BRIMFUL_LOCK_USER_HEAP, 16, &after), EINVAL);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

// malloc's hits take nothing but what the thread was lent; they are not told apart from the heap's other objects.
static void a_current_heap_takes_its_lock_once_for_many_objects(void) {
  brimful_heap* heap = new_heap(0);
  CHECK_EQ(brimful_heap_set_current(heap), 0);
  struct brimful_lock_stats before = {.size = sizeof before}, after = before;
  brimful_get_lock_stats(BRIMFUL_LOCK_USER_HEAP, 0, &before);
  for (int i = 0; i < 10000; ++i) *(char*)malloc(48) = 1;
  brimful_get_lock_stats(BRIMFUL_LOCK_USER_HEAP, 0, &after);
  CHECK_EQ(stats_of(heap).live_blocks, 10000);
  CHECK_EQ(stats_of(heap).live_bytes, 480000);
  // Heaps have no hits in the hardened tier, nor have the builds without contexts.
  struct brimful_lock_stats contexts = {.size = sizeof contexts};
  brimful_get_lock_stats(BRIMFUL_LOCK_CONTEXT, 0, &contexts);
  if (!is_hardened() && contexts.locks != 0) CHECK_LE(after.acquisitions - before.acquisitions, 10000 / 64 + 10);
  CHECK_EQ(brimful_heap_set_current(NULL), 0);
  CHECK_EQ(stats_of(heap).live_blocks, 10000);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

static void free_pages_of_a_thinned_heap_go_back(void) {
  brimful_heap* heap = new_heap(0);
  for (size_t i = 0; i < kMany; ++i) memset(many[i] = brimful_heap_malloc(heap, 4096), 1, 4096);
  for (size_t i = 0; i < kMany; ++i) {
    if (i % 10 != 0) free(many[i]);
  }
  long before = resident_kib();
  malloc_trim(0);
  CHECK_LE(resident_kib(), before - (kMany * 4 * 8 / 10));
  for (size_t i = 0; i < kMany; i += 10) CHECK_EQ(((char*)many[i])[4095], 1);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

static void heaps_come_and_go_without_growth(void) {
  for (int i = 0; i < 100; ++i) CHECK_EQ(brimful_heap_destroy(new_heap(0)), 0);
  long before = 0;
  for (int i = 0; i < 3000; ++i) {
    if (i == 1000) before = resident_kib();
    brimful_heap* heap = new_heap(0);
    for (size_t n = 16; n < 2000; n += 97) *(char*)brimful_heap_malloc(heap, n) = 1;
    if (i % 100 == 0) memset(brimful_heap_malloc(heap, 100000), 1, 100000);
    CHECK_EQ(brimful_heap_destroy(heap), 0);
  }
  // tier:hardened keeps headers of what the last GiB of addresses was.
  if (!is_hardened()) CHECK_LE(resident_kib(), before + 1024);
}

static void many_heaps_live_side_by_side(void) {
  enum { kHeaps = 3000 };
  static brimful_heap* heaps[kHeaps];
  for (size_t i = 0; i < kHeaps; ++i) {
    heaps[i] = new_heap(0);
    fill_pattern(many[i] = brimful_heap_malloc(heaps[i], 64), 64, i);
  }
  for (size_t i = 0; i < kHeaps; ++i) {
    CHECK_PTR_EQ(brimful_heap_of(many[i]), heaps[i]);
    CHECK_EQ(find_damage(many[i], 64, 64, i), 64);
    CHECK_EQ(brimful_heap_destroy(heaps[i]), 0);
  }
}

// A huge block lies in a mapping of its own.
static void huge_blocks_belong_to_heaps_too(void) {
  brimful_heap* heap = new_heap(0);
  size_t bytes = (size_t)5 << 30;
  char* block = brimful_heap_malloc(heap, bytes);
  if (block == NULL) {
    SKIP("no address space for 5 GiB");
    return;
  }
  block[bytes - 1] = 1;
  CHECK_PTR_EQ(brimful_heap_of(block), heap);
  CHECK_EQ(stats_of(heap).live_bytes, bytes);
  char* moved = realloc(block, bytes + (1 << 20));
  CHECK(moved != NULL && moved[bytes - 1] == 1);
  CHECK_PTR_EQ(brimful_heap_of(moved), heap);
  CHECK_EQ(stats_of(heap).live_bytes, bytes + (1 << 20));
  free(moved);
  CHECK_EQ(stats_of(heap).live_bytes, 0);
  block = brimful_heap_malloc(heap, bytes);
  CHECK(block != NULL);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
  char name[256];
  CHECK(!mapping_of(block, name, sizeof name));
}

static brimful_heap* handled;
static volatile sig_atomic_t handler_runs;
static void* volatile to_free[64];
static volatile sig_atomic_t free_slots;

static void allocate_in_handler(int number) {
  (void)number;
  ++handler_runs;
  void* block = brimful_heap_malloc(handled, 200);
  if (block != NULL) free(block);
  for (int i = 0; i < free_slots; ++i) {
    if (to_free[i] != NULL) free(to_free[i]);
    to_free[i] = NULL;
  }
  free_slots = 0;
}

static void signal_handlers_may_use_heaps(void) {
  handled = new_heap(0);
  struct sigaction action = {.sa_handler = allocate_in_handler};
  sigaction(SIGUSR1, &action, NULL);
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  struct itimerspec every = {{0, 50000}, {0, 50000}};
  CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  timer_settime(timer, 0, &every, NULL);
  double started = seconds_now();
  uint64_t state = 1;
  while (seconds_now() - started < 1.0) {
    for (size_t i = 0; i < 100; ++i) many[i] = brimful_heap_malloc(handled, 16 + next_random(&state) % 60000);
    for (size_t i = 0; i < 100; ++i) {
      if (free_slots == 0 && i % 10 == 0) {
        to_free[0] = many[i];
        free_slots = 1;
      } else {
        free(many[i]);
      }
    }
  }
  timer_delete(timer);
  signal(SIGUSR1, SIG_IGN);
  if (to_free[0] != NULL) free(to_free[0]);
  CHECK_GE(handler_runs, 10);
  CHECK_EQ(stats_of(handled).live_blocks, 0);
  CHECK_EQ(stats_of(handled).live_bytes, 0);
  CHECK_EQ(brimful_heap_destroy(handled), 0);
}

int main(void) {
  begin(120);
  if (brimful_heap_create == NULL) {
    say("skip  the allocator has no such calls");
    CHECK(!is_brimful());
    return finish();
  }
  RUN(blocks_are_aligned_usable_and_their_heaps);
  RUN(ordinary_blocks_are_of_no_heap);
  RUN(free_and_sized_free_take_blocks_of_heaps);
  RUN(calloc_gives_zeros_also_of_memory_that_was_used);
  RUN(aligned_blocks_are_aligned);
  RUN(realloc_leaves_a_block_in_its_heap);
  RUN(heap_realloc_moves_a_block_that_is_not_the_heaps);
  RUN(any_thread_frees_a_heaps_blocks);
  RUN(destroy_gives_everything_back);
  RUN(an_emptied_heap_keeps_little_and_works_on);
  RUN(a_limit_is_hard_and_freed_bytes_count_back);
  RUN(the_current_heap_serves_every_name);
  RUN(a_current_heap_at_its_limit_refuses_malloc);
  RUN(ordinary_memory_works_beside_a_current_heap);
  RUN(a_current_heap_cannot_be_destroyed);
  RUN(each_thread_has_its_own_and_leaves_it_when_it_ends);
  RUN(a_forked_child_goes_on_with_its_heaps);
  RUN(statistics_add_up);
  RUN(the_whole_heaps_statistics_count_heaps);
  RUN(locks_of_heaps_are_counted);
  RUN(a_current_heap_takes_its_lock_once_for_many_objects);
  RUN(free_pages_of_a_thinned_heap_go_back);
  RUN(heaps_come_and_go_without_growth);
  RUN(many_heaps_live_side_by_side);
  RUN(huge_blocks_belong_to_heaps_too);
  RUN(signal_handlers_may_use_heaps);
  return finish();
}
