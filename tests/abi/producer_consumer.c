// SPDX-License-Identifier: MIT
//
// Memory that is always freed by another thread than the one that took it. Two threads produce and one, which
// never allocates anything, consumes; then one produces and two consume. An allocator that parks foreign
// frees with the consumer grows without bound here (reports name 437 MiB that became 1.8 GiB): the resident
// size must be flat from the first fifth of the run to its end.
#include "check.h"

#include <pthread.h>

enum { kBatch = 128, kQueue = 64, kMaxThreads = 4 };

typedef struct Batch {
  unsigned char* object[kBatch];
} Batch;

static Batch queue[kQueue];  // a ring under one mutex; static, so that it takes no heap
static int head, filled, producers_left;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t can_put = PTHREAD_COND_INITIALIZER, can_take = PTHREAD_COND_INITIALIZER;
static int batches_each;
static long level_kib, consumed;

static void* produce(void* argument) {
  uint64_t random = (uint64_t)(uintptr_t)argument;
  for (int n = 0; n < batches_each; ++n) {
    Batch batch;
    for (int i = 0; i < kBatch; ++i) {
      uint64_t r = next_random(&random);
      size_t size = r % 512 == 0 ? 20000 + (r >> 20) % 100000 : 16 + (r >> 20) % 1000;
      batch.object[i] = malloc(size);
      if (batch.object[i] == NULL) {
        CHECK_FAIL("malloc(%zu) is NULL", size);
        _exit(1);
      }
      batch.object[i][0] = (unsigned char)i;
      batch.object[i][15] = (unsigned char)~i;
    }
    pthread_mutex_lock(&mutex);
    while (filled == kQueue) pthread_cond_wait(&can_put, &mutex);
    queue[(head + filled++) % kQueue] = batch;
    pthread_cond_signal(&can_take);
    pthread_mutex_unlock(&mutex);
  }
  pthread_mutex_lock(&mutex);
  --producers_left;
  pthread_cond_broadcast(&can_take);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* consume(void* argument) {
  long total = (long)(uintptr_t)argument;
  for (;;) {
    pthread_mutex_lock(&mutex);
    while (filled == 0 && producers_left > 0) pthread_cond_wait(&can_take, &mutex);
    if (filled == 0) {
      pthread_mutex_unlock(&mutex);
      return NULL;
    }
    Batch batch = queue[head];
    head = (head + 1) % kQueue;
    --filled;
    long number = ++consumed;
    pthread_cond_signal(&can_put);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < kBatch; ++i) {
      if (batch.object[i][0] != (unsigned char)i || batch.object[i][15] != (unsigned char)~i)
        CHECK_FAIL("object %d at %p is damaged", i, (void*)batch.object[i]);
      free(batch.object[i]);
    }
    if (number == total / 5) __atomic_store_n(&level_kib, resident_kib(), __ATOMIC_RELAXED);
  }
}

static void run_pipeline(int producers, int consumers, int batches) {
  pthread_t thread[kMaxThreads];
  head = filled = 0;
  consumed = 0;
  producers_left = producers;
  batches_each = batches / producers;
  long total = (long)batches_each * producers;
  double started = seconds_now();
  for (int i = 0; i < producers + consumers; ++i) {
    void* argument = i < producers ? (void*)(uintptr_t)(i + 1) : (void*)(uintptr_t)total;
    CHECK_EQ(pthread_create(&thread[i], NULL, i < producers ? produce : consume, argument), 0);
  }
  for (int i = 0; i < producers + consumers; ++i) pthread_join(thread[i], NULL);
  CHECK_EQ(consumed, total);
  long grown = resident_kib() - level_kib;
  say("      %.0f ns an object, %ld KiB more at the end than after a fifth",
      (seconds_now() - started) * 1e9 / ((double)total * kBatch), grown);
  CHECK_LE(grown, 24 << 10);
}

static void two_producers_and_a_consumer_that_never_allocates_stay_flat(void) { run_pipeline(2, 1, 40000); }
static void one_producer_and_two_consumers_stay_flat(void) { run_pipeline(1, 2, 40000); }

static void* free_all(void* argument) {
  void** object = argument;
  for (int i = 0; i < 200000; ++i) free(object[i]);
  return NULL;
}

static void what_one_thread_freed_another_can_use(void) {
  // 40 MB allocated by main, freed by a thread that ends; ten rounds must fit where one did.
  static void* object[200000];
  long after_first = 0;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 200000; ++i) object[i] = memset(malloc(200), 1, 200);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, free_all, object), 0);
    pthread_join(thread, NULL);
    if (round == 0) after_first = resident_kib();
  }
  for (int i = 0; i < 200000; ++i) object[i] = memset(malloc(200), 1, 200);
  CHECK_LE(resident_kib() - after_first, 50 << 10);
  free_all(object);
}

int main(void) {
  begin(60);
  RUN(two_producers_and_a_consumer_that_never_allocates_stay_flat);
  RUN(one_producer_and_two_consumers_stay_flat);
  RUN(what_one_thread_freed_another_can_use);
  return finish();
}
