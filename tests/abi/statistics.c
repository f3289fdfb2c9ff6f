// SPDX-License-Identifier: MIT
//
// The statistics of brimful.h as a C program uses them: the numbers of locks, of which sizes and kinds there are, what
// wrong arguments get, and where brimful_print_stats writes. glibc has none of this; there, everything is skipped.
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#pragma weak brimful_get_lock_stats
#pragma weak brimful_print_stats
#include "brimful/brimful.h"

static struct brimful_lock_stats stats_of(enum brimful_lock which, size_t object_bytes) {
  struct brimful_lock_stats stats = {.size = sizeof stats};
  CHECK_EQ(brimful_get_lock_stats(which, object_bytes, &stats), 0);
  CHECK_EQ(stats.size, sizeof stats);
  return stats;
}

static void large_blocks_take_the_heap_lock_for_memory_that_is_new(void) {
  struct brimful_lock_stats heap = stats_of(BRIMFUL_LOCK_HEAP, 0);
  static void* block[100];
  for (int i = 0; i < 100; ++i) block[i] = malloc(1 << 20);
  struct brimful_lock_stats now = stats_of(BRIMFUL_LOCK_HEAP, 0);
  CHECK_EQ(now.locks, 1);
  CHECK_GE(now.acquisitions - heap.acquisitions, 100);
  for (int i = 0; i < 100; ++i) free(block[i]);
  CHECK_LE(now.contended, now.acquisitions);
}

static void a_large_block_freed_just_now_takes_no_lock(void) {
  const char* conf = getenv("BRIMFUL_CONF");
  if (conf != NULL && strstr(conf, "hardened") != NULL) {
    SKIP("tier:hardened keeps no block for the next request");
    return;
  }
  free(malloc(1 << 20));
  struct brimful_lock_stats before = stats_of(BRIMFUL_LOCK_HEAP, 0);
  for (int i = 0; i < 1000; ++i) free(malloc((1 << 20) - i));
  // The clock may have struck meanwhile, and the thread may have moved.
  CHECK_LE(stats_of(BRIMFUL_LOCK_HEAP, 0).acquisitions - before.acquisitions, 100);
}

static void a_class_is_found_by_each_of_its_sizes(void) {
  CHECK_EQ(stats_of(BRIMFUL_LOCK_CENTRAL, 1).object_bytes, 16);
  CHECK_EQ(stats_of(BRIMFUL_LOCK_CENTRAL, 16).object_bytes, 16);
  CHECK_EQ(stats_of(BRIMFUL_LOCK_CENTRAL, 17).object_bytes, 32);
  CHECK_EQ(stats_of(BRIMFUL_LOCK_CENTRAL, 32768).object_bytes, 32768);
  CHECK_EQ(stats_of(BRIMFUL_LOCK_CENTRAL, 17).locks, 1);
  // malloc_trim looks into the index of every class; malloc does only when some index has had a slab.
  struct brimful_lock_stats before = stats_of(BRIMFUL_LOCK_CENTRAL, 30000);
  malloc_trim(0);
  CHECK_GE(stats_of(BRIMFUL_LOCK_CENTRAL, 30000).acquisitions, before.acquisitions + 1);
}

static void the_loop_of_the_header_visits_every_class(void) {
  struct brimful_lock_stats s = {.size = sizeof s};
  uint64_t classes = 0, acquisitions = 0;
  for (size_t n = 1; brimful_get_lock_stats(BRIMFUL_LOCK_CENTRAL, n, &s) == 0; n = s.object_bytes + 1) {
    ++classes;
    acquisitions += s.acquisitions;
  }
  CHECK_EQ(classes, stats_of(BRIMFUL_LOCK_CENTRAL, 0).locks);
  CHECK_EQ(acquisitions, stats_of(BRIMFUL_LOCK_CENTRAL, 0).acquisitions);
}

static void every_context_is_counted(void) { CHECK_GE(stats_of(BRIMFUL_LOCK_CONTEXT, 0).locks, 1); }

static void wrong_arguments_are_refused_and_leave_errno(void) {
  struct brimful_lock_stats s = {.size = sizeof s};
  errno = 4711;
  CHECK_EQ(brimful_get_lock_stats((enum brimful_lock)99, 0, &s), EINVAL);
  CHECK_EQ(brimful_get_lock_stats(BRIMFUL_LOCK_CENTRAL, 32769, &s), EINVAL);
  CHECK_EQ(brimful_get_lock_stats(BRIMFUL_LOCK_HEAP, 16, &s), EINVAL);
  s.size = 8;
  CHECK_EQ(brimful_get_lock_stats(BRIMFUL_LOCK_HEAP, 0, &s), EINVAL);
  CHECK_EQ(brimful_print_stats(-1, BRIMFUL_FORMAT_TEXT), EBADF);
  CHECK_EQ(brimful_print_stats(1, (enum brimful_format)2), EINVAL);
  CHECK_EQ(errno, 4711);
}

