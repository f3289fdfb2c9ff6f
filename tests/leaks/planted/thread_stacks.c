/* SPDX-License-Identifier: MIT
 *
 * A pointer in the frame of a thread that waits is one; in the frame of a thread that has ended it is none.
 */
#include <pthread.h>

#include "plant.h"

static pthread_barrier_t ready;

static void* hold(void* unused) {
  void* volatile held[4];
  for (unsigned n = 0; n < 4; ++n) {
    held[n] = malloc(200);
    note(held[n], KEPT);
  }
  pthread_barrier_wait(&ready);
  for (;;) pause();
  held[0] = unused;
  return held[0];
}

static void* leave(void* unused) {
  void* volatile held[4];
  for (unsigned n = 0; n < 4; ++n) {
    held[n] = malloc(220);
    note(held[n], LOST);
  }
  return unused;
}

int main(int argc, char** argv) {
  pthread_t holder;
  pthread_t leaver;
  pthread_barrier_init(&ready, NULL, 2);
  pthread_create(&holder, NULL, hold, NULL);
  pthread_barrier_wait(&ready);
  pthread_create(&leaver, NULL, leave, NULL);
  pthread_join(leaver, NULL);
  scrub();
  return finish(argc, argv);
}
