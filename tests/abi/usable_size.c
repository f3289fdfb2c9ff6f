// SPDX-License-Identifier: MIT
//
// malloc_usable_size: at least what was asked for, the same for life, and every byte of it writable without
// harm to a neighbour. Programs that were compiled with _FORTIFY_SOURCE=3 rely on "the same for life": they
// write up to the usable size after the compiler was told the requested one.
#include "check.h"

enum { kCount = 3000 };
static unsigned char* object[kCount];
static size_t asked[kCount], usable[kCount];

static size_t size_of_object(int i, uint64_t* random) {
  if (i % 100 == 0) return (size_t)(next_random(random) % (1 << 20));
  if (i % 10 == 0) return (size_t)(next_random(random) % 40000);
  return (size_t)(next_random(random) % 1100);
}

static void usable_size_is_at_least_the_size_asked_for(void) {
  for (size_t size = 0; size < 40000; size += size < 2000 ? 1 : 61) {
    void* by_malloc = malloc(size);
    CHECK_GE(malloc_usable_size(by_malloc), size);
    free(by_malloc);
  }
  for (size_t size = 40000; size < ((size_t)1 << 31); size = size * 3 / 2 + 11) {
    void* by_malloc = malloc(size);
    CHECK(by_malloc != NULL);
    CHECK_GE(malloc_usable_size(by_malloc), size);
    free(by_malloc);
  }
}

static void all_usable_bytes_can_be_written_and_belong_to_one_object(void) {
  uint64_t random = 1;
  for (int i = 0; i < kCount; ++i) {
    asked[i] = size_of_object(i, &random);
    object[i] = i % 3 == 0 ? calloc(1, asked[i]) : i % 7 == 0 ? memalign(256, asked[i]) : malloc(asked[i]);
    CHECK(object[i] != NULL);
    usable[i] = malloc_usable_size(object[i]);
    CHECK_GE(usable[i], asked[i]);
    fill_pattern(object[i], usable[i], (uint64_t)i);
  }
  for (int i = 0; i < kCount; ++i) {
    CHECK_EQ(malloc_usable_size(object[i]), usable[i]);
    CHECK_EQ(find_damage(object[i], usable[i], usable[i], (uint64_t)i), usable[i]);
  }
  for (int i = 0; i < kCount; i += 2) free(object[i]);
  for (int i = 1; i < kCount; i += 2) {
    CHECK_EQ(malloc_usable_size(object[i]), usable[i]);
    CHECK_EQ(find_damage(object[i], usable[i], usable[i], (uint64_t)i), usable[i]);
    free(object[i]);
  }
}

static void growing_into_the_usable_size_does_not_move_a_small_object(void) {
  if (!is_brimful()) {
    SKIP("glibc moves when it likes");
    return;
  }
  for (size_t size = 1; size <= 32768; size = size * 5 / 4 + 1) {
    void* before = malloc(size);
    size_t address = opaque((size_t)before);
    size_t room = malloc_usable_size(before);
    void* after = keep(realloc(before, room));
    CHECK_EQ((size_t)after, address);
    CHECK_EQ(malloc_usable_size(after), room);
    free(after);
  }
}

static void waste_is_at_most_an_eighth_up_to_32_kib(void) {
  if (!is_brimful()) {
    SKIP("a promise of brimful's size classes");
    return;
  }
  for (size_t size = 128; size <= 32768; ++size) {
    void* by_malloc = malloc(size);
    size_t room = malloc_usable_size(by_malloc);
    CHECK_MSG((room - size) * 8 <= room, "size %zu has %zu usable bytes", size, room);
    free(by_malloc);
  }
}

int main(void) {
  begin(30);
  RUN(usable_size_is_at_least_the_size_asked_for);
  RUN(all_usable_bytes_can_be_written_and_belong_to_one_object);
  RUN(growing_into_the_usable_size_does_not_move_a_small_object);
  RUN(waste_is_at_most_an_eighth_up_to_32_kib);
  return finish();
}
