// SPDX-License-Identifier: MIT
//
// free_aligned_sized with a size of another class. Arguments: alignment, size, claimed size.
#include "misuse.h"

int main(int argc, char** argv) {
  size_t alignment = argument(argc, argv, 1, 64);
  char* object = hide(aligned_alloc(alignment, argument(argc, argv, 2, 128)));
  if (object == NULL) return 3;
  free_aligned_sized(about_to_misuse(object), alignment, argument(argc, argv, 3, 1000));
  return survived();
}
