// SPDX-License-Identifier: MIT
//
// realloc moved an object, and the old address is freed. Arguments: old size, new size.
#include "misuse.h"

int main(int argc, char** argv) {
  char* object = allocate(argument(argc, argv, 1, 64));
  void* before = hide(object);
  char* moved = hide(realloc(object, argument(argc, argv, 2, 5000)));
  if (moved == NULL || moved == before) return 3;
  free(about_to_misuse(before));
  return survived();
}
