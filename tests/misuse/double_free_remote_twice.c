// SPDX-License-Identifier: MIT
//
// A thread that does not own the object frees it twice. Argument: size.
#include "misuse.h"

static void* free_twice(void* object) {
  free(allocate(100));
  free(object);
  free(about_to_misuse(object));
  return NULL;
}

int main(int argc, char** argv) {
  char* object = allocate(argument(argc, argv, 1, 64));
  run_in_thread(free_twice, hide(object));
  return survived();
}
