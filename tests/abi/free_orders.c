// SPDX-License-Identifier: MIT
//
// Ten million objects of 64 bytes, freed in the order they came and in the opposite order. Both orders break
// allocators in their own way: first-in-first-out leaves every page partly used until its end,
// last-in-first-out touches the newest pages first. Contents are stamped at both ends of each object, so two
// owners of one place would show, and afterwards the memory has to go back to the system while the program
// does a little work.
#include "check.h"

#include <sys/mman.h>

enum { kCount = 10000000 };
static char** object;  // mapped, so that the table itself is no part of the heap under test
static long level;     // resident KiB at the start

static void stamp(size_t i) {
  object[i] = malloc(64);
  if (object[i] == NULL) {
    CHECK_FAIL("object %zu is NULL", i);
    _exit(1);
  }
  uint64_t front = i * 0x9e3779b97f4a7c15u, back = ~front;
  memcpy(object[i], &front, 8);
  memcpy(object[i] + 56, &back, 8);
}

static void check_and_free(size_t i) {
  uint64_t front, back, expected = i * 0x9e3779b97f4a7c15u;
  memcpy(&front, object[i], 8);
  memcpy(&back, object[i] + 56, 8);
  if (front != expected || back != ~expected) CHECK_FAIL("object %zu at %p is damaged", i, (void*)object[i]);
  free(object[i]);
}

// A program that goes on with something small. Returns how many KiB above the level are left.
static long excess_after_light_activity(long target, double seconds) {
  double end = seconds_now() + seconds;
  long excess;
  while ((excess = resident_kib() - level) > target && seconds_now() < end) {
    void* some[200];
    for (int i = 0; i < 200; ++i) some[i] = memset(malloc((size_t)(i * 37 % 2000) + 1), 1, 1);
    for (int i = 0; i < 200; ++i) free(some[i]);
    free(malloc(100000));
    sleep_ms(10);
  }
  return excess;
}

static void expect_memory_back(void) {
  long held = resident_kib() - level;
  double started = seconds_now();
  long excess = excess_after_light_activity(64 << 10, is_brimful() ? 2.5 : 0.05);
  say("      %ld MiB above the start right after, %ld MiB after %.2f s", held >> 10, excess >> 10,
      seconds_now() - started);
  if (is_brimful()) CHECK_LE(excess, 64 << 10);
}

static void ten_million_objects_freed_last_in_first_out(void) {
  for (size_t i = 0; i < kCount; ++i) stamp(i);
  // 64 bytes of payload are 610 MiB; a quarter more is the most that any honest layout needs, glibc's header
  // included.
  CHECK_LE(resident_kib() - level - kCount / 1024 * 8, 780L << 10);
  for (size_t i = kCount; i-- > 0;) check_and_free(i);
  madvise(object, (size_t)kCount * sizeof *object, MADV_DONTNEED);
  expect_memory_back();
}

static void ten_million_objects_freed_first_in_first_out(void) {
  for (size_t i = 0; i < kCount; ++i) stamp(i);
  for (size_t i = 0; i < kCount; ++i) check_and_free(i);
  madvise(object, (size_t)kCount * sizeof *object, MADV_DONTNEED);
  expect_memory_back();
}

int main(void) {
  begin(100);
  object = mmap(NULL, (size_t)kCount * sizeof *object, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(object != MAP_FAILED);
  level = resident_kib();
  RUN(ten_million_objects_freed_last_in_first_out);
  RUN(ten_million_objects_freed_first_in_first_out);
  return finish();
}
