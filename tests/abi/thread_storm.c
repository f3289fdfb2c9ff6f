// SPDX-License-Identifier: MIT
//
// A hundred thousand short threads, fifty at a time. Each allocates and frees a little, and hands one object
// to the main thread and takes one from it, so that every thread frees memory of another. What a thread costs
// must end with it: the resident size after the last is what it was after the first ten thousand.
#include "check.h"

#include <pthread.h>

enum { kBatch = 50, kThreads = 100000, kWarmUp = 10000 };

static void* short_life(void* argument) {
  free(argument);
  void* object[12];
  for (int i = 0; i < 12; ++i) object[i] = memset(malloc((size_t)24 << (i % 9)), i, 24);
  for (int i = 1; i < 12; ++i) free(object[i]);
  return object[0];
}

static void one_hundred_thousand_threads_leave_nothing_behind(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 << 10);
  long settled = 0;
  double started = seconds_now();
  for (int done = 0; done < kThreads; done += kBatch) {
    pthread_t thread[kBatch];
    for (int i = 0; i < kBatch; ++i) {
      int error = pthread_create(&thread[i], &attributes, short_life, malloc(300));
      if (error != 0) {
        CHECK_FAIL("pthread_create number %d: %d", done + i, error);
        return;
      }
    }
    for (int i = 0; i < kBatch; ++i) {
      void* gift = NULL;
      pthread_join(thread[i], &gift);
      CHECK_EQ(*(unsigned char*)gift, 0);
      free(gift);
    }
    if (done + kBatch == kWarmUp) settled = resident_kib();
  }
  long grown = resident_kib() - settled;
  say("      %.1f us a thread, %ld KiB more after %d than after %d", (seconds_now() - started) * 1e6 / kThreads, grown,
      (int)kThreads, (int)kWarmUp);
  CHECK_LE(grown, 4096);
  pthread_attr_destroy(&attributes);
}

static pthread_barrier_t barrier;
static void* waits_with_memory(void* argument) {
  void* object = malloc(100);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  free(object);
  free(argument);
  return NULL;
}

static void a_thousand_threads_at_once_are_cheap(void) {
  enum { kAtOnce = 1000 };
  static pthread_t thread[kAtOnce];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  pthread_barrier_init(&barrier, NULL, kAtOnce + 1);
  long before = resident_kib();
  for (int i = 0; i < kAtOnce; ++i) {
    int error = pthread_create(&thread[i], &attributes, waits_with_memory, malloc(50));
    if (error != 0) {
      // A waiter that will never come would hang the barrier.
      say("      pthread_create number %d: %d", i, error);
      _exit(77);
    }
  }
  pthread_barrier_wait(&barrier);
  long each = (resident_kib() - before) * 1024 / kAtOnce;
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < kAtOnce; ++i) pthread_join(thread[i], NULL);
  say("      %ld bytes resident a thread, its stack included", each);
  // Stack, thread block and kernel-visible TLS take 12 to 16 KiB of it under every allocator.
  CHECK_LE(each, 40 << 10);
  pthread_attr_destroy(&attributes);
}

int main(void) {
  begin(100);
  RUN(a_thousand_threads_at_once_are_cheap);
  RUN(one_hundred_thousand_threads_leave_nothing_behind);
  return finish();
}
