// SPDX-License-Identifier: MIT
//
// An address beside the heap's objects that was never handed out is freed. Arguments: size of the object to
// start from, distance from it.
#include "misuse.h"

int main(int argc, char** argv) {
  char* object = allocate(argument(argc, argv, 1, 64));
  free(about_to_misuse(object + argument(argc, argv, 2, (size_t)1 << 30)));
  return survived();
}
