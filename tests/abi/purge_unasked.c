// SPDX-License-Identifier: MIT
//
// A peak is freed, and then the program makes no call at all. With one thread most of it goes back in the frees themselves,
// unless the program has just shown that it wants its memory again; and there is no thread of ours, ever. With threads of
// its own, the background thread gives the rest back, and ends.
//
// hardened-long: its seconds are sleep, and what gives memory back is below the tiers
#include "check.h"

#pragma weak brimful_set
#include "brimful/brimful.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { kObject = 1024, kMost = 256 * 1024, kThreads = 4, kPeakKib = kMost * (kObject / 1024) };
static void** object;  // mapped: the table is no part of the heap under test
static long level;     // resident KiB at the start, with the whole table touched
static pthread_barrier_t filled, emptied, ends;

static void fill(int first, int behind) {
  for (int i = first; i < behind; ++i) {
    object[i] = malloc(kObject);
    CHECK(object[i] != NULL);
    memset(object[i], i, kObject);
  }
}

static void empty(int first, int behind) {
  for (int i = first; i < behind; ++i) free(object[i]);
}

static long excess_kib(void) { return resident_kib() - level; }

static long threads(void) {
  struct stat folder;
  CHECK_EQ(stat("/proc/self/task", &folder), 0);
  return (long)folder.st_nlink - 2;
}

// Until it is so, for ten seconds at most.
static void await_threads(long number) {
  for (int i = 0; i < 1000 && threads() != number; ++i) sleep_ms(10);
  if (is_brimful()) CHECK_EQ(threads(), number);
}

static void a_large_release_goes_back_in_the_frees_that_make_it(void) {
  fill(0, kMost);
  empty(0, kMost);
  say("      %ld of %d MiB are resident", excess_kib() >> 10, kPeakKib >> 10);
  if (is_brimful()) CHECK_LE(excess_kib(), 100 << 10);
}

static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

static void rounds_keep_their_memory_after_the_first(void) {
  double began = seconds_now();
  long last = 0;
  for (int round = 0; round < 4; ++round) {
    long before = faults();
    fill(0, kMost);
    empty(0, kMost);
    last = faults() - before;
    say("      round %d: %ld faults", round, last);
  }
  // On a machine that is busy otherwise, a round may take longer than demand is remembered.
  if (is_brimful() && seconds_now() - began < 3) CHECK_LE(last, kPeakKib / 4 / 4);
}

static void one_thread_stays_one(void) {
  for (int i = 0; i < 20; ++i) {
    free(malloc((size_t)1 << 21));
    sleep_ms(11);
    CHECK_EQ(threads(), 1);
  }
}

static void* work(void* argument) {
  int number = (int)(intptr_t)argument;
  int first = number * (kMost / kThreads), behind = first + kMost / kThreads;
  fill(first, behind);
  pthread_barrier_wait(&filled);
  sleep_ms(20);  // the last look at the clock was long ago
  empty(first, behind);
  pthread_barrier_wait(&emptied);
  pthread_barrier_wait(&ends);
  return NULL;
}

static void in_a_child_there_is_no_thread(void) {
  pid_t child = fork();
  if (child == 0) {
    int failures = check_failures;
    fill(0, kMost / 4);
    empty(0, kMost / 4);
    one_thread_stays_one();
    _exit(check_failures != failures);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}

static void sleeping_threads_keep_nothing_and_the_thread_ends_with_them(void) {
  pthread_t thread[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    CHECK_EQ(pthread_create(&thread[i], NULL, work, (void*)(intptr_t)i), 0);
  }
  pthread_barrier_wait(&filled);
  pthread_barrier_wait(&emptied);
  await_threads(1 + kThreads + 1);
  in_a_child_there_is_no_thread();
  double began = seconds_now();
  if (is_brimful()) {
    while (excess_kib() > kPeakKib / 20 && seconds_now() - began < 20) sleep_ms(50);
  }
  say("      %ld of %d MiB are resident after %.1f s", excess_kib() >> 10, kPeakKib >> 10, seconds_now() - began);
  if (is_brimful()) CHECK_LE(excess_kib(), kPeakKib / 20);
  pthread_barrier_wait(&ends);
  for (int i = 0; i < kThreads; ++i) CHECK_EQ(pthread_join(thread[i], NULL), 0);
  // It leaves the program alone at once, which might want to unshare().
  await_threads(1);
}

int main(void) {
  begin(100);
  int64_t automatic = 2;
  if (brimful_set != NULL) CHECK_EQ(brimful_set("brimful.background_thread", &automatic, sizeof automatic), 0);
  object = mmap(NULL, kMost * sizeof *object, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(object != MAP_FAILED);
  memset(object, 1, kMost * sizeof *object);
  pthread_barrier_init(&filled, NULL, kThreads + 1);
  pthread_barrier_init(&emptied, NULL, kThreads + 1);
  pthread_barrier_init(&ends, NULL, kThreads + 1);
  level = resident_kib();
  RUN(a_large_release_goes_back_in_the_frees_that_make_it);
  RUN(one_thread_stays_one);
  RUN(rounds_keep_their_memory_after_the_first);
  malloc_trim(0);
  RUN(sleeping_threads_keep_nothing_and_the_thread_ends_with_them);
  return finish();
}
