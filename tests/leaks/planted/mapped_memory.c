/* SPDX-License-Identifier: MIT
 *
 * Pointers in memory that the program maps itself, private, shared, of a file; and in what it unmaps again.
 */
#include <sys/mman.h>

#include "plant.h"

__attribute__((noinline)) static void plant(int flags, int file, enum plant_kind kind) {
  void** area = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, flags, file, 0);
  if (area == MAP_FAILED) abort();
  area[50000] = malloc(160);
  note(area[50000], kind);
  if (kind == LOST) munmap(area, 1 << 20);
}

int main(int argc, char** argv) {
  FILE* file = tmpfile();
  if (file == NULL || ftruncate(fileno(file), 1 << 20) != 0) return 77;
  plant(MAP_PRIVATE | MAP_ANONYMOUS, -1, KEPT);
  plant(MAP_SHARED | MAP_ANONYMOUS, -1, KEPT);
  plant(MAP_PRIVATE, fileno(file), KEPT);
  plant(MAP_SHARED, fileno(file), KEPT);
  plant(MAP_PRIVATE | MAP_ANONYMOUS, -1, LOST);
  scrub();
  return finish(argc, argv);
}
