// SPDX-License-Identifier: MIT
//
// For tests that let threads call parts of the C library beside one that forks and, in the child, allocates, which a
// child of glibc can do. A thread that makes no step for several seconds is a deadlock, and named.
#ifndef BRIMFUL_TESTS_ABI_BESIDE_FORKS_H_
#define BRIMFUL_TESTS_ABI_BESIDE_FORKS_H_

#include "check.h"

#include <pthread.h>
#include <sys/wait.h>

enum { kMostThreads = 6, kStallSeconds = 15 };
static const double kSecondsEach = 0.12;

typedef void (*Step)(uint64_t* random);

struct Worker {
  const char* name;
  Step step;
  volatile long steps;
  pthread_t thread;
};

static struct Worker worker[kMostThreads];
static volatile int is_over;

static void* work(void* argument) {
  struct Worker* self = argument;
  uint64_t random = (uint64_t)(uintptr_t)self;
  while (!is_over) {
    self->step(&random);
    __atomic_add_fetch(&self->steps, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

static int use_heap(void) {
  static const size_t kSizes[] = {24, 500, 5000, 40000, 400000};
  for (int i = 0; i < 5; ++i) {
    char* object = malloc(kSizes[i]);
    if (object == NULL) return 0;
    object[0] = 1;
    object = realloc(object, kSizes[i] * 2);
    if (object == NULL) return 0;
    free(object);
  }
  return 1;
}

static void step_fork(uint64_t* random) {
  (void)random;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGALRM, SIG_DFL);
    alarm(20);
    _exit(use_heap() ? 0 : 3);
  }
  if (child < 0) {
    CHECK_FAIL("fork: errno %d", errno);
    return;
  }
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with wait status %#x", status);
}

CHECK_UNUSED static void run_beside_forks(int count) {
  worker[count] = (struct Worker){"fork", step_fork, 0, 0};
  is_over = 0;
  for (int i = 0; i <= count; ++i) CHECK_EQ(pthread_create(&worker[i].thread, NULL, work, &worker[i]), 0);
  long seen[kMostThreads] = {0};
  double begin = seconds_now(), moved[kMostThreads];
  for (int i = 0; i <= count; ++i) moved[i] = begin;
  int all_moved = 0;
  while (seconds_now() < begin + kSecondsEach || !all_moved) {
    sleep_ms(5);
    all_moved = 1;
    double now = seconds_now();
    for (int i = 0; i <= count; ++i) {
      long steps = __atomic_load_n(&worker[i].steps, __ATOMIC_RELAXED);
      if (steps != seen[i]) moved[i] = now;
      seen[i] = steps;
      all_moved &= steps > 0;
      if (now - moved[i] < kStallSeconds) continue;
      say("FAIL  %s: deadlock: these wait for one another, for %d seconds by now:", check_current_test, kStallSeconds);
      for (int k = 0; k <= count; ++k)
        if (now - moved[k] >= 2) say("      %s, after %ld steps", worker[k].name, seen[k]);
      _exit(97);
    }
  }
  is_over = 1;
  for (int i = 0; i <= count; ++i) pthread_join(worker[i].thread, NULL);
  say("      %ld forks beside %ld steps of %s", worker[count].steps, worker[0].steps, worker[0].name);
}

// Runs one or two kinds of step (step_2 may be NULL) and forks, each in a thread of its own, for kSecondsEach and until
// each has made a step.
CHECK_UNUSED static void beside_forks(const char* name_1, Step step_1, const char* name_2, Step step_2) {
  int count = 0;
  worker[count++] = (struct Worker){name_1, step_1, 0, 0};
  if (step_2 != NULL) worker[count++] = (struct Worker){name_2, step_2, 0, 0};
  run_beside_forks(count);
}

#endif  // BRIMFUL_TESTS_ABI_BESIDE_FORKS_H_
