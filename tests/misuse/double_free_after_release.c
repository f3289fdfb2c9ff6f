// SPDX-License-Identifier: MIT
//
// Every object of the slab is freed, so that the slab itself may be given back, before the second free.
// Arguments: size; 1 when the program also asks for memory to go back to the system.
#include "misuse.h"

enum { kCount = 2000 };

int main(int argc, char** argv) {
  static char* object[kCount];
  size_t size = argument(argc, argv, 1, 64);
  int count = size > 100000 ? 20 : kCount;
  for (int i = 0; i < count; ++i) object[i] = allocate(size);
  for (int i = 0; i < count; ++i) free(object[i]);
  if (argument(argc, argv, 2, 0) == 1) malloc_trim(0);
  free(about_to_misuse(object[count / 2]));
  return survived();
}
