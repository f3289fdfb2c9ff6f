// SPDX-License-Identifier: MIT
//
// A byte behind what may be used of an object is overwritten, then the object is freed: canary:1 finds it. Arguments: size,
// bytes behind the end (0 … 7), 1: by another thread.
#include "misuse.h"

static void* drop(void* object) {
  free(about_to_misuse(object));
  return object;
}

int main(int argc, char** argv) {
  const size_t size = argument(argc, argv, 1, 64);
  char* object = hide(malloc(size));
  if (object == NULL) return 3;
  const size_t usable = malloc_usable_size(object);
  memset(object, 0x5A, usable);
  char* end = object + usable + argument(argc, argv, 2, 0);
  *end = (char)~*end;
  if (argument(argc, argv, 3, 0) != 0) {
    run_in_thread(drop, object);
  } else {
    drop(object);
  }
  return survived();
}
