/* SPDX-License-Identifier: MIT
 *
 * A ring, which nothing leads into: one leak, whichever of its blocks.
 */
#include "plant.h"

struct link {
  struct link* next;
  struct link* prev;
};

/* The one with the lowest address is told. */
__attribute__((noinline)) static void plant(void) {
  struct link* links[50];
  unsigned lowest = 0;
  for (unsigned n = 0; n < 50; ++n) {
    links[n] = malloc(sizeof **links);
    if (links[n] < links[lowest]) lowest = n;
  }
  for (unsigned n = 0; n < 50; ++n) {
    links[n]->next = links[(n + 1) % 50];
    links[n]->prev = links[(n + 49) % 50];
    note(links[n], n == lowest ? LOST : BEHIND);
  }
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
