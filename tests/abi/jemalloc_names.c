// SPDX-License-Identifier: MIT
//
// The names that jemalloc adds to C's: what programs that know them do with them. Redis' look at its memory, RocksDB's
// report, the question by which folly finds out whether it runs on jemalloc (it doesn't), and the calls with flags. glibc
// has none of this; there, everything is skipped.
#include "check.h"

#pragma weak mallctl
#pragma weak mallctlnametomib
#pragma weak mallctlbymib
#pragma weak malloc_stats_print
#pragma weak mallocx
#pragma weak rallocx
#pragma weak xallocx
#pragma weak sallocx
#pragma weak dallocx
#pragma weak sdallocx
#pragma weak nallocx
extern int mallctl(const char*, void*, size_t*, void*, size_t);
extern int mallctlnametomib(const char*, size_t*, size_t*);
extern int mallctlbymib(const size_t*, size_t, void*, size_t*, void*, size_t);
extern void malloc_stats_print(void (*)(void*, const char*), void*, const char*);
extern void* mallocx(size_t, int);
extern void* rallocx(void*, size_t, int);
extern size_t xallocx(void*, size_t, size_t, int);
extern size_t sallocx(const void*, int);
extern void dallocx(void*, int);
extern void sdallocx(void*, size_t, int);
extern size_t nallocx(size_t, int);

enum { kZero = 0x40, kCacheNone = 1 << 8, kArenaFirst = 1 << 20 };
static int aligned(int log) { return log; }

static void redis_sees_its_memory_and_purges_it(void) {
  uint64_t epoch = 1;
  size_t size = sizeof epoch, allocated = 0, active = 0, resident = 0;
  char* held = memset(malloc(10 << 20), 1, 10 << 20);
  CHECK_EQ(mallctl("epoch", &epoch, &size, &epoch, size), 0);
  CHECK_GE(epoch, 1);
  size = sizeof allocated;
  CHECK_EQ(mallctl("stats.resident", &resident, &size, NULL, 0), 0);
  CHECK_EQ(mallctl("stats.active", &active, &size, NULL, 0), 0);
  CHECK_EQ(mallctl("stats.allocated", &allocated, &size, NULL, 0), 0);
  CHECK_GE(allocated, 10 << 20);
  CHECK_GE(active, allocated);
  CHECK_GE(resident, active);
  free(held);
  unsigned arenas = 0;
  size = sizeof arenas;
  CHECK_EQ(mallctl("arenas.narenas", &arenas, &size, NULL, 0), 0);
  char name[32];
  snprintf(name, sizeof name, "arena.%u.purge", arenas);
  CHECK_EQ(mallctl(name, NULL, NULL, NULL, 0), 0);
}

static void redis_compares_what_it_has_with_what_it_would_get(void) {
  static const int flags[] = {0, 6, 12};
  for (size_t bytes = 1; bytes < 3000000; bytes += bytes / 7 + 1) {
    for (int i = 0; i < 3; ++i) {
      void* block = mallocx(bytes, flags[i]);
      CHECK_EQ(nallocx(bytes, flags[i]), malloc_usable_size(block));
      CHECK_EQ((uintptr_t)block % ((size_t)1 << flags[i]), 0);
      free(block);
    }
  }
  CHECK_EQ(nallocx(SIZE_MAX, 0), 0);
}

struct text {
  char* at;
  char* end;
};

static void append(void* context, const char* piece) {
  struct text* into = context;
  size_t length = strlen(piece);
  if (length >= (size_t)(into->end - into->at)) return;
  memcpy(into->at, piece, length + 1);
  into->at += length;
}

static void rocksdb_gets_its_report(void) {
  static char text[1 << 20];
  struct text into = {text, text + sizeof text};
  malloc_stats_print(append, &into, "");
  CHECK(strstr(text, "brimful: statistics of process") != NULL);
  CHECK(strstr(text, "resident") != NULL);
  into.at = text;
  malloc_stats_print(append, &into, "J");
  CHECK(text[0] == '{' && into.at[-2] == '}');
}

static void folly_is_told_that_this_is_no_jemalloc(void) {
  volatile uint64_t* counter = NULL;
  size_t size = sizeof counter;
  CHECK_EQ(mallctl("thread.allocatedp", (void*)&counter, &size, NULL, 0), ENOENT);
}

static void a_name_can_be_looked_up_once(void) {
  size_t mib[8], length = 8;
  CHECK_EQ(mallctlnametomib("arenas.bin.0.size", mib, &length), 0);
  CHECK_EQ(length, 4);
  size_t before = 0;
  for (size_t i = 0; i < 10; ++i) {
    size_t bytes = 0, size = sizeof bytes;
    mib[2] = i;
    CHECK_EQ(mallctlbymib(mib, length, &bytes, &size, NULL, 0), 0);
    CHECK_EQ(bytes, before + 16);
    before = bytes;
  }
  size_t bytes = 0, size = sizeof bytes;
  mib[2] = 1000;
  CHECK_EQ(mallctlbymib(mib, length, &bytes, &size, NULL, 0), ENOENT);
  CHECK_EQ(mallctlbymib(mib, 3, &bytes, &size, NULL, 0), ENOENT);
  mib[0] = 100000;
  CHECK_EQ(mallctlbymib(mib, length, &bytes, &size, NULL, 0), ENOENT);
  length = 2;
  CHECK_EQ(mallctlnametomib("arenas.bin.0.size", mib, &length), EINVAL);
  CHECK_EQ(mallctlnametomib("no.such.name", mib, &length), ENOENT);
  length = 8;
  CHECK_EQ(mallctlnametomib("stats.arenas.4096.bins.3.curregs", mib, &length), 0);
  CHECK_EQ(length, 6);
  CHECK_EQ(mib[2], 4096);
  CHECK_EQ(mib[4], 3);
  length = 1;
  CHECK_EQ(mallctlnametomib("epoch", mib, &length), 0);
  uint64_t epoch = 1;
  size = sizeof epoch;
  CHECK_EQ(mallctlbymib(mib, 1, &epoch, &size, &epoch, sizeof epoch), 0);
}

