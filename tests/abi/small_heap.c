// SPDX-License-Identifier: MIT
//
// A few live objects of each size, replaced again and again: the heap of a small program. Slabs are 64 KiB of address
// space and more, but malloc goes on to memory that nobody has touched only when the memory before it has nothing left,
// so what becomes resident stays near what is live: at most a few pages for each size.
#include "check.h"

enum { kLive = 4, kSizes = 40, kRounds = 2000, kMostKibPerSize = 14 };
static void* object[kSizes][kLive];

static size_t bytes_of(size_t i) { return 24 * (i + 1); }

static void a_few_objects_of_each_size_touch_a_few_pages(void) {
  long level = resident_kib();
  for (unsigned round = 0; round < kRounds; round++) {
    for (size_t i = 0; i < kSizes; i++) {
      size_t at = (round * 7 + i) % kLive;
      free(object[i][at]);
      object[i][at] = malloc(bytes_of(i));
      memset(object[i][at], (int)i, bytes_of(i));
    }
  }
  long grown = resident_kib() - level;
  if (grown > kSizes * kMostKibPerSize) {
    CHECK_FAIL("%d live objects of each of %d sizes made %ld KiB resident, more than %d for each size", kLive, kSizes,
               grown, kMostKibPerSize);
  }
  for (size_t i = 0; i < kSizes; i++) {
    for (size_t at = 0; at < kLive; at++) free(object[i][at]);
  }
}

int main(void) {
  begin(60);
  free(malloc(100));  // what starting costs is not the question
  RUN(a_few_objects_of_each_size_touch_a_few_pages);
  return finish();
}
