// SPDX-License-Identifier: MIT
//
// How many of a number of objects are guarded: those of which no byte more is usable than was asked for. Arguments: objects,
// size (not that of a size class). Prints the number.
#include "misuse.h"

int main(int argc, char** argv) {
  const size_t objects = argument(argc, argv, 1, 100000);
  const size_t size = argument(argc, argv, 2, 61);
  size_t guarded = 0;
  for (size_t i = 0; i < objects; ++i) {
    char* object = allocate(size);
    guarded += malloc_usable_size(object) == size;
    free(object);
  }
  printf("%zu\n", guarded);
  return 0;
}
