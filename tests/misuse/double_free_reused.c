// SPDX-License-Identifier: MIT
//
// The memory was handed out again in between: the new owner's free is right, the one after it is wrong.
#include "misuse.h"

int main(int argc, char** argv) {
  size_t size = argument(argc, argv, 1, 64);
  for (int i = 0; i < 100; ++i) free(allocate(size));
  char* object = allocate(size);
  free(object);
  char* second = allocate(size);
  free(second);
  free(about_to_misuse(second));
  return survived();
}
