/* SPDX-License-Identifier: MIT
 *
 * Pointers that are stored inverted, and cut in halves: no program can tell them from numbers.
 */
#include "plant.h"

uintptr_t inverted;
uint32_t halves[4];

__attribute__((noinline)) static void plant(void) {
  void* block = malloc(128);
  inverted = ~(uintptr_t)block;
  note(block, LOST);
  block = malloc(144);
  halves[0] = (uint32_t)(uintptr_t)block;
  halves[3] = (uint32_t)((uintptr_t)block >> 32);
  note(block, LOST);
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
