// SPDX-License-Identifier: MIT
//
// Alignment, from every entry point: 16 bytes for every plain size, every power of two from 2^3 to 2^30 for
// the aligned ones with small and large sizes mixed, whole pages from valloc and pvalloc. Blocks are kept
// alive side by side and carry a pattern over their whole length, because an aligned block that is carved too
// short shows only when its neighbour is written.
#include "check.h"

static void malloc_calloc_and_realloc_align_every_size_to_16(void) {
  for (size_t size = 0; size <= 70000; size += size < 4096 ? 1 : 37) {
    void* by_malloc = malloc(opaque(size));
    void* by_calloc = calloc(1, opaque(size));
    CHECK(by_malloc != NULL && by_calloc != NULL);
    if ((uintptr_t)by_malloc % 16 != 0 || (uintptr_t)by_calloc % 16 != 0)
      CHECK_FAIL("size %zu: malloc %p, calloc %p", size, by_malloc, by_calloc);
    by_malloc = keep(realloc(by_malloc, opaque(size * 2 + 1)));
    CHECK_MSG((uintptr_t)by_malloc % 16 == 0, "size %zu: realloc %p", size, by_malloc);
    free(by_malloc);
    free(by_calloc);
  }
}

typedef void* Allocator(size_t alignment, size_t size);
static void* by_posix_memalign(size_t alignment, size_t size) {
  void* result = NULL;
  return posix_memalign(&result, alignment, size) == 0 ? result : NULL;
}
static void* by_aligned_alloc(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
static void* by_memalign(size_t alignment, size_t size) { return memalign(alignment, size); }

// Allocates a crowd at one alignment, checks address and contents of each, then frees every other one,
// allocates again into the gaps, and frees all.
static void crowd_at(Allocator* allocate, size_t alignment) {
  static const size_t kSizes[] = {0,    1,    7,     8,     16,    17,    63,     64,     100,    256,    1000,
                                  4095, 4096, 10000, 32768, 32769, 65536, 100000, 300000, 524289, 3 << 20};
  enum { kMost = 64 };
  char* block[kMost] = {0};
  size_t length[kMost] = {0};
  // Up to 2 MiB alignment many live at once; above, address space is used so generously that few must do.
  int count = alignment <= ((size_t)2 << 20) ? kMost : 4;
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < count; ++i) {
      if (block[i] != NULL) continue;
      length[i] = kSizes[(size_t)(i + pass * 5) % (sizeof kSizes / sizeof kSizes[0])];
      block[i] = allocate(alignment, opaque(length[i]));
      CHECK_MSG(block[i] != NULL, "alignment %zu size %zu", alignment, length[i]);
      if (block[i] == NULL) continue;
      if ((uintptr_t)block[i] % alignment != 0)
        CHECK_FAIL("alignment %zu size %zu: %p", alignment, length[i], (void*)block[i]);
      CHECK_GE(malloc_usable_size(block[i]), length[i]);
      fill_pattern(block[i], length[i], (uintptr_t)block[i]);
    }
    for (int i = 0; i < count; ++i) {
      if (block[i] == NULL) continue;
      size_t damage = find_damage(block[i], length[i], length[i], (uintptr_t)block[i]);
      CHECK_MSG(damage == length[i], "alignment %zu size %zu: byte %zu of %p", alignment, length[i], damage,
                (void*)block[i]);
      if (pass == 0 && i % 2 == 0) continue;
      free(block[i]);
      block[i] = NULL;
    }
  }
  for (int i = 0; i < count; ++i) free(block[i]);
}

static void posix_memalign_gives_every_alignment_from_8_to_1_gib(void) {
  for (int shift = 3; shift <= 30; ++shift) crowd_at(by_posix_memalign, (size_t)1 << shift);
}
static void aligned_alloc_gives_every_alignment_from_8_to_1_gib(void) {
  for (int shift = 3; shift <= 30; ++shift) crowd_at(by_aligned_alloc, (size_t)1 << shift);
}
static void memalign_gives_every_alignment_from_8_to_1_gib(void) {
  for (int shift = 3; shift <= 30; ++shift) crowd_at(by_memalign, (size_t)1 << shift);
}

static void alignments_below_16_are_accepted(void) {
  for (size_t alignment = 1; alignment <= 16; alignment *= 2) {
    void* object = keep(memalign(alignment, 24));
    CHECK(object != NULL);
    free(object);
    object = keep(aligned_alloc(alignment, 24));
    CHECK(object != NULL);
    free(object);
  }
}

