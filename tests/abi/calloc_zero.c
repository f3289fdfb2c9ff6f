// SPDX-License-Identifier: MIT
//
// calloc gives zeros, above all where the memory was used before. An allocator that clears only what it
// handed out before must never mistake dirty memory for fresh: not after reuse in another size class, not
// after a free by another thread, not after part of a block was given back to the kernel and taken again.
#include "check.h"

#include <pthread.h>

// Makes a crowd of dirty objects of about this size, frees them in a mixed order, and checks that callocs of
// the same size get zeros.
static void dirty_then_calloc(size_t size, int count) {
  static unsigned char* object[4096];
  for (int i = 0; i < count; ++i) {
    object[i] = malloc(size);
    CHECK(object[i] != NULL);
    memset(object[i], 0xa5, malloc_usable_size(object[i]));
  }
  for (int i = 0; i < count; ++i) free(object[(i * 7) % count]);
  for (int i = 0; i < count; ++i) {
    object[i] = calloc(1, size);
    CHECK(object[i] != NULL);
    size_t dirty = find_nonzero(object[i], size);
    CHECK_MSG(dirty == size, "byte %zu of a calloc of %zu bytes is %d", dirty, size, object[i][dirty]);
    memset(object[i], 0xff, size);
  }
  for (int i = 0; i < count; ++i) free(object[i]);
}

static void calloc_is_zero_after_dirty_reuse_at_every_small_size(void) {
  // Counts are no multiple of 7, so that the mixed order visits every object once.
  for (size_t size = 1; size <= 2048; ++size) dirty_then_calloc(size, 100);
}

static void calloc_is_zero_after_dirty_reuse_at_medium_sizes(void) {
  for (size_t size = 2049; size <= 200000; size = size * 9 / 8 + 1) dirty_then_calloc(size, 40);
}

static void calloc_is_zero_after_dirty_reuse_at_large_sizes(void) {
  for (size_t size = 200000; size <= (size_t)64 << 20; size = size * 7 / 4 + 1)
    dirty_then_calloc(size, size < 1 << 22 ? 6 : 2);
}

static void calloc_is_zero_when_memory_changes_its_size_class(void) {
  static unsigned char* object[20000];
  static const size_t kSizes[] = {48, 1000, 16, 5000, 300, 64, 32768, 100};
  for (int round = 0; round < 8; ++round) {
    size_t size = kSizes[round];
    int count = (int)((size_t)4 << 20) / (int)(size < 210 ? 210 : size);
    for (int i = 0; i < count; ++i) {
      object[i] = calloc(size, 1);
      CHECK(object[i] != NULL);
      CHECK_EQ(find_nonzero(object[i], size), size);
      memset(object[i], 0xee, malloc_usable_size(object[i]));
    }
    for (int i = 0; i < count; ++i) free(object[i]);
  }
}

static void calloc_is_zero_after_memory_was_given_back_and_taken_again(void) {
  for (int round = 0; round < 4; ++round) {
    dirty_then_calloc(700, 4093);
    malloc_trim(0);
    dirty_then_calloc(300000, 20);
    malloc_trim(0);
  }
}

static void calloc_is_zero_after_realloc_shrank_a_dirty_block(void) {
  for (int round = 0; round < 20; ++round) {
    unsigned char* dirty = malloc(8 << 20);
    memset(dirty, 0x77, 8 << 20);
    dirty = realloc(dirty, 300000 + (size_t)round * 4096);
    unsigned char* clean[8];
    for (int i = 0; i < 8; ++i) {
      clean[i] = calloc(1, (size_t)900000 + (size_t)i * 5000);
      CHECK_EQ(find_nonzero(clean[i], 900000), 900000);
      memset(clean[i], 0x99, 900000);
    }
    for (int i = 0; i < 8; ++i) free(clean[i]);
    free(dirty);
  }
}

static void calloc_of_an_aligned_blocks_memory_is_zero(void) {
  for (int round = 0; round < 50; ++round) {
    unsigned char* aligned = aligned_alloc(1 << 16, 150000);
    memset(aligned, 0x31, 150000);
    free(aligned);
    unsigned char* clean = calloc(3, 50000);
    CHECK_EQ(find_nonzero(clean, 150000), 150000);
    memset(clean, 0x32, 150000);
    free(clean);
  }
}

static void* free_all(void* argument) {
  void** object = argument;
  for (int i = 0; i < 5000; ++i) free(object[i]);
  return NULL;
}

static void calloc_is_zero_after_another_threads_frees(void) {
  static void* object[5000];
  for (int round = 0; round < 10; ++round) {
    size_t size = (size_t)24 << (round % 6);
    for (int i = 0; i < 5000; ++i) {
      object[i] = calloc(1, size);
      CHECK_EQ(find_nonzero(object[i], size), size);
      memset(object[i], 0xcc, size);
    }
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, free_all, object), 0);
    pthread_join(thread, NULL);
  }
}

int main(void) {
  begin(60);
  RUN(calloc_is_zero_after_dirty_reuse_at_every_small_size);
  RUN(calloc_is_zero_after_dirty_reuse_at_medium_sizes);
  RUN(calloc_is_zero_after_dirty_reuse_at_large_sizes);
  RUN(calloc_is_zero_when_memory_changes_its_size_class);
  RUN(calloc_is_zero_after_memory_was_given_back_and_taken_again);
  RUN(calloc_is_zero_after_realloc_shrank_a_dirty_block);
  RUN(calloc_of_an_aligned_blocks_memory_is_zero);
  RUN(calloc_is_zero_after_another_threads_frees);
  return finish();
}
