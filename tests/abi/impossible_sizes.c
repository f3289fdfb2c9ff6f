// SPDX-License-Identifier: MIT
//
// Sizes that no machine has, from every entry point: the answer is NULL and ENOMEM, at once, and whatever was
// there before stays as it was. "Impossible" starts above PTRDIFF_MAX, because the difference of two pointers
// into such an object could not be expressed; products that overflow and sizes that overflow only when they
// are rounded up (pvalloc near SIZE_MAX, a large alignment added) are the classic ways to get a tiny object
// for a huge request.
#include "check.h"

static const size_t kTooLarge[] = {
    (size_t)PTRDIFF_MAX + 1,
    (size_t)PTRDIFF_MAX + 4096,
    SIZE_MAX / 2 + SIZE_MAX / 4,
    SIZE_MAX - ((size_t)1 << 30),
    SIZE_MAX - 2 * 1048576,
    SIZE_MAX - 65536,
    SIZE_MAX - 65535,
    SIZE_MAX - 4096,
    SIZE_MAX - 4095,
    SIZE_MAX - 64,
    SIZE_MAX - 31,
    SIZE_MAX - 16,
    SIZE_MAX - 15,
    SIZE_MAX - 14,
    SIZE_MAX - 8,
    SIZE_MAX - 1,
    SIZE_MAX,
};
// Possible in principle, but larger than any address space: the kernel has to say no, not a check in front of
// it.
static const size_t kTooLargeForKernel[] = {PTRDIFF_MAX, PTRDIFF_MAX - 4096, (size_t)1 << 62, (size_t)1 << 50,
                                            ((size_t)1 << 47) + 12345};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define FOR_EACH_SIZE(size)                                                                                           \
  for (size_t index_ = 0, size;                                                                                       \
       index_ < COUNT(kTooLarge) + COUNT(kTooLargeForKernel) &&                                                       \
       (size = opaque(index_ < COUNT(kTooLarge) ? kTooLarge[index_] : kTooLargeForKernel[index_ - COUNT(kTooLarge)]), \
       1);                                                                                                            \
       ++index_)

