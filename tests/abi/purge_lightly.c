// SPDX-License-Identifier: MIT
//
// A peak of 128 MiB is freed, and then the program makes a hundred calls a second: what it has freed goes back within three
// seconds, although hardly a call leaves the fast path by itself. One in a thousand of the objects may stay alive.
#include "check.h"

#include <sys/mman.h>

enum { kObject = 1024, kMost = 128 * 1024, kMostCalls = 300, kCallMs = 10 };
static void** object;  // mapped: the table is no part of the heap under test
static long level;     // resident KiB at the start, with the whole table touched

static void fill(void) {
  for (int i = 0; i < kMost; ++i) {
    object[i] = malloc(kObject);
    CHECK(object[i] != NULL);
    memset(object[i], i, kObject);
  }
}

// 0: none stays.
static void free_all_but_one_in(int number) {
  for (int i = 0; i < kMost; ++i) {
    if (number != 0 && i % number == 0) continue;
    free(object[i]);
    object[i] = NULL;
  }
}

// A call every 10 ms, of one size after the other. Returns how many it took.
static int rest(int sizes, long target_kib) {
  int calls = 0;
  for (; calls < kMostCalls && resident_kib() - level > target_kib; ++calls) {
    void* some = malloc((size_t)(16 + calls % sizes * 40));
    memset(some, 1, 16);
    free(some);
    sleep_ms(kCallMs);
  }
  return calls;
}

static void expect_back(int sizes, int kept_of, long target_kib) {
  // Objects of each size lie ready, as in a program that has run for a while.
  for (int i = 0; i < 10000; ++i) free(malloc((size_t)(16 + i % sizes * 40)));
  fill();
  free_all_but_one_in(kept_of);
  const int calls = is_brimful() ? rest(sizes, target_kib) : 0;
  const long excess = resident_kib() - level;
  say("      %ld MiB above the start after %d calls", excess >> 10, calls);
  if (is_brimful()) CHECK_LE(excess, target_kib);
  free_all_but_one_in(0);
}

static void a_peak_goes_back_by_calls_of_one_size(void) { expect_back(1, 0, 8 << 10); }

// The page of each object that stays, and 8 MiB.
static void a_peak_goes_back_by_calls_of_fifty_sizes_while_some_stay(void) {
  expect_back(50, 1000, (8 << 10) + kMost / 1000 * 4);
}

int main(void) {
  begin(30);
  object = mmap(NULL, kMost * sizeof *object, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(object != MAP_FAILED);
  memset(object, 1, kMost * sizeof *object);
  level = resident_kib();
  RUN(a_peak_goes_back_by_calls_of_one_size);
  RUN(a_peak_goes_back_by_calls_of_fifty_sizes_while_some_stay);
  return finish();
}
