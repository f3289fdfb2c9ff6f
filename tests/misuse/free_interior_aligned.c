// SPDX-License-Identifier: MIT
//
// A pointer into an aligned object is freed. Arguments: alignment, size, offset.
#include "misuse.h"

int main(int argc, char** argv) {
  char* object = hide(aligned_alloc(argument(argc, argv, 1, 4096), argument(argc, argv, 2, 100)));
  if (object == NULL) return 3;
  free(about_to_misuse(object + argument(argc, argv, 3, 64)));
  return survived();
}
