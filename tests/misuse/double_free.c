// SPDX-License-Identifier: MIT
//
// An object is freed twice in a row. Argument: its size.
#include "misuse.h"

int main(int argc, char** argv) {
  char* object = allocate(argument(argc, argv, 1, 64));
  free(object);
  free(about_to_misuse(object));
  return survived();
}
