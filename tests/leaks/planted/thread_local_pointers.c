/* SPDX-License-Identifier: MIT
 *
 * Pointers in thread-local variables of the first thread and of another that waits.
 */
#include <pthread.h>

#include "plant.h"

__thread void* mine;
__thread void* lost_later;
static pthread_key_t key;
static pthread_barrier_t ready;

__attribute__((noinline)) static void plant(void) {
  mine = malloc(72);
  note(mine, KEPT);
  void* specific = malloc(88);
  pthread_setspecific(key, specific);
  note(specific, KEPT);
  lost_later = malloc(104);
  note(lost_later, LOST);
  lost_later = NULL;
}

static void* wait_for_ever(void* unused) {
  plant();
  scrub();
  pthread_barrier_wait(&ready);
  for (;;) pause();
  return unused;
}

int main(int argc, char** argv) {
  pthread_t thread;
  pthread_key_create(&key, NULL);
  pthread_barrier_init(&ready, NULL, 2);
  pthread_create(&thread, NULL, wait_for_ever, NULL);
  pthread_barrier_wait(&ready);
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
