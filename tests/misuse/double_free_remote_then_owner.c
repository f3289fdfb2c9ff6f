// SPDX-License-Identifier: MIT
//
// A thread that does not own the object frees it and ends; then the owner frees it. Argument: size.
#include "misuse.h"

static void* free_once(void* object) {
  free(object);
  return NULL;
}

int main(int argc, char** argv) {
  char* object = allocate(argument(argc, argv, 1, 64));
  run_in_thread(free_once, hide(object));
  free(about_to_misuse(object));
  return survived();
}