static void a_larger_structure_gets_zeros_behind_what_is_known(void) {
  struct {
    struct brimful_lock_stats known;
    uint64_t later;
  } wide;
  memset(&wide, 0x5a, sizeof wide);
  wide.known.size = sizeof wide;
  CHECK_EQ(brimful_get_lock_stats(BRIMFUL_LOCK_HEAP, 0, &wide.known), 0);
  CHECK_EQ(wide.later, 0);
  CHECK_EQ(wide.known.size, sizeof wide);
  CHECK_GE(wide.known.acquisitions, 1);
}

static char text[1 << 17];

static size_t printed(enum brimful_format format) {
  int file = memfd_create("statistics", 0);
  CHECK_EQ(brimful_print_stats(file, format), 0);
  ssize_t length = pread(file, text, sizeof text - 1, 0);
  close(file);
  CHECK_GE(length, 100);
  text[length] = '\0';
  return (size_t)length;
}

static void printing_leaves_memory_as_it_is(void) {
  printed(BRIMFUL_FORMAT_JSON);  // libc's own first use
  size_t before = mallinfo2().uordblks;
  printed(BRIMFUL_FORMAT_TEXT);
  printed(BRIMFUL_FORMAT_JSON);
  CHECK_EQ(mallinfo2().uordblks, before);
}

static void json_is_one_line_with_what_the_calls_say(void) {
  size_t length = printed(BRIMFUL_FORMAT_JSON);
  CHECK_EQ(strcspn(text, "\n"), length - 1);
  char expected[80];
  snprintf(expected, sizeof expected, "\"pid\":%d,", getpid());
  CHECK(strstr(text, expected) != NULL);
  const char* heap = strstr(text, "\"heap\":{\"acquisitions\":");
  CHECK(heap != NULL);
  if (heap == NULL) return;
  unsigned long long said = strtoull(heap + 23, NULL, 10);
  CHECK_GE(said, 1);
  CHECK_LE(said, stats_of(BRIMFUL_LOCK_HEAP, 0).acquisitions);
}

static void text_names_every_kind_of_lock(void) {
  printed(BRIMFUL_FORMAT_TEXT);
  CHECK(strstr(text, "\n  heap ") != NULL);
  CHECK(strstr(text, "\n  central ") != NULL);
  CHECK(strstr(text, "\n  context ") != NULL);
}

static void* churn(void* stop) {
  while (!__atomic_load_n((int*)stop, __ATOMIC_RELAXED)) free(malloc(100000));
  return NULL;
}

static void printing_works_while_threads_allocate_and_fork(void) {
  int stop = 0;
  pthread_t thread[2];
  for (int i = 0; i < 2; ++i) pthread_create(&thread[i], NULL, churn, &stop);
  for (int i = 0; i < 50; ++i) {
    printed(i % 2 ? BRIMFUL_FORMAT_TEXT : BRIMFUL_FORMAT_JSON);
    pid_t child = fork();
    if (child == 0) {
      uint64_t before = stats_of(BRIMFUL_LOCK_HEAP, 0).acquisitions;
      free(malloc(1 << 20));
      printed(BRIMFUL_FORMAT_JSON);
      _exit(stats_of(BRIMFUL_LOCK_HEAP, 0).acquisitions > before && check_failures == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 2; ++i) pthread_join(thread[i], NULL);
}

int main(void) {
  begin(60);
  if (brimful_print_stats == NULL) {
    say("skip  the allocator has no such calls");
    CHECK(!is_brimful());
    return finish();
  }
  RUN(large_blocks_take_the_heap_lock_for_memory_that_is_new);
  RUN(a_large_block_freed_just_now_takes_no_lock);
  RUN(a_class_is_found_by_each_of_its_sizes);
  RUN(the_loop_of_the_header_visits_every_class);
  RUN(every_context_is_counted);
  RUN(wrong_arguments_are_refused_and_leave_errno);
  RUN(a_larger_structure_gets_zeros_behind_what_is_known);
  RUN(printing_leaves_memory_as_it_is);
  RUN(json_is_one_line_with_what_the_calls_say);
  RUN(text_names_every_kind_of_lock);
  RUN(printing_works_while_threads_allocate_and_fork);
  return finish();
}
