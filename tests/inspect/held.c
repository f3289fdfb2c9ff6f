/* SPDX-License-Identifier: MIT
 *
 * For tests of `brimful inspect`: a live object, one that this thread freed, one that another thread allocated and this
 * one freed, a live and a freed large block, a stack address. Prints "name address" lines and waits for standard input to
 * end; with an argument it keeps allocating and freeing meanwhile.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void* make(void* size) {
  char* object = malloc((size_t)(uintptr_t)size);
  memset(object, 1, (size_t)(uintptr_t)size);
  return object;
}

static void* _Atomic of_another;

/* Allocates and stays: its objects remain its own. */
static void* stay(void* size) {
  of_another = make(size);
  for (;;) pause();
  return NULL;
}

static void* churn(void* unused) {
  static void* volatile blocks[4096];
  for (unsigned n = 1;; n = n * 1664525U + 1013904223U) {
    unsigned place = n >> 20;
    free(blocks[place]);
    blocks[place] = make((void*)(uintptr_t)(16 + n % 5000));
  }
  return unused;
}

int main(int count, char** arguments) {
  (void)arguments;
  enum { kMany = 20000 };
  static char* many[kMany];
  for (int n = 0; n < kMany; ++n) many[n] = make((void*)(uintptr_t)(16 + n % 700));
  for (int n = 0; n < kMany; n += 2) free(many[n]);
  char* live = make((void*)100);
  char* freed = make((void*)100);
  uintptr_t freed_at = (uintptr_t)freed;
  free(freed);
  pthread_t thread;
  pthread_create(&thread, NULL, stay, (void*)1500);
  while (of_another == NULL) usleep(1000);
  void* foreign = of_another;
  uintptr_t foreign_at = (uintptr_t)foreign;
  free(foreign);
  char* large = make((void*)300000);
  int local = 0;
  printf("live %#lx\nfreed %#lx\nforeign %#lx\nlarge %#lx\nstack %#lx\ncode %#lx\n", (unsigned long)live,
         (unsigned long)freed_at, (unsigned long)foreign_at, (unsigned long)large, (unsigned long)(uintptr_t)&local,
         (unsigned long)(uintptr_t)&churn);
  if (count > 1) pthread_create(&thread, NULL, churn, NULL);
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  _exit(0);
}
