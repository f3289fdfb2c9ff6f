// SPDX-License-Identifier: MIT
//
// A number that was never a pointer is freed. Argument: the number; 2 when the heap is to be in use before.
#include "misuse.h"

int main(int argc, char** argv) {
  if (argument(argc, argv, 2, 0) == 2) free(allocate(100));
  free(about_to_misuse((void*)argument(argc, argv, 1, 0xdeadbeef000)));
  return survived();
}
