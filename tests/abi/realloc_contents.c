// SPDX-License-Identifier: MIT
//
// realloc keeps min(old, new) bytes, at every scale from one byte to 256 MiB, growing and shrinking, in small
// steps and in jumps across the borders between small, large and mapped blocks. The pattern depends on the
// position, so contents that arrive shifted are found as well as contents that are lost.
#include "check.h"

static void contents_survive_growth_from_1_byte_to_256_mib(void) {
  size_t size = 1;
  char* object = malloc(size);
  fill_pattern(object, size, 3);
  while (size < (size_t)256 << 20) {
    size_t larger = size < 4096 ? size + 1 + size / 16 : size * 2 + 77;
    if (larger > (size_t)256 << 20) larger = (size_t)256 << 20;
    object = realloc(object, larger);
    CHECK(object != NULL);
    if (object == NULL) return;
    CHECK_MSG(find_damage(object, size, size, 3) == size, "%zu to %zu", size, larger);
    size = larger;
    fill_pattern(object, size, 3);
  }
  while (size > 1) {
    size_t smaller = size < 4096 ? size - 1 - size / 16 : size / 2 - 13;
    object = realloc(object, smaller);
    CHECK(object != NULL);
    if (object == NULL) return;
    // The pattern's last bytes depend on the length that was filled, so look at it through the old length.
    CHECK_MSG(find_damage(object, smaller, size, 3) == smaller, "%zu to %zu", size, smaller);
    size = smaller;
    fill_pattern(object, size, 3);
  }
  free(object);
}

static void every_small_size_can_become_every_other(void) {
  static const size_t kSteps[] = {1,   8,    15,   16,   17,   32,    100,   256,   257,  288,
                                  500, 1024, 1025, 4096, 9000, 32768, 32769, 65536, 70000};
  enum { kCount = sizeof kSteps / sizeof kSteps[0] };
  for (int from = 0; from < kCount; ++from) {
    for (int to = 0; to < kCount; ++to) {
      size_t before = kSteps[from], after = kSteps[to], kept = before < after ? before : after;
      char* object = malloc(before);
      fill_pattern(object, before, (uint64_t)from);
      object = realloc(object, after);
      CHECK(object != NULL);
      CHECK_MSG(find_damage(object, kept, before, (uint64_t)from) == kept, "%zu to %zu", before, after);
      CHECK_GE(malloc_usable_size(object), after);
      memset(object, 0x5a, after);
      free(object);
    }
  }
}

static void neighbours_stay_intact_in_a_crowd_of_growing_objects(void) {
  enum { kCount = 400, kRounds = 60 };
  static char* object[kCount];
  static size_t size[kCount];
  uint64_t random = 99;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kCount; ++i) {
      size_t scale = (size_t)1 << (4 + next_random(&random) % (i % 20 == 0 ? 17 : 10));
      size_t next = 1 + next_random(&random) % scale;
      if (round == 0) {
        object[i] = malloc(next);
      } else {
        size_t kept = size[i] < next ? size[i] : next;
        object[i] = realloc(object[i], next);
        CHECK(object[i] != NULL);
        CHECK_MSG(find_damage(object[i], kept, size[i], (uint64_t)i * 1000) == kept, "%zu to %zu", size[i], next);
      }
      size[i] = next;
      fill_pattern(object[i], next, (uint64_t)i * 1000);
    }
  }
  for (int i = 0; i < kCount; ++i) free(object[i]);
}

static void large_objects_survive_random_sizes(void) {
  enum { kCount = 12, kRounds = 40 };
  char* object[kCount] = {0};
  size_t size[kCount] = {0};
  uint64_t random = 7;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kCount; ++i) {
      size_t next = 30000 + next_random(&random) % (i < 3 ? 24 << 20 : 600000);
      size_t kept = size[i] < next ? size[i] : next;
      object[i] = realloc(object[i], next);
      CHECK(object[i] != NULL);
      if (object[i] == NULL) return;
      // Three places stand for the whole, so that the test spends its time in realloc and not in memset.
      if (kept != 0) {
        CHECK_EQ(object[i][0], (char)(i + 1));
        CHECK_EQ(object[i][29999], (char)(i + 2));
        if (size[i] <= next) CHECK_EQ(object[i][size[i] - 1], (char)(i + 3));
      }
      size[i] = next;
      object[i][0] = (char)(i + 1);
      object[i][29999] = (char)(i + 2);
      object[i][next - 1] = (char)(i + 3);
    }
  }
  for (int i = 0; i < kCount; ++i) free(object[i]);
}

static void reallocarray_keeps_contents_too(void) {
  unsigned* numbers = NULL;
  for (size_t count = 1; count < 2000000; count *= 3) {
    numbers = reallocarray(keep(numbers), count, sizeof *numbers);
    CHECK(numbers != NULL);
    for (size_t i = 0; i < count; ++i) {
      if (i < count / 3) CHECK_EQ(numbers[i], (unsigned)i * 3u);
      numbers[i] = (unsigned)i * 3u;
    }
  }
  free(numbers);
}

int main(void) {
  begin(60);
  RUN(contents_survive_growth_from_1_byte_to_256_mib);
  RUN(every_small_size_can_become_every_other);
  RUN(neighbours_stay_intact_in_a_crowd_of_growing_objects);
  RUN(large_objects_survive_random_sizes);
  RUN(reallocarray_keeps_contents_too);
  return finish();
}
