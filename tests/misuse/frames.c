// SPDX-License-Identifier: MIT
//
// Calls to be single-stepped by frames_gdb.py: each on a hit as far as a stepped program has hits.
#include "misuse.h"

__attribute__((noinline)) static void caller(char* of_class) {
  char* object = hide(malloc(64));
  free(object);
  object = hide(calloc(1, 40));
  object = hide(realloc(object, 45));
  (void)malloc_usable_size(hide(of_class));
  free_sized(object, 40);
  object = hide(malloc(9000));
  free(object);
  object = hide(malloc(100000));
  free(object);
}

int main(void) {
  warm_up();
  char* keeper = allocate(64);
  for (int i = 0; i < 100; ++i) {
    free(allocate(64));
    free(allocate(40));
    free(allocate(9000));
    free(allocate(100000));
  }
  caller(keeper);
  return 0;
}
