// SPDX-License-Identifier: MIT
//
// The owner frees, then another thread frees again, while the owner waits for it. Argument: size.
#include "misuse.h"

static void* free_again(void* object) {
  free(about_to_misuse(object));
  return NULL;
}

int main(int argc, char** argv) {
  warm_up();
  char* object = allocate(argument(argc, argv, 1, 64));
  free(object);
  run_in_thread(free_again, hide(object));
  return survived();
}
