/* SPDX-License-Identifier: MIT
 *
 * Blocks of many sizes, each lost by itself.
 */
#include "plant.h"

__attribute__((noinline)) static void plant(void) {
  static const size_t sizes[] = {1, 16, 24, 100, 256, 1000, 4096, 10000, 32768, 40000, 200000};
  for (unsigned n = 0; n < sizeof sizes / sizeof *sizes; ++n) {
    void* block = malloc(sizes[n]);
    memset(block, 0x55, sizes[n]);
    note(block, LOST);
  }
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
