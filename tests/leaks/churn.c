/* SPDX-License-Identifier: MIT
 *
 * Threads that allocate, hand on and free without a pause, and lose nothing: whoever looks at any moment must find
 * nothing lost. Says "ready", then a count of rounds whenever standard input has a line, until it ends.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, PLACES = 4096 };

static _Atomic(void*) places[PLACES];
static atomic_ulong rounds;

static void* churn(void* seed) {
  uint64_t state = (uintptr_t)seed * 0x9E3779B97F4A7C15U;
  for (;;) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const unsigned place = state >> 40 & (PLACES - 1);
    const size_t size = state >> 33 & 127 ? state >> 52 & 1023 : state >> 45 & 0x3FFFF;
    char* block = malloc(size + 1);
    block[0] = 1;
    free(atomic_exchange(&places[place], block));
    atomic_fetch_add(&rounds, 1);
  }
  return NULL;
}

int main(void) {
  for (uintptr_t n = 1; n <= THREADS; ++n) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, churn, (void*)n) != 0) return 1;
  }
  puts("ready");
  fflush(stdout);
  char line[16];
  while (fgets(line, sizeof line, stdin) != NULL) {
    printf("%lu\n", atomic_load(&rounds));
    fflush(stdout);
  }
  return 0;
}
