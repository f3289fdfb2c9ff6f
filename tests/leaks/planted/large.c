/* SPDX-License-Identifier: MIT
 *
 * Large blocks, and such as have a mapping of their own under reserve:64M; pointers deep inside of one.
 */
#include "plant.h"

void** kept;

__attribute__((noinline)) static void plant(void) {
  note(malloc(100000), LOST);
  note(malloc(3000000), LOST);
  note(calloc(1, 20000000), LOST);
  kept = calloc(1, 40000000);
  note(kept, KEPT);
  kept[4000000] = malloc(60);
  note(kept[4000000], KEPT);
  void** lost = calloc(1, 30000000);
  note(lost, LOST);
  lost[3000000] = malloc(60);
  note(lost[3000000], BEHIND);
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
