// SPDX-License-Identifier: MIT
//
// With guard:1 each slab ends in a page without access: who runs on behind an object comes to it, and the program ends by SIGSEGV.
// Argument: size.
#include "misuse.h"

int main(int argc, char** argv) {
  volatile char* object = allocate(argument(argc, argv, 1, 64));
  print_line("reads\n");
  // No slab is longer than 2 MiB, and the slabs behind it end so, too.
  for (size_t i = 0; i < (size_t)4 << 20; ++i) (void)object[i];
  return survived();
}
