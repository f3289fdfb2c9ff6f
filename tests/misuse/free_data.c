// SPDX-License-Identifier: MIT
//
// A variable with static storage is freed. Argument: data, constant or library.
#include "misuse.h"

static char in_data[64] __attribute__((aligned(16)));
static const char kConstant[64] __attribute__((aligned(16))) = "constant";

int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "data";
  const void* bad = in_data;
  if (strcmp(kind, "constant") == 0) bad = kConstant;
  if (strcmp(kind, "library") == 0) bad = (const void*)((uintptr_t)stdout & ~(uintptr_t)15);
  free(about_to_misuse(bad));
  return survived();
}
