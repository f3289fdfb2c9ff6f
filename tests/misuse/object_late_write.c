// SPDX-License-Identifier: MIT
//
// A byte of an object is written after free, and the class is asked for until the object would come again: zero:1 finds it.
// Arguments: size, offset of the byte, 1: freed by another thread.
#include "misuse.h"

#define MOST 20000
static char* objects[MOST];
static int count = MOST;

// Every other one, so that no slab becomes empty and all are worth using.
static void* drop(void* unused) {
  for (int i = 0; i < count; i += 2) free(objects[i]);
  return unused;
}

int main(int argc, char** argv) {
  const size_t size = argument(argc, argv, 1, 64);
  if (size > 1024) count = 400;
  for (int i = 0; i < count; ++i) objects[i] = allocate(size);
  if (argument(argc, argv, 3, 0) != 0) {
    run_in_thread(drop, NULL);
  } else {
    drop(NULL);
  }
  char* late = objects[count / 2];
  late[argument(argc, argv, 2, 0)] = 1;
  about_to_misuse(late);
  for (int i = 0; i < 3 * count; ++i) {
    if (hide(malloc(size)) == NULL) return 3;
  }
  return survived();
}
