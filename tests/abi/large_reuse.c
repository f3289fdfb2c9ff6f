// SPDX-License-Identifier: MIT
//
// Large blocks that are made from freed ones of the same length or a little more: what the program sees of them is what a
// fresh one would show, and what it does not hold is counted as free.
#include "check.h"

#include <malloc.h>

// C23, and glibc has it from 2.43.
extern void free_sized(void* pointer, size_t size);
#pragma weak free_sized

enum { kGranule = 64 << 10 };

static const size_t kSizes[] = {40000, kGranule, kGranule + 1, 200000, 1 << 20, (5 << 20) + 1, 20 << 20};
enum { kSizeCount = sizeof kSizes / sizeof *kSizes };

static int is_zero(const char* block, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    if (block[i] != 0) return 0;
  return 1;
}

static void calloc_clears_what_the_block_before_left(void) {
  for (int i = 0; i < kSizeCount; ++i) {
    char* block = malloc(kSizes[i]);
    memset(block, 0x5a, kSizes[i]);
    free(block);
    block = calloc(1, kSizes[i]);
    CHECK(is_zero(block, kSizes[i]));
    memset(block, 0x5a, kSizes[i]);
    free(block);
    block = calloc(kSizes[i] - kSizes[i] / 16, 1);
    CHECK(is_zero(block, kSizes[i] - kSizes[i] / 16));
    free(block);
  }
}

static void usable_size_is_what_this_block_was_asked_for(void) {
  for (int i = 0; i < kSizeCount; ++i) {
    size_t fresh = malloc_usable_size(malloc(kSizes[i] - kSizes[i] / 16));
    free(malloc(kSizes[i]));
    char* block = malloc(kSizes[i] - kSizes[i] / 16);
    if (is_brimful()) CHECK_EQ(malloc_usable_size(block), fresh);
    memset(block, 1, malloc_usable_size(block));
    if (is_brimful() && free_sized != NULL) {
      free_sized(block, kSizes[i] - kSizes[i] / 16);
    } else {
      free(block);
    }
  }
}

static void a_freed_block_is_not_in_use(void) {
  static char* block[6];
  for (int i = 0; i < 6; ++i) block[i] = malloc(1 << 20);
  size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 6; ++i) free(block[i]);
  if (is_brimful()) CHECK_EQ(before - mallinfo2().uordblks, (size_t)6 << 20);
}

static void trim_gives_back_what_waits_for_reuse(void) {
  char* block = malloc(16 << 20);
  memset(block, 1, 16 << 20);
  free(block);
  malloc_trim(0);
  long least = resident_kib();
  block = malloc(16 << 20);
  memset(block, 1, 16 << 20);
  CHECK_GE(resident_kib() - least, 15 << 10);
  free(block);
  malloc_trim(0);
  CHECK_LE(resident_kib() - least, 1 << 10);
}

static void realloc_keeps_what_it_should(void) {
  for (int i = 0; i < kSizeCount; ++i) {
    free(malloc(kSizes[i]));
    char* block = malloc(kSizes[i]);
    memset(block, i + 1, kSizes[i]);
    block = realloc(block, kSizes[i] * 2);
    CHECK_EQ(block[kSizes[i] - 1], i + 1);
    memset(block, i + 2, kSizes[i] * 2);
    block = realloc(block, kSizes[i] + 1);
    CHECK_EQ(block[kSizes[i]], i + 2);
    free(block);
  }
}

int main(void) {
  begin(20);
  RUN(calloc_clears_what_the_block_before_left);
  RUN(usable_size_is_what_this_block_was_asked_for);
  RUN(a_freed_block_is_not_in_use);
  RUN(trim_gives_back_what_waits_for_reuse);
  RUN(realloc_keeps_what_it_should);
  return finish();
}
