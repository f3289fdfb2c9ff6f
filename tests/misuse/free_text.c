// SPDX-License-Identifier: MIT
//
// The address of a function is freed.
#include "misuse.h"

__attribute__((aligned(64))) int main(void) {
  free(about_to_misuse((const void*)(uintptr_t)main));
  return survived();
}
