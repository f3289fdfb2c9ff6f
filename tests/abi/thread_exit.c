// SPDX-License-Identifier: MIT
//
// The end of a thread. Destructors of thread-specific data run after everything else, in no useful order, up
// to PTHREAD_DESTRUCTOR_ITERATIONS rounds, and programs allocate and free in each of them: before and after
// the allocator's own clean-up, if it has one. What a dead thread leaves behind must be usable and freeable
// by others.
#include "check.h"

#include <limits.h>
#include <pthread.h>

enum { kKeys = 40, kThreads = 200 };
static pthread_key_t key[kKeys];
static int destructor_runs;

typedef struct Value {
  int round;
  int number;
  char* text;
} Value;

static void destroy(void* argument) {
  Value* value = argument;
  __atomic_add_fetch(&destructor_runs, 1, __ATOMIC_RELAXED);
  char expected[64];
  snprintf(expected, sizeof expected, "value %d of round %d", value->number, value->round);
  CHECK_MSG(strcmp(value->text, expected) == 0, "%.60s", value->text);
  free(value->text);
  // Churn in every class while the thread is dying.
  void* object[50];
  for (int i = 0; i < 50; ++i) object[i] = memset(malloc((size_t)16 << (i % 12)), i, 16);
  for (int i = 0; i < 50; ++i) free(object[i]);
  if (value->round + 1 < PTHREAD_DESTRUCTOR_ITERATIONS) {
    Value* next = malloc(sizeof *next);
    next->round = value->round + 1;
    next->number = value->number;
    CHECK_GE(asprintf(&next->text, "value %d of round %d", next->number, next->round), 1);
    pthread_setspecific(key[value->number], next);
  }
  free(value);
}

static void* thread_with_values(void* argument) {
  for (int i = 0; i < kKeys; ++i) {
    Value* value = calloc(1, sizeof *value);
    value->number = i;
    CHECK_GE(asprintf(&value->text, "value %d of round %d", i, 0), 1);
    pthread_setspecific(key[i], value);
  }
  // Left behind for the one who joins.
  char* gift = malloc(1000);
  fill_pattern(gift, 1000, (uint64_t)(uintptr_t)argument);
  return gift;
}

static void destructors_of_thread_specific_data_allocate_and_free_in_every_round(void) {
  for (int i = 0; i < kKeys; ++i) CHECK_EQ(pthread_key_create(&key[i], destroy), 0);
  for (int first = 0; first < kThreads; first += 4) {
    pthread_t thread[4];
    for (int i = 0; i < 4; ++i)
      CHECK_EQ(pthread_create(&thread[i], NULL, thread_with_values, (void*)(uintptr_t)(first + i)), 0);
    for (int i = 0; i < 4; ++i) {
      void* gift = NULL;
      pthread_join(thread[i], &gift);
      CHECK_EQ(find_damage(gift, 1000, 1000, (uint64_t)(first + i)), 1000);
      free(gift);
    }
  }
  CHECK_EQ(destructor_runs, kThreads * kKeys * PTHREAD_DESTRUCTOR_ITERATIONS);
  for (int i = 0; i < kKeys; ++i) pthread_key_delete(key[i]);
}

static void first_free_in_destructor(void* argument) { free(argument); }
static pthread_key_t only_key;
static void* thread_that_only_frees_at_its_end(void* argument) {
  pthread_setspecific(only_key, argument);
  return NULL;
}

static void a_thread_whose_first_call_is_a_free_in_its_last_destructor_is_fine(void) {
  CHECK_EQ(pthread_key_create(&only_key, first_free_in_destructor), 0);
  long before = 0;
  for (int i = 0; i < 400; ++i) {
    if (i == 100) before = resident_kib();
    pthread_t thread;
    // Large enough that three hundred lost objects show.
    void* object = memset(malloc(100000), 1, 100000);
    CHECK_EQ(pthread_create(&thread, NULL, thread_that_only_frees_at_its_end, object), 0);
    pthread_join(thread, NULL);
  }
  CHECK_LE(resident_kib() - before, 8192);
  pthread_key_delete(only_key);
}

static void* thread_that_leaves_much(void* argument) {
  void** object = argument;
  for (int i = 0; i < 5000; ++i) object[i] = memset(malloc(200), i, 200);
  return NULL;
}

static void memory_of_dead_threads_is_used_again(void) {
  static void* object[5000];
  long settled = 0;
  for (int round = 0; round < 60; ++round) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, thread_that_leaves_much, object), 0);
    pthread_join(thread, NULL);
    for (int i = 0; i < 5000; ++i) {
      CHECK_EQ(((unsigned char*)object[i])[199], (unsigned char)i);
      free(object[i]);
    }
    if (round == 10) settled = resident_kib();
  }
  // Each round holds 1 MB; fifty of them stranded would be 50 MB.
  CHECK_LE(resident_kib() - settled, 8192);
}

static void* cancelled_thread(void* argument) {
  volatile int is_running = 1;
  while (is_running) {
    free(malloc(100));
    pthread_testcancel();
  }
  return argument;
}

static void cancelled_and_detached_threads_leave_a_working_heap(void) {
  for (int i = 0; i < 50; ++i) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, cancelled_thread, NULL), 0);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    free(malloc(100));
  }
}

int main(void) {
  begin(60);
  RUN(destructors_of_thread_specific_data_allocate_and_free_in_every_round);
  RUN(a_thread_whose_first_call_is_a_free_in_its_last_destructor_is_fine);
  RUN(memory_of_dead_threads_is_used_again);
  RUN(cancelled_and_detached_threads_leave_a_working_heap);
  return finish();
}
