/* SPDX-License-Identifier: MIT
 *
 * What is freed is not lost: by its owner, by another thread, in a magazine that is not full, large, shrunk.
 */
#include <pthread.h>

#include "plant.h"

static uintptr_t hidden[1000];

static void* free_them(void* unused) {
  for (unsigned n = 0; n < 500; ++n) free((void*)~hidden[n]);
  return unused;
}

__attribute__((noinline)) static void plant(void) {
  for (unsigned n = 0; n < 1000; ++n) {
    void* block = malloc(n % 7 * 40 + 8 + (n % 100 == 99 ? 100000 : 0));
    hidden[n] = ~(uintptr_t)block;
    note(block, n < 990 ? KEPT : LOST);
  }
}

__attribute__((noinline)) static void free_rest(void) {
  for (unsigned n = 500; n < 990; ++n) free((void*)~hidden[n]);
}

int main(int argc, char** argv) {
  pthread_t thread;
  at_depth(plant);
  pthread_create(&thread, NULL, free_them, NULL);
  pthread_join(thread, NULL);
  free_rest();
  scrub();
  return finish(argc, argv);
}