#define CHECK_REFUSED(expression, size)                                                             \
  do {                                                                                              \
    errno = 0;                                                                                      \
    void* refused_ = keep(expression);                                                              \
    int errno_ = errno;                                                                             \
    if (refused_ != NULL || errno_ != ENOMEM)                                                       \
      CHECK_FAIL("%s with size %#zx: %p, errno %d", #expression, (size_t)(size), refused_, errno_); \
  } while (0)

static void malloc_refuses_impossible_sizes(void) { FOR_EACH_SIZE(size) CHECK_REFUSED(malloc(size), size); }

static void calloc_refuses_impossible_sizes_and_products_that_overflow(void) {
  FOR_EACH_SIZE(size) {
    CHECK_REFUSED(calloc(size, 1), size);
    CHECK_REFUSED(calloc(1, size), size);
    CHECK_REFUSED(calloc(size, 2), size);
    CHECK_REFUSED(calloc(3, size), size);
    CHECK_REFUSED(calloc(size, size), size);
  }
  CHECK_REFUSED(calloc(opaque((size_t)-1), 2), -1);
  CHECK_REFUSED(calloc(opaque((size_t)1 << 32), opaque((size_t)1 << 32)), 32);
  CHECK_REFUSED(calloc(opaque(((size_t)1 << 32) + 1), opaque(((size_t)1 << 32) - 1 + 2)), 32);
  CHECK_REFUSED(calloc(opaque(SIZE_MAX / 16 + 1), 16), 16);
  CHECK_REFUSED(calloc(16, opaque(SIZE_MAX / 16 + 1)), 16);
}

static void realloc_refuses_and_leaves_the_object_alone(void) {
  static const size_t kOld[] = {1, 40, 1000, 32768, 200000, 4 << 20};
  for (size_t i = 0; i < COUNT(kOld); ++i) {
    char* object = malloc(kOld[i]);
    CHECK(object != NULL);
    fill_pattern(object, kOld[i], i);
    FOR_EACH_SIZE(size) {
      CHECK_REFUSED(realloc(object, size), size);
      CHECK_REFUSED(reallocarray(keep(object), size, 1), size);
      CHECK_REFUSED(reallocarray(keep(object), size, 2), size);
      CHECK_REFUSED(reallocarray(keep(object), 7, size), size);
    }
    CHECK_REFUSED(reallocarray(keep(object), opaque(SIZE_MAX / 16 + 2), 16), 16);
    CHECK_EQ(find_damage(object, kOld[i], kOld[i], i), kOld[i]);
    free(object);
  }
}

static void realloc_of_null_refuses_impossible_sizes(void) {
  FOR_EACH_SIZE(size) {
    CHECK_REFUSED(realloc(NULL, size), size);
    CHECK_REFUSED(reallocarray(keep(NULL), size, 1), size);
    CHECK_REFUSED(reallocarray(keep(NULL), size, 2), size);
  }
}

static void aligned_entry_points_refuse_impossible_sizes_at_every_alignment(void) {
  for (int shift = 3; shift <= 30; ++shift) {
    size_t alignment = (size_t)1 << shift;
    FOR_EACH_SIZE(size) {
      CHECK_REFUSED(memalign(alignment, size), size);
      CHECK_REFUSED(aligned_alloc(alignment, size), size);
      void* untouched = &untouched;
      errno = 4242;
      CHECK_EQ(posix_memalign(&untouched, alignment, size), ENOMEM);
      CHECK_PTR_EQ(untouched, &untouched);
      // POSIX says that the error is returned; glibc sets errno as well, and programs print it. gcc believes POSIX and would
      // not look.
      keep(&errno);
      CHECK_EQ(errno, ENOMEM);
    }
  }
}

static void valloc_and_pvalloc_refuse_impossible_sizes(void) {
  FOR_EACH_SIZE(size) {
    CHECK_REFUSED(valloc(size), size);
    CHECK_REFUSED(pvalloc(size), size);
  }
}

static void huge_alignments_are_refused_not_wrapped(void) {
  enum { kKinds = 3 };
  static const size_t kSizes[kKinds] = {0, 64, (size_t)1 << 40};
  const size_t most = (size_t)1 << 63;  // the greatest power of two: memalign rounds up to it, and knows none above
  for (int i = 0; i < kKinds; ++i) {
    size_t size = opaque(kSizes[i]);
    for (int shift = 48; shift <= 63; ++shift) {
      size_t alignment = opaque((size_t)1 << shift);
      errno = 0;
      void* object = keep(memalign(alignment, size));
      CHECK_MSG(object == NULL && errno == ENOMEM, "memalign(2^%d, %zu): %p, errno %d", shift, size, object, errno);
      errno = 0;
      object = keep(memalign(opaque(alignment - 5), size));
      CHECK_MSG(object == NULL && errno == ENOMEM, "memalign(2^%d - 5, %zu): %p, errno %d", shift, size, object, errno);
      errno = 0;
      object = keep(aligned_alloc(alignment, size));
      CHECK_MSG(object == NULL && errno == ENOMEM, "aligned_alloc(2^%d, %zu): %p, errno %d", shift, size, object,
                errno);
      void* untouched = &untouched;
      CHECK_EQ(posix_memalign(&untouched, alignment, size), ENOMEM);
      CHECK_PTR_EQ(untouched, &untouched);
    }
    static const size_t kAbove[] = {1, 5, 4096, ((size_t)1 << 62), SIZE_MAX / 2};
    for (int k = 0; k < 5; ++k) {
      errno = 0;
      void* object = keep(memalign(opaque(most + kAbove[k]), size));
      CHECK_MSG(object == NULL && errno == EINVAL, "memalign(2^63 + %zu, %zu): %p, errno %d", kAbove[k], size, object,
                errno);
      void* untouched = &untouched;
      CHECK_EQ(posix_memalign(&untouched, opaque(most + kAbove[k]), size), EINVAL);
      CHECK_PTR_EQ(untouched, &untouched);
    }
  }
}

static void the_heap_works_after_all_these_refusals(void) {
  for (int i = 0; i < 1000; ++i) {
    size_t size = (size_t)i * 97 + 1;
    char* object = malloc(size);
    CHECK(object != NULL);
    memset(object, i, size);
    free(object);
  }
}

int main(void) {
  begin(60);
  RUN(malloc_refuses_impossible_sizes);
  RUN(calloc_refuses_impossible_sizes_and_products_that_overflow);
  RUN(realloc_refuses_and_leaves_the_object_alone);
  RUN(realloc_of_null_refuses_impossible_sizes);
  RUN(aligned_entry_points_refuse_impossible_sizes_at_every_alignment);
  RUN(valloc_and_pvalloc_refuse_impossible_sizes);
  RUN(huge_alignments_are_refused_not_wrapped);
  RUN(the_heap_works_after_all_these_refusals);
  return finish();
}
