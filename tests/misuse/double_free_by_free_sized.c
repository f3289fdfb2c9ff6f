// SPDX-License-Identifier: MIT
//
// free, then free_sized with the right size. Argument: size.
#include "misuse.h"

int main(int argc, char** argv) {
  size_t size = argument(argc, argv, 1, 64);
  char* object = allocate(size);
  free(object);
  free_sized(about_to_misuse(object), size);
  return survived();
}