static void errors_are_those_of_the_manual(void) {
  uint64_t value = 1;
  size_t size = sizeof value - 1;
  CHECK_EQ(mallctl("epoch", NULL, NULL, &value, sizeof value - 1), EINVAL);
  CHECK_EQ(mallctl("epoch", &value, &size, NULL, 0), EINVAL);
  CHECK_EQ(mallctl("version", NULL, NULL, "0.0.0", 5), EPERM);
  CHECK_EQ(mallctl("arena.0.purge", &value, &size, NULL, 0), EPERM);
  CHECK_EQ(mallctl("arenas.create", &value, &size, NULL, 0), ENOENT);
}

static void one_buffer_takes_the_old_value_and_gives_the_new_one(void) {
  int64_t before = 0, value = 777;
  size_t size = sizeof before;
  CHECK_EQ(mallctl("arenas.muzzy_decay_ms", &before, &size, &value, sizeof value), 0);
  value = 888;
  CHECK_EQ(mallctl("arenas.muzzy_decay_ms", &value, &size, &value, sizeof value), 0);
  CHECK_EQ(value, 777);
  CHECK_EQ(mallctl("arenas.muzzy_decay_ms", &value, &size, &before, sizeof before), 0);
  CHECK_EQ(value, 888);
}

// BIND and others: blocks of these calls and of malloc's are of one heap.
static void blocks_of_either_kind_are_freed_by_either(void) {
  free(mallocx(100, 0));
  dallocx(malloc(100), 0);
  sdallocx(mallocx(100, aligned(8)), 100, aligned(8));
  sdallocx(malloc(1 << 20), 1 << 20, 0);
  dallocx(mallocx(5000, kCacheNone | kArenaFirst), kCacheNone);
  char* block = mallocx(1000, 0);
  CHECK_EQ(sallocx(block, 0), malloc_usable_size(block));
  CHECK_EQ(xallocx(block, 5000, 0, 0), malloc_usable_size(block));
  free(realloc(block, 3000));
  CHECK_PTR_EQ(mallocx(SIZE_MAX / 2 + 1, 0), NULL);
  CHECK_PTR_EQ(mallocx(SIZE_MAX / 2 + 1, kZero), NULL);
}

static void blocks_grow_with_their_contents_and_zeros_behind(void) {
  for (int log = 0; log <= 13; log += 13) {
    for (size_t bytes = 10; bytes < 400000; bytes = bytes * 5 / 2) {
      free(memset(malloc(3 * bytes), 0xa5, 3 * bytes));  // what lies about is not zero
      char* block = mallocx(bytes, aligned(log) | kZero);
      size_t usable = sallocx(block, 0);
      CHECK_EQ(find_nonzero(block, usable), usable);
      fill_pattern(block, usable, bytes);
      block = rallocx(block, 3 * bytes, aligned(log) | kZero);
      size_t grown = sallocx(block, 0);
      CHECK_EQ((uintptr_t)block % ((size_t)1 << log), 0);
      CHECK_EQ(find_damage(block, bytes, usable, bytes), bytes);
      if (grown > usable) CHECK_EQ(find_nonzero(block + usable, grown - usable), grown - usable);
      block = rallocx(block, bytes / 2, aligned(log));
      CHECK_EQ(find_damage(block, bytes / 2, usable, bytes), bytes / 2);
      dallocx(block, 0);
    }
  }
  void* block = mallocx(100, 0);
  CHECK_PTR_EQ(rallocx(block, SIZE_MAX / 2 + 1, 0), NULL);
  CHECK_PTR_EQ(rallocx(block, SIZE_MAX / 2 + 1, aligned(12)), NULL);
  dallocx(block, 0);
}

int main(void) {
  begin(60);
  if (mallctl == NULL || nallocx == NULL) {
    say("skip  the allocator has no such calls");
    CHECK(!is_brimful());
    return finish();
  }
  RUN(redis_sees_its_memory_and_purges_it);
  RUN(redis_compares_what_it_has_with_what_it_would_get);
  RUN(rocksdb_gets_its_report);
  RUN(folly_is_told_that_this_is_no_jemalloc);
  RUN(a_name_can_be_looked_up_once);
  RUN(errors_are_those_of_the_manual);
  RUN(one_buffer_takes_the_old_value_and_gives_the_new_one);
  RUN(blocks_of_either_kind_are_freed_by_either);
  RUN(blocks_grow_with_their_contents_and_zeros_behind);
  return finish();
}
