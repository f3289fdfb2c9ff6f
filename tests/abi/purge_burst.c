// SPDX-License-Identifier: MIT
//
// Bursts: much memory is used for a moment, and then the program does little, or nothing. What it does not use any more
// goes back all the same:
//
//   light activity   by the ticks of slow paths, in three seconds
//   fast paths only  by the same: a program that only hits has a slow path now and then, too
//   rest             at the first call after it; with background_thread:1 while it rests
//   malloc_trim      at once, also pages inside slabs that live on
//
// and the same in the child of a fork. The program runs itself again with the thread on; BRIMFUL_BURST_MIB sets the size.
//
// hardened-long: its 20 seconds of processor are in the burst, and what gives memory back is below the tiers
// no-static: it sleeps for half a minute, and what it tests does not depend on how the library is linked
#include "check.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static size_t burst_bytes = (size_t)192 << 20;
enum { kMost = 1 << 20 };
static void** object;
static size_t* bytes_of;
static int count;
static long level;

static int with_thread(void) { return getenv("BRIMFUL_BACKGROUND_THREAD") != NULL; }

static long excess_kib(void) { return resident_kib() - level; }

// 64 bytes to 100 KB, each doubling as likely as the next.
static size_t random_size(uint64_t* random) {
  unsigned doubling = (unsigned)(next_random(random) % 11);
  size_t size = ((size_t)64 << doubling) + next_random(random) % ((size_t)64 << doubling);
  return size > 100000 ? 100000 : size;
}

static void burst(void) {
  uint64_t random = 5;
  size_t total = 0;
  for (count = 0; total < burst_bytes && count < kMost; ++count) {
    bytes_of[count] = random_size(&random);
    object[count] = malloc(bytes_of[count]);
    CHECK(object[count] != NULL);
    memset(object[count], count, bytes_of[count]);
    total += bytes_of[count];
  }
  for (int i = count - 1; i > 0; --i) {
    int j = (int)(next_random(&random) % (uint64_t)(i + 1));
    void* moved = object[i];
    object[i] = object[j];
    object[j] = moved;
  }
  CHECK_GE(excess_kib(), (long)(burst_bytes >> 10) * 9 / 10);
}

static void free_all(void) {
  for (int i = 0; i < count; ++i) free(object[i]);
  count = 0;
}

static long seconds_of(void (*activity)(void), double seconds, long target_kib) {
  double began = seconds_now();
  while (seconds_now() - began < seconds && excess_kib() > target_kib) activity();
  long excess = excess_kib();
  say("      %ld KiB above the start after %.2f s", excess, seconds_now() - began);
  return excess;
}

static void a_little(void) {
  void* some[50];
  for (int i = 0; i < 50; ++i) some[i] = memset(malloc((size_t)(i * 37 % 3000) + 1), 1, 1);
  for (int i = 0; i < 50; ++i) free(some[i]);
  sleep_ms(5);
}

// One object at a time, of one size: each call a hit, but for one in some thousand.
static void only_hits(void) {
  for (int i = 0; i < 1000; ++i) free(memset(malloc(64), 1, 64));
  sleep_ms(1);
}

static void only_large_blocks(void) {
  free(malloc(200000));
  sleep_ms(5);
}

static void light_activity_is_enough(void) {
  burst();
  free_all();
  long excess = seconds_of(a_little, 3, 8 << 10);
  if (is_brimful()) CHECK_LE(excess, 40 << 10);
}

static void hits_are_enough(void) {
  burst();
  free_all();
  long excess = seconds_of(only_hits, 4, 8 << 10);
  if (is_brimful()) CHECK_LE(excess, 40 << 10);
}

static void large_blocks_are_enough(void) {
  burst();
  free_all();
  long excess = seconds_of(only_large_blocks, 4, 8 << 10);
  if (is_brimful()) CHECK_LE(excess, 40 << 10);
}

static void frees_alone_are_enough(void) {
  // The second half is freed over two seconds: by its end the first has gone back.
  burst();
  int half = count / 2;
  for (int i = 0; i < half; ++i) free(object[i]);
  long held = excess_kib();
  double began = seconds_now();
  for (int i = half; i < count; ++i) {
    free(object[i]);
    double due = began + 2.0 * (i - half) / (count - half);
    if (seconds_now() < due) sleep_ms(1);
  }
  say("      %ld MiB with half of it freed, %ld MiB with all of it freed during two seconds", held >> 10,
      excess_kib() >> 10);
  if (is_brimful()) CHECK_LE(excess_kib(), (long)(burst_bytes >> 10) / 2);
  count = 0;
}

