// SPDX-License-Identifier: MIT
//
// realloc(p, 0) frees, so the second one is a double free. Argument: size.
#include "misuse.h"

int main(int argc, char** argv) {
  char* object = allocate(argument(argc, argv, 1, 64));
  size_t zero = 0;
  __asm__ volatile("" : "+r"(zero));
  hide(realloc(object, zero));
  hide(realloc(about_to_misuse(object), zero));
  return survived();
}
