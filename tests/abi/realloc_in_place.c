// SPDX-License-Identifier: MIT
//
// realloc's cost: a large block that shrinks stays where it is and gives its tail back; one that grows stays
// too when the memory behind it is free; a huge one that can't stay is moved by the kernel's page tables
// (mremap), not byte by byte. The last is measured against a copy of the same size in the same process, so a
// slow machine slows both.
#include "check.h"

#include <sys/resource.h>

static void a_large_block_that_shrinks_keeps_its_address(void) {
  for (size_t size = (size_t)256 << 10; size <= (size_t)256 << 20; size *= 4) {
    char* block = malloc(size);
    CHECK(block != NULL);
    block[0] = 1;
    block[size / 2 - 1] = 2;
    size_t address = opaque((size_t)block);
    block = realloc(block, size / 2);
    CHECK_MSG((size_t)block == address, "%zu to %zu", size, size / 2);
    CHECK_EQ(block[0], 1);
    CHECK_EQ(block[size / 2 - 1], 2);
    block = realloc(block, size / 2 - 5000);
    CHECK_MSG((size_t)block == address, "%zu to %zu", size / 2, size / 2 - 5000);
    free(block);
  }
}

static void shrinking_gives_the_tail_back(void) {
  if (!is_brimful()) {
    SKIP("glibc keeps the tail in its arena");
    return;
  }
  long before = resident_kib();
  char* block = malloc((size_t)512 << 20);
  memset(block, 1, (size_t)256 << 20);
  block = realloc(block, 1 << 20);
  double deadline = seconds_now() + 2.5;
  while (seconds_now() < deadline && resident_kib() - before > 32 << 10) {
    for (int i = 0; i < 100; ++i) free(malloc((size_t)i * 700));
    sleep_ms(10);
  }
  CHECK_LE(resident_kib() - before, 32 << 10);
  free(block);
}

static int by_address(const void* left, const void* right) {
  const char *a = *(char*const*)left, *b = *(char*const*)right;
  return a < b ? -1 : a > b;
}

static void a_large_block_grows_in_place_when_the_memory_behind_it_is_free(void) {
  if (!is_brimful()) {
    SKIP("glibc promises nothing here");
    return;
  }
  enum { kCount = 64 };
  static const size_t kSizes[] = {65536, 256 << 10, 1 << 20, 4 << 20};
  for (size_t s = 0; s < sizeof kSizes / sizeof kSizes[0]; ++s) {
    size_t size = kSizes[s];
    char* block[kCount];
    for (int i = 0; i < kCount; ++i) {
      block[i] = malloc(size);
      CHECK(block[i] != NULL);
    }
    qsort(block, kCount, sizeof block[0], by_address);
    int pairs = 0, in_place = 0;
    for (int i = 0; i + 1 < kCount; ++i) {
      if (block[i] == NULL || block[i + 1] == NULL) continue;
      if ((size_t)(block[i + 1] - block[i]) > size + 65536) continue;
      ++pairs;
      free(block[i + 1]);
      block[i + 1] = NULL;
      block[i][0] = 'f';
      block[i][size - 1] = 'l';
      size_t address = opaque((size_t)block[i]);
      block[i] = realloc(block[i], size + size / 2);
      in_place += (size_t)block[i] == address;
      CHECK_EQ(block[i][0], 'f');
      CHECK_EQ(block[i][size - 1], 'l');
      block[i][size + size / 2 - 1] = 'e';
    }
    CHECK_MSG(pairs > 0, "no two of %d blocks of %zu bytes are neighbours", kCount, size);
    CHECK_MSG(in_place == pairs, "size %zu: %d of %d grew in place", size, in_place, pairs);
    for (int i = 0; i < kCount; ++i) free(block[i]);
  }
}

static double seconds_for_copy(size_t size) {
  char* from = malloc(size);
  memset(from, 1, size);
  double started = seconds_now();
  char* to = malloc(size * 2);
  memcpy(to, from, size);
  keep(to);
  double took = seconds_now() - started;
  free(from);
  free(to);
  return took;
}

static void huge_growth_moves_page_tables_not_bytes(void) {
  const size_t size = (size_t)256 << 20;
  double copy = seconds_for_copy(size);
  char* block = malloc(size);
  memset(block, 1, size);
  block[12345678] = 42;
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  double started = seconds_now();
  block = realloc(block, size * 2);
  double took = seconds_now() - started;
  getrusage(RUSAGE_SELF, &after);
  CHECK(block != NULL);
  CHECK_EQ(block[12345678], 42);
  CHECK_MSG(took < copy / 4, "realloc took %.1f ms, a copy %.1f ms", took * 1e3, copy * 1e3);
  CHECK_LE(after.ru_minflt - before.ru_minflt, 2000);
  free(block);
}

static void a_buffer_that_grows_by_small_steps_is_cheap(void) {
  // The pattern of a reader that appends: 1 MiB to 128 MiB in steps of 64 KiB is 2032 reallocs. Copied each
  // time they would move 128 GiB, which no machine does within the limit.
  double started = seconds_now();
  size_t size = 1 << 20;
  char* block = malloc(size);
  memset(block, 1, size);
  while (size < (size_t)128 << 20) {
    block = realloc(block, size + 65536);
    CHECK(block != NULL);
    memset(block + size, 2, 65536);
    size += 65536;
  }
  CHECK_EQ(block[0], 1);
  CHECK_EQ(block[size - 1], 2);
  double took = seconds_now() - started;
  CHECK_MSG(took < 3.0, "took %.2f s", took);
  free(block);
}

int main(void) {
  begin(60);
  RUN(a_large_block_that_shrinks_keeps_its_address);
  RUN(shrinking_gives_the_tail_back);
  RUN(a_large_block_grows_in_place_when_the_memory_behind_it_is_free);
  RUN(huge_growth_moves_page_tables_not_bytes);
  RUN(a_buffer_that_grows_by_small_steps_is_cheap);
  return finish();
}
