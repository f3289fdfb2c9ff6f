// SPDX-License-Identifier: MIT
//
// Memory of mmap is freed. Argument: 1 when it was unmapped before.
#include "misuse.h"

#include <sys/mman.h>

int main(int argc, char** argv) {
  void* mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return 3;
  if (argument(argc, argv, 1, 0) == 1) munmap(mapped, 1 << 20);
  free(about_to_misuse(mapped));
  return survived();
}
