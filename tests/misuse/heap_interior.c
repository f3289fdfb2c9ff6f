// SPDX-License-Identifier: MIT
//
// Frees a pointer into a block of a heap. Arguments: the size, the offset.
#include "heap.h"

int main(int argc, char** argv) {
  warm_up();
  char* block = brimful_heap_malloc(make_heap(), argument(argc, argv, 1, 64));
  free(about_to_misuse(block + argument(argc, argv, 2, 16)));
  return survived();
}
