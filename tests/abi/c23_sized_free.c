// SPDX-License-Identifier: MIT
//
// C23's free_sized and free_aligned_sized with right arguments: the size that was asked for (not the usable
// one), zero included, for objects of malloc, calloc and realloc; size and alignment for objects of
// aligned_alloc. A right size must never be taken for a wrong one: that would abort a correct program.
#include "check.h"

static int is_missing(void) {
  if (free_sized != NULL && free_aligned_sized != NULL) return 0;
  CHECK(!is_brimful());
  SKIP("this libc has no free_sized");
  return 1;
}

static void free_sized_takes_the_requested_size_of_malloc(void) {
  if (is_missing()) return;
  for (size_t size = 0; size <= 40000; size += size < 2100 ? 1 : 53) free_sized(malloc(size), size);
  for (size_t size = 40001; size < (size_t)1 << 31; size = size * 3 / 2 + 1) free_sized(malloc(size), size);
}

static void free_sized_takes_the_requested_size_of_calloc_and_realloc(void) {
  if (is_missing()) return;
  for (size_t size = 1; size <= 3 << 20; size = size * 5 / 4 + 1) {
    free_sized(calloc(size, 2), size * 2);
    void* object = malloc(size);
    object = realloc(object, size * 3);
    free_sized(keep(object), size * 3);
    object = realloc(malloc(size), size / 2 + 1);
    free_sized(keep(object), size / 2 + 1);
  }
}

static void free_sized_takes_every_size_between_requested_and_usable(void) {
  if (is_missing()) return;
  // C23 asks for the requested size; C++ sized delete reaches the same code after a container rounded up by
  // itself.
  for (size_t size = 1; size <= 1 << 20; size = size * 4 / 3 + 1) {
    void* object = malloc(size);
    free_sized(object, malloc_usable_size(object));
  }
}

static void free_aligned_sized_takes_alignment_and_size_of_aligned_alloc(void) {
  if (is_missing()) return;
  static const size_t kSizes[] = {0, 1, 15, 16, 64, 100, 1000, 4096, 5000, 32768, 65536, 100000, 1 << 20, 5 << 20};
  for (int shift = 3; shift <= 30; ++shift) {
    for (size_t i = 0; i < sizeof kSizes / sizeof kSizes[0]; ++i) {
      size_t alignment = (size_t)1 << shift;
      void* object = keep(aligned_alloc(alignment, kSizes[i]));
      CHECK(object != NULL);
      free_aligned_sized(object, alignment, kSizes[i]);
    }
  }
}

static void memory_freed_by_size_is_used_again(void) {
  if (is_missing()) return;
  long before = resident_kib();
  for (int i = 0; i < 200000; ++i) {
    char* object = malloc(1000);
    memset(object, i, 1000);
    free_sized(object, 1000);
    object = keep(aligned_alloc(64, 2000));
    memset(object, i, 2000);
    free_aligned_sized(object, 64, 2000);
  }
  CHECK_LE(resident_kib() - before, 4096);
}

int main(void) {
  begin(30);
  RUN(free_sized_takes_the_requested_size_of_malloc);
  RUN(free_sized_takes_the_requested_size_of_calloc_and_realloc);
  RUN(free_sized_takes_every_size_between_requested_and_usable);
  RUN(free_aligned_sized_takes_alignment_and_size_of_aligned_alloc);
  RUN(memory_freed_by_size_is_used_again);
  return finish();
}
