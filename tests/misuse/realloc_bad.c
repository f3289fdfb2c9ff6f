// SPDX-License-Identifier: MIT
//
// realloc of a pointer that never was an object. Argument: stack, data, garbage or interior.
#include "misuse.h"

static char in_data[256];

int main(int argc, char** argv) {
  char on_stack[256] = {0};
  const char* kind = argc > 1 ? argv[1] : "stack";
  void* bad = hide((on_stack + 31));
  bad = (void*)((uintptr_t)bad & ~(uintptr_t)15);
  if (strcmp(kind, "data") == 0) bad = (void*)(((uintptr_t)in_data + 31) & ~(uintptr_t)15);
  if (strcmp(kind, "garbage") == 0) bad = hide((void*)0xdeadbeef000);
  if (strcmp(kind, "interior") == 0) bad = hide(allocate(64) + 16);
  hide(realloc(about_to_misuse(bad), 100));
  return survived();
}
