// SPDX-License-Identifier: MIT
//
// A gigabyte that was used and freed goes back to the system: within the purge delay (1 s by default) and one
// second of light activity the resident size is within 64 MiB of the start. Small objects of 64 to 1024 bytes
// and large blocks take different ways through the allocator, so each has its test; a third leaves one object
// in a hundred alive, where only the free pages inside slabs that live on can go back.
#include "check.h"

#include <sys/mman.h>
#include <sys/resource.h>

enum { kMost = 4000000 };
static void** object;  // mapped: the table is no part of the heap under test
static long level;     // resident KiB at the start, with the whole table touched

static long excess_after_light_activity(long target, double seconds) {
  double end = seconds_now() + seconds;
  long excess;
  while ((excess = resident_kib() - level) > target && seconds_now() < end) {
    void* some[200];
    for (int i = 0; i < 200; ++i) some[i] = memset(malloc((size_t)(i * 53 % 3000) + 1), 1, 1);
    for (int i = 0; i < 200; ++i) free(some[i]);
    free(malloc(100000));
    sleep_ms(10);
  }
  return excess;
}

static void expect_memory_back(long target_kib) {
  long held = resident_kib() - level;
  double started = seconds_now();
  long excess = excess_after_light_activity(target_kib, is_brimful() ? 2.5 : 0.05);
  say("      %ld MiB above the start right after, %ld MiB after %.2f s", held >> 10, excess >> 10,
      seconds_now() - started);
  if (is_brimful()) CHECK_LE(excess, target_kib);
}

// Fills about a gigabyte with objects of [smallest, largest] bytes; returns their number.
static int fill_a_gigabyte(size_t smallest, size_t largest) {
  uint64_t random = 11;
  int count = 0;
  for (size_t total = 0; total < (size_t)1 << 30 && count < kMost; ++count) {
    size_t size = smallest + next_random(&random) % (largest - smallest + 1);
    object[count] = malloc(size);
    CHECK(object[count] != NULL);
    memset(object[count], count, size);
    total += size;
  }
  return count;
}

static void shuffle(int count) {
  uint64_t random = 12;
  for (int i = count - 1; i > 0; --i) {
    int j = (int)(next_random(&random) % (uint64_t)(i + 1));
    void* swapped = object[i];
    object[i] = object[j];
    object[j] = swapped;
  }
}

static void a_gigabyte_of_small_objects_goes_back(void) {
  int count = fill_a_gigabyte(64, 1024);
  CHECK_GE(resident_kib() - level, 1000L << 10);
  shuffle(count);
  for (int i = 0; i < count; ++i) free(object[i]);
  expect_memory_back(64 << 10);
}

static void a_gigabyte_of_large_blocks_goes_back(void) {
  int count = fill_a_gigabyte(40000, 3000000);
  CHECK_GE(resident_kib() - level, 1000L << 10);
  shuffle(count);
  for (int i = 0; i < count; ++i) free(object[i]);
  expect_memory_back(64 << 10);
}

static void pages_inside_living_slabs_go_back(void) {
  // Every hundredth object of a run of neighbours stays: 64 objects of 256 bytes are four pages, and most of
  // the pages hold no survivor.
  int count = 1200000;
  for (int i = 0; i < count; ++i) object[i] = memset(malloc(256), 1, 256);
  for (int i = 0; i < count; ++i)
    if (i % 100 != 0) free(object[i]);
  // 12 000 survivors touch at most 12 000 of 75 000 pages: 47 MiB. The rest goes back a bounded number of
  // slabs at a time, so a part of it must have gone within the time that expect_memory_back() gives.
  expect_memory_back(250 << 10);
  for (int i = 0; i < count; i += 100) free(object[i]);
}

static void a_dozen_peaks_end_where_they_began(void) {
  for (int peak = 0; peak < 12; ++peak) {
    size_t size = (size_t)48 << peak;
    int count = (int)(((size_t)100 << 20) / size);
    if (count > kMost) count = kMost;
    for (int i = 0; i < count; ++i) object[i] = memset(malloc(size), 1, size);
    for (int i = 0; i < count; ++i) free(object[i]);
  }
  expect_memory_back(64 << 10);
}

static void memory_in_steady_use_is_not_given_back_in_between(void) {
  // Thirty rounds of 64 MiB within less than the purge delay: the pages are touched once, not thirty times.
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  double started = seconds_now();
  int rounds = 0;
  for (; rounds < 30 && seconds_now() - started < 0.8; ++rounds) {
    for (int i = 0; i < 320000; ++i) object[i] = memset(malloc(200), 1, 200);
    for (int i = 0; i < 320000; ++i) free(object[i]);
  }
  getrusage(RUSAGE_SELF, &after);
  long faults = after.ru_minflt - before.ru_minflt;
  say("      %ld page faults in %d rounds of 16 400 pages", faults, rounds);
  if (is_brimful()) CHECK_LE(faults, 3 * 16400);
}

int main(void) {
  begin(100);
  object = mmap(NULL, kMost * sizeof *object, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(object != MAP_FAILED);
  memset(object, 1, kMost * sizeof *object);
  level = resident_kib();
  RUN(memory_in_steady_use_is_not_given_back_in_between);
  RUN(a_gigabyte_of_small_objects_goes_back);
  RUN(a_gigabyte_of_large_blocks_goes_back);
  RUN(pages_inside_living_slabs_go_back);
  RUN(a_dozen_peaks_end_where_they_began);
  return finish();
}
