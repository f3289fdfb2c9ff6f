// SPDX-License-Identifier: MIT
//
// free_sized with a size of another class. Arguments: size, claimed size.
#include "misuse.h"

int main(int argc, char** argv) {
  char* object = allocate(argument(argc, argv, 1, 64));
  free_sized(about_to_misuse(object), argument(argc, argv, 2, 100));
  return survived();
}
