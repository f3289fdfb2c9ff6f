// SPDX-License-Identifier: MIT
//
// free_sized, then free. Argument: size.
#include "misuse.h"

int main(int argc, char** argv) {
  size_t size = argument(argc, argv, 1, 64);
  char* object = allocate(size);
  free_sized(object, size);
  free(about_to_misuse(object));
  return survived();
}
