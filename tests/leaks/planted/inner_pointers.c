/* SPDX-License-Identifier: MIT
 *
 * Only a pointer to the inside is left, or to the start through such a block.
 */
#include "plant.h"

struct record {
  struct record* other;
  char text[120];
};

char* inside;
char* tagged;

__attribute__((noinline)) static void plant(void) {
  struct record* record = calloc(1, sizeof *record);
  record->other = calloc(1, sizeof *record);
  note(record, POSSIBLY);
  note(record->other, POSSIBLY);
  inside = record->text;
  char* low_bit = malloc(48);
  tagged = low_bit + 1;
  note(low_bit, POSSIBLY);
  note(malloc(48), LOST);
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
