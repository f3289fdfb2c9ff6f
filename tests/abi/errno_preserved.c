// SPDX-License-Identifier: MIT
//
// errno is left as it was by every call that succeeds, and by free always (POSIX 2024, glibc since 2.33),
// also when the call has to enter the kernel: programs free their buffers between a failed call and the
// report of its errno.
#include "check.h"

#include <pthread.h>

enum { kMark = 4711 };

#define CHECK_KEEPS_ERRNO(size, ...)                                                               \
  do {                                                                                             \
    errno = kMark;                                                                                 \
    __VA_ARGS__;                                                                                   \
    if (errno != kMark) CHECK_FAIL("%s, size %zu: errno %d", #__VA_ARGS__, (size_t)(size), errno); \
  } while (0)

static const size_t kSizes[] = {0,     1,     16,    24,     64,     100,     1000,    4096,     9000,
                                32768, 40000, 65536, 131072, 200000, 1 << 20, 5 << 20, 32 << 20, 128 << 20};
enum { kSizeCount = sizeof kSizes / sizeof kSizes[0] };

static void free_preserves_errno_at_every_size(void) {
  for (int i = 0; i < kSizeCount; ++i) {
    void* block[16];
    for (int j = 0; j < 16; ++j) {
      block[j] = malloc(kSizes[i]);
      CHECK(block[j] != NULL);
      memset(block[j], 1, kSizes[i] < 4096 ? kSizes[i] : 4096);
    }
    for (int j = 0; j < 16; ++j) CHECK_KEEPS_ERRNO(kSizes[i], free(block[j]));
  }
}

static void sized_frees_preserve_errno(void) {
  if (free_sized == NULL || free_aligned_sized == NULL) {
    CHECK(!is_brimful());
    SKIP("this libc has no free_sized");
    return;
  }
  for (int i = 0; i < kSizeCount; ++i) {
    void* block = malloc(kSizes[i]);
    CHECK_KEEPS_ERRNO(kSizes[i], free_sized(block, kSizes[i]));
    block = keep(aligned_alloc(64, kSizes[i]));
    CHECK_KEEPS_ERRNO(kSizes[i], free_aligned_sized(block, 64, kSizes[i]));
  }
}

static void allocation_that_succeeds_leaves_errno_alone(void) {
  for (int i = 0; i < kSizeCount; ++i) {
    size_t size = kSizes[i];
    void* volatile block;
    CHECK_KEEPS_ERRNO(size, block = malloc(size));
    CHECK_KEEPS_ERRNO(size, block = realloc(block, size * 2 + 1));
    CHECK_KEEPS_ERRNO(size, block = realloc(block, size / 2 + 1));
    CHECK_KEEPS_ERRNO(size, (void)malloc_usable_size(block));
    CHECK_KEEPS_ERRNO(size, free(block));
    CHECK_KEEPS_ERRNO(size, block = calloc(size, 1));
    CHECK_KEEPS_ERRNO(size, block = reallocarray(block, size + 1, 2));
    CHECK_KEEPS_ERRNO(size, free(block));
    CHECK_KEEPS_ERRNO(size, block = memalign(4096, size));
    CHECK_KEEPS_ERRNO(size, free(block));
    CHECK_KEEPS_ERRNO(size, block = aligned_alloc(128, size));
    CHECK_KEEPS_ERRNO(size, free(block));
    void* by_posix = NULL;
    CHECK_KEEPS_ERRNO(size, CHECK_EQ(posix_memalign(&by_posix, 1 << 16, size), 0));
    CHECK_KEEPS_ERRNO(size, free(by_posix));
    CHECK_KEEPS_ERRNO(size, block = valloc(size));
    CHECK_KEEPS_ERRNO(size, free(block));
    CHECK_KEEPS_ERRNO(size, block = pvalloc(size));
    CHECK_KEEPS_ERRNO(size, free(block));
    CHECK_KEEPS_ERRNO(size, CHECK_PTR_EQ(realloc(malloc(size), opaque(0)), NULL));
  }
}

static void* free_in_another_thread(void* argument) {
  void** block = (void**)argument;
  for (int i = 0; i < kSizeCount; ++i) CHECK_KEEPS_ERRNO(kSizes[i], free(block[i]));
  for (int i = 0; i < 4000; ++i) CHECK_KEEPS_ERRNO(64, free(block[kSizeCount + i]));
  return NULL;
}

static void free_of_another_threads_objects_preserves_errno(void) {
  static void* block[kSizeCount + 4000];
  for (int i = 0; i < kSizeCount; ++i) block[i] = malloc(kSizes[i]);
  for (int i = 0; i < 4000; ++i) block[kSizeCount + i] = malloc(64);
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, free_in_another_thread, block), 0);
  pthread_join(thread, NULL);
}

static void giving_memory_back_preserves_errno(void) {
  static void* block[20000];
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20000; ++i) {
      block[i] = malloc(1000);
      memset(block[i], 1, 1000);
    }
    for (int i = 0; i < 20000; ++i) CHECK_KEEPS_ERRNO(1000, free(block[i]));
    CHECK_KEEPS_ERRNO(0, (void)malloc_trim(0));
  }
}

int main(void) {
  begin(60);
  RUN(free_preserves_errno_at_every_size);
  RUN(sized_frees_preserve_errno);
  RUN(allocation_that_succeeds_leaves_errno_alone);
  RUN(free_of_another_threads_objects_preserves_errno);
  RUN(giving_memory_back_preserves_errno);
  return finish();
}
