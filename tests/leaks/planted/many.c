/* SPDX-License-Identifier: MIT
 *
 * Thousands of one size, half of them lost.
 */
#include "plant.h"

void* kept[2000];

__attribute__((noinline)) static void plant(void) {
  for (unsigned n = 0; n < 2000; ++n) {
    note(malloc(56), LOST);
    kept[n] = malloc(56);
    note(kept[n], KEPT);
  }
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
