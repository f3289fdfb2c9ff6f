/* SPDX-License-Identifier: MIT
 *
 * A list whose head is lost: one leak, the rest behind it.
 */
#include "plant.h"

struct link {
  struct link* next;
  char text[40];
};

__attribute__((noinline)) static void plant(void) {
  struct link* head = NULL;
  for (int n = 0; n < 100; ++n) {
    struct link* link = calloc(1, sizeof *link);
    link->next = head;
    head = link;
    note(link, n == 99 ? LOST : BEHIND);
  }
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