static void memalign_rounds_an_alignment_that_is_no_power_of_two_up(void) {
  static const size_t kAlignments[] = {3, 17, 24, 33, 48, 100, 1000, 5000, 70000, 3 << 20};
  for (size_t i = 0; i < sizeof kAlignments / sizeof kAlignments[0]; ++i) {
    size_t power = 16;
    while (power < kAlignments[i]) power *= 2;
    void* object = keep(memalign(opaque(kAlignments[i]), 100));
    CHECK(object != NULL);
    CHECK_MSG((uintptr_t)object % power == 0, "alignment %zu: %p", kAlignments[i], object);
    free(object);
  }
  void* object = keep(memalign(opaque(0), 100));
  CHECK(object != NULL);
  free(object);
}

static void aligned_alloc_refuses_an_alignment_that_is_no_power_of_two(void) {
  // glibc did so only from 2.38 on, and musl and the C standard's wording agree with it.
  if (!is_brimful()) {
    SKIP("glibc before 2.38 rounds it up");
    return;
  }
  static const size_t kAlignments[] = {0, 3, 24, 100, 4097, SIZE_MAX};
  for (size_t i = 0; i < sizeof kAlignments / sizeof kAlignments[0]; ++i) {
    errno = 0;
    CHECK_PTR_EQ(keep(aligned_alloc(opaque(kAlignments[i]), 64)), NULL);
    CHECK_EQ(errno, EINVAL);
  }
}

static void aligned_alloc_takes_sizes_that_are_no_multiple_of_the_alignment(void) {
  for (size_t alignment = 16; alignment <= 65536; alignment *= 4) {
    char* object = keep(aligned_alloc(alignment, alignment / 2 + 3));
    CHECK(object != NULL);
    CHECK_EQ((uintptr_t)object % alignment, 0);
    memset(object, 1, alignment / 2 + 3);
    free(object);
  }
}

static void posix_memalign_refuses_alignments_that_posix_refuses(void) {
  static const size_t kAlignments[] = {0, 1, 2, 3, 4, 7, 9, 12, 24, 40, 1000, 4104, SIZE_MAX};
  for (size_t i = 0; i < sizeof kAlignments / sizeof kAlignments[0]; ++i) {
    void* untouched = &untouched;
    errno = 99;
    CHECK_EQ(posix_memalign(&untouched, opaque(kAlignments[i]), 64), EINVAL);
    CHECK_PTR_EQ(untouched, &untouched);
    CHECK_EQ(errno, 99);
  }
}

static void valloc_gives_whole_pages_addresses(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (size_t size = 1; size < 3000000; size = size * 5 / 3 + 1) {
    char* object = keep(valloc(opaque(size)));
    CHECK(object != NULL);
    CHECK_EQ((uintptr_t)object % page, 0);
    CHECK_GE(malloc_usable_size(object), size);
    memset(object, 2, size);
    free(object);
  }
}

static void pvalloc_rounds_the_size_up_to_whole_pages(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (size_t size = 1; size < 3000000; size = size * 5 / 3 + 1) {
    size_t whole = (size + page - 1) / page * page;
    char* object = keep(pvalloc(opaque(size)));
    CHECK(object != NULL);
    CHECK_EQ((uintptr_t)object % page, 0);
    CHECK_GE(malloc_usable_size(object), whole);
    memset(object, 3, whole);
    free(object);
  }
}

static void realloc_of_an_aligned_object_keeps_the_contents(void) {
  for (int shift = 4; shift <= 24; ++shift) {
    size_t alignment = (size_t)1 << shift, size = 5000;
    char* object = by_posix_memalign(alignment, size);
    CHECK(object != NULL);
    fill_pattern(object, size, alignment);
    object = realloc(object, opaque(200000));
    CHECK(object != NULL);
    CHECK_EQ(find_damage(object, size, size, alignment), size);
    object = realloc(object, opaque(100));
    CHECK(object != NULL);
    CHECK_EQ(find_damage(object, 100, size, alignment), 100);
    free(object);
  }
}

int main(void) {
  begin(60);
  RUN(malloc_calloc_and_realloc_align_every_size_to_16);
  RUN(posix_memalign_gives_every_alignment_from_8_to_1_gib);
  RUN(aligned_alloc_gives_every_alignment_from_8_to_1_gib);
  RUN(memalign_gives_every_alignment_from_8_to_1_gib);
  RUN(alignments_below_16_are_accepted);
  RUN(memalign_rounds_an_alignment_that_is_no_power_of_two_up);
  RUN(aligned_alloc_refuses_an_alignment_that_is_no_power_of_two);
  RUN(aligned_alloc_takes_sizes_that_are_no_multiple_of_the_alignment);
  RUN(posix_memalign_refuses_alignments_that_posix_refuses);
  RUN(valloc_gives_whole_pages_addresses);
  RUN(pvalloc_rounds_the_size_up_to_whole_pages);
  RUN(realloc_of_an_aligned_object_keeps_the_contents);
  return finish();
}
