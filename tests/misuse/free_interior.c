// SPDX-License-Identifier: MIT
//
// A pointer into an object is freed. Arguments: size, offset.
#include "misuse.h"

int main(int argc, char** argv) {
  char* object = allocate(argument(argc, argv, 1, 64));
  free(about_to_misuse(object + argument(argc, argv, 2, 16)));
  return survived();
}
