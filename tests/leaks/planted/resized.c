/* SPDX-License-Identifier: MIT
 *
 * What realloc moved is lost at its new place, and its old one is free.
 */
#include "plant.h"

void* kept;

__attribute__((noinline)) static void plant(void) {
  char* block = malloc(10);
  for (size_t size = 20; size < 300000; size *= 3) block = realloc(block, size);
  note(block, LOST);
  block = calloc(10, 1000);
  block = realloc(block, 500);
  note(block, LOST);
  kept = realloc(malloc(50000), 900000);
  note(kept, KEPT);
  note(reallocarray(NULL, 20, 20), LOST);
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
