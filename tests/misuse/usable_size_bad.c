// SPDX-License-Identifier: MIT
//
// malloc_usable_size of a pointer that is no live object. Argument: stack, garbage, interior or freed.
#include "misuse.h"

int main(int argc, char** argv) {
  char on_stack[256] = {0};
  const char* kind = argc > 1 ? argv[1] : "stack";
  void* bad = (void*)(((uintptr_t)hide(on_stack) + 31) & ~(uintptr_t)15);
  if (strcmp(kind, "garbage") == 0) bad = hide((void*)0xdeadbeef000);
  if (strcmp(kind, "interior") == 0) bad = hide(allocate(64) + 16);
  if (strcmp(kind, "freed") == 0) {
    bad = allocate(64);
    free(bad);
  }
  size_t usable = malloc_usable_size(about_to_misuse(bad));
  __asm__ volatile("" : : "r"(usable));
  return survived();
}
