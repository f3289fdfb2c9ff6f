// SPDX-License-Identifier: MIT
//
// Other objects are freed between the first and the second free. Argument: the size of all.
#include "misuse.h"

int main(int argc, char** argv) {
  char* object[9];
  for (int i = 0; i < 9; ++i) object[i] = allocate(argument(argc, argv, 1, 64));
  for (int i = 0; i < 8; ++i) free(object[i]);
  free(about_to_misuse(object[3]));
  free(object[8]);
  return survived();
}