static void after_a_rest_the_next_call_is_enough(void) {
  burst();
  free_all();
  for (int i = 0; i < 20; ++i) a_little();
  sleep_ms(4000);
  long before = excess_kib();
  for (int i = 0; i < 3; ++i) only_hits();
  only_large_blocks();
  say("      %ld MiB after four seconds of rest, %ld KiB after the next calls", before >> 10, excess_kib());
  if (!is_brimful()) return;
  if (with_thread()) CHECK_LE(before, (long)(burst_bytes >> 10) / 20);
  CHECK_LE(excess_kib(), with_thread() ? (long)(burst_bytes >> 10) / 20 : 40 << 10);
}

static void trimming_gives_back_pages_inside_slabs(void) {
  burst();
  uint64_t random = 6;
  size_t live = 0, pages = 0;
  for (int i = 0; i < count; ++i) {
    if (next_random(&random) % 10 == 0) {
      size_t size = malloc_usable_size(object[i]), start = (size_t)object[i];
      live += size;
      pages += (start + size - 1) / 4096 - start / 4096 + 1;
      continue;
    }
    free(object[i]);
    object[i] = NULL;
  }
  malloc_trim(0);
  long excess = excess_kib();
  say("      %zu KiB live, on at most %zu KiB of pages; resident %ld KiB after malloc_trim", live >> 10, pages * 4,
      excess);
  if (is_brimful()) CHECK_LE(excess, (long)pages * 4 * 11 / 10 + 4096);
  free_all();
  malloc_trim(0);
}

static void in_a_child_of_fork(void (*test)(void)) {
  int failures = check_failures;
  pid_t child = fork();
  if (child == 0) {
    test();
    _exit(check_failures != failures);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}

static void a_child_gives_back_what_its_parent_freed(void) {
  burst();
  free_all();
  in_a_child_of_fork(with_thread() ? after_a_rest_the_next_call_is_enough : light_activity_is_enough);
  seconds_of(a_little, 3, 8 << 10);
}

static long threads(void) {
  char line[128];
  long number = -1;
  FILE* file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) sscanf(line, "Threads: %ld", &number);
  if (file != NULL) fclose(file);
  return number;
}

static void at_rest_there_is_no_thread(void) {
  if (!with_thread() || !is_brimful()) {
    SKIP("there is none anyway");
    return;
  }
  burst();
  free_all();
  for (int i = 0; i < 20; ++i) a_little();
  CHECK_EQ(threads(), 2);
  double began = seconds_now();
  while (threads() != 1 && seconds_now() - began < 12) sleep_ms(100);
  say("      gone after %.2f s", seconds_now() - began);
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  sleep_ms(500);
  getrusage(RUSAGE_SELF, &after);
  CHECK_EQ(threads(), 1);
  CHECK_LE(after.ru_nvcsw - before.ru_nvcsw, 2);
  burst();
  free_all();
  for (int i = 0; i < 20; ++i) a_little();
  CHECK_EQ(threads(), 2);
}

int main(int argc, char** argv) {
  (void)argc;
  const char* size = getenv("BRIMFUL_BURST_MIB");
  if (size != NULL) burst_bytes = (size_t)atol(size) << 20;
  begin(100);
  object = mmap(NULL, kMost * sizeof *object, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bytes_of = mmap(NULL, kMost * sizeof *bytes_of, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(object != MAP_FAILED && bytes_of != MAP_FAILED);
  memset(object, 1, kMost * sizeof *object);
  memset(bytes_of, 1, kMost * sizeof *bytes_of);
  level = resident_kib();
  RUN(light_activity_is_enough);
  RUN(hits_are_enough);
  RUN(large_blocks_are_enough);
  RUN(frees_alone_are_enough);
  RUN(after_a_rest_the_next_call_is_enough);
  RUN(trimming_gives_back_pages_inside_slabs);
  RUN(a_child_gives_back_what_its_parent_freed);
  RUN(at_rest_there_is_no_thread);
  int failed = finish();
  if (failed != 0 || with_thread() || !is_brimful()) return failed;
  setenv("BRIMFUL_BACKGROUND_THREAD", "1", 1);
  execv("/proc/self/exe", argv);
  return 1;
}
