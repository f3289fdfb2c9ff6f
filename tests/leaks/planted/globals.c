/* SPDX-License-Identifier: MIT
 *
 * Pointers in initialised and in zeroed data, in a const array made read-only, and those that were written over.
 */
#include <sys/mman.h>

#include "plant.h"

void* in_data[3] = {&in_data, NULL, NULL};
void* in_zeros[3];
void* read_only;

__attribute__((noinline)) static void plant(void) {
  in_data[1] = malloc(64);
  note(in_data[1], KEPT);
  in_zeros[1] = malloc(64);
  note(in_zeros[1], KEPT);
  for (int n = 0; n < 10; ++n) {
    in_zeros[2] = malloc(96);
    note(in_zeros[2], n == 9 ? KEPT : LOST);
  }
  void** page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  page[7] = malloc(112);
  note(page[7], KEPT);
  mprotect(page, 4096, PROT_READ);
  read_only = page;
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
