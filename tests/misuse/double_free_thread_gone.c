// SPDX-License-Identifier: MIT
//
// A thread allocates, frees and ends; then main frees the same object. Argument: size.
#include "misuse.h"

static size_t size;
static void* freed_object;
static void* allocate_and_free(void* unused) {
  freed_object = allocate(size);
  free(freed_object);
  return unused;
}

int main(int argc, char** argv) {
  size = argument(argc, argv, 1, 64);
  free(allocate(size));
  run_in_thread(allocate_and_free, NULL);
  free(about_to_misuse(freed_object));
  return survived();
}
