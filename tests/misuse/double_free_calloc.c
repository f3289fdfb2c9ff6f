// SPDX-License-Identifier: MIT
//
// Memory of calloc is freed twice. Argument: size.
#include "misuse.h"

int main(int argc, char** argv) {
  char* object = hide(calloc(argument(argc, argv, 1, 64), 1));
  if (object == NULL) return 3;
  free(object);
  free(about_to_misuse(object));
  return survived();
}
