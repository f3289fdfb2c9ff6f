// SPDX-License-Identifier: MIT
//
// The corner of the interface where size or pointer is zero. The C standard leaves most of it to the
// implementation; programs rely on what glibc does, so that is what is checked: a request for zero bytes
// gives a unique pointer that can be freed, realloc(p, 0) frees and returns NULL, free(NULL) does nothing,
// and errno says nothing about any of it.
#include "check.h"

#include <stdbool.h>

static void malloc_of_zero_bytes_gives_unique_aligned_pointers(void) {
  enum { kCount = 1000 };
  static void* object[kCount];
  for (int i = 0; i < kCount; ++i) {
    object[i] = malloc(opaque(0));
    CHECK(object[i] != NULL);
    CHECK_EQ((uintptr_t)object[i] % 16, 0);
  }
  for (int i = 0; i < kCount; ++i)
    for (int j = i + 1; j < kCount; ++j)
      if (object[i] == object[j]) CHECK_FAIL("objects %d and %d are both at %p", i, j, object[i]);
  for (int i = 0; i < kCount; ++i) free(object[i]);
}

static void every_allocating_entry_point_takes_a_size_of_zero(void) {
  void* pointer[10];
  int count = 0;
  pointer[count++] = calloc(opaque(0), opaque(0));
  pointer[count++] = calloc(opaque(0), opaque(8));
  pointer[count++] = calloc(opaque(8), opaque(0));
  pointer[count++] = calloc(opaque(SIZE_MAX), opaque(0));
  pointer[count++] = realloc(NULL, opaque(0));
  pointer[count++] = memalign(64, opaque(0));
  pointer[count++] = aligned_alloc(256, opaque(0));
  pointer[count++] = valloc(opaque(0));
  pointer[count++] = pvalloc(opaque(0));
  void* by_posix = NULL;
  CHECK_EQ(posix_memalign(&by_posix, 4096, opaque(0)), 0);
  pointer[count++] = by_posix;
  for (int i = 0; i < count; ++i) {
    CHECK_MSG(pointer[i] != NULL, "entry point %d", i);
    for (int j = 0; j < i; ++j) CHECK_MSG(pointer[i] != pointer[j], "entry points %d and %d", i, j);
  }
  for (int i = 0; i < count; ++i) free(pointer[i]);
}

static void realloc_to_zero_frees_and_returns_null(void) {
  static const size_t kSizes[] = {1, 16, 64, 1000, 4096, 32768, 100000, 1 << 20, 64 << 20};
  for (size_t i = 0; i < sizeof kSizes / sizeof kSizes[0]; ++i) {
    long before = resident_kib();
    for (int round = 0; round < 40; ++round) {
      void* object = malloc(kSizes[i]);
      CHECK(object != NULL);
      // A page of each block is touched: forty leaked blocks of 64 MiB would not fit where forty freed ones
      // do.
      memset(object, 1, kSizes[i] < 4096 ? kSizes[i] : 4096);
      CHECK_PTR_EQ(realloc(object, opaque(0)), NULL);
    }
    CHECK_MSG(resident_kib() - before < 8192, "size %zu", kSizes[i]);
  }
}

static void reallocarray_to_zero_frees_and_returns_null(void) {
  CHECK_PTR_EQ(reallocarray(malloc(100), opaque(0), opaque(10)), NULL);
  CHECK_PTR_EQ(reallocarray(malloc(100), opaque(10), opaque(0)), NULL);
}

static void realloc_of_null_allocates(void) {
  for (size_t size = 1; size <= (size_t)16 << 20; size = size * 3 + 1) {
    char* object = realloc(NULL, opaque(size));
    CHECK(object != NULL);
    object[0] = 1;
    object[size - 1] = 2;
    free(object);
    object = reallocarray(keep(NULL), opaque(size), 1);
    CHECK(object != NULL);
    object[size - 1] = 2;
    free(object);
  }
}

static void free_of_null_does_nothing(void) {
  errno = 77;
  for (int i = 0; i < 1000; ++i) free(NULL);
  if (free_sized != NULL) {
    free_sized(keep(NULL), 0);
    free_sized(keep(NULL), 64);
  }
  if (free_aligned_sized != NULL) {
    free_aligned_sized(keep(NULL), 64, 0);
    free_aligned_sized(keep(NULL), 4096, 8192);
  }
  if (cfree != NULL) cfree(NULL);
  CHECK_EQ(errno, 77);
}

static void usable_size_of_null_is_zero(void) { CHECK_EQ(malloc_usable_size(keep(NULL)), 0); }

static void zero_sized_objects_can_grow(void) {
  for (int i = 0; i < 100; ++i) {
    char* object = realloc(malloc(opaque(0)), opaque(100));
    CHECK(object != NULL);
    memset(object, 7, 100);
    free(object);
  }
}

int main(void) {
  begin(30);
  RUN(malloc_of_zero_bytes_gives_unique_aligned_pointers);
  RUN(every_allocating_entry_point_takes_a_size_of_zero);
  RUN(realloc_to_zero_frees_and_returns_null);
  RUN(reallocarray_to_zero_frees_and_returns_null);
  RUN(realloc_of_null_allocates);
  RUN(free_of_null_does_nothing);
  RUN(usable_size_of_null_is_zero);
  RUN(zero_sized_objects_can_grow);
  return finish();
}
