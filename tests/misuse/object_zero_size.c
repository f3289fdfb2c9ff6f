// SPDX-License-Identifier: MIT
//
// With `guard` objects of malloc(0) are distinct, have no usable byte, move when they grow, and can't be read: the program ends by
// SIGSEGV right behind the line that it prints.
#include "misuse.h"

int main(void) {
  for (int i = 0; i < 200; ++i) {
    char* one = hide(malloc(0));
    char* other = hide(malloc(0));
    if (one == NULL || one == other || malloc_usable_size(one) != 0) return 2;
    other = hide(realloc(other, 10));
    if (other == NULL) return 3;
    memset(other, 1, 10);
    free(other);
    free(one);
  }
  char* object = hide(malloc(0));
  print_line("reads\n");
  return *(volatile char*)object;
}
