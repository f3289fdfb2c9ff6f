/* SPDX-License-Identifier: MIT
 *
 * Blocks of aligned_alloc, posix_memalign and valloc.
 */
#include <malloc.h>

#include "plant.h"

void* kept[16];

__attribute__((noinline)) static void plant(void) {
  for (unsigned n = 0; n < 12; ++n) {
    note(aligned_alloc((size_t)16 << n, (size_t)16 << n), LOST);
    kept[n] = aligned_alloc((size_t)16 << n, (size_t)48 << n);
    note(kept[n], KEPT);
    void* other = NULL;
    if (posix_memalign(&other, 4096, 100) != 0) abort();
    note(other, LOST);
  }
  note(valloc(9000), LOST);
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
