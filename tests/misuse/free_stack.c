// SPDX-License-Identifier: MIT
//
// A variable on the stack is freed.
#include "misuse.h"

int main(void) {
  char on_stack[256] = {0};
  free(about_to_misuse((void*)(((uintptr_t)hide(on_stack) + 31) & ~(uintptr_t)15)));
  return survived();
}
