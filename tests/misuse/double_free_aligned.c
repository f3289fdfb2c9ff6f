// SPDX-License-Identifier: MIT
//
// Memory of aligned_alloc is freed twice. Arguments: alignment, size.
#include "misuse.h"

int main(int argc, char** argv) {
  char* object = hide(aligned_alloc(argument(argc, argv, 1, 4096), argument(argc, argv, 2, 100)));
  if (object == NULL) return 3;
  object[0] = 1;
  free(object);
  free(about_to_misuse(object));
  return survived();
}
