// SPDX-License-Identifier: MIT
//
// realloc of an object that was freed. Arguments: old size, new size.
#include "misuse.h"

int main(int argc, char** argv) {
  char* object = allocate(argument(argc, argv, 1, 64));
  free(object);
  hide(realloc(about_to_misuse(object), argument(argc, argv, 2, 128)));
  return survived();
}
