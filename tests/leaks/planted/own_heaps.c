/* SPDX-License-Identifier: MIT
 *
 * Blocks of heaps: lost ones are lost though they go with the heap; those of a destroyed heap are free.
 */
#include <brimful/heap.h>

#include "plant.h"

/* They are there under brimful only. */
#pragma weak brimful_heap_create
#pragma weak brimful_heap_destroy
#pragma weak brimful_heap_malloc

brimful_heap* heap;
void* kept;

__attribute__((noinline)) static void plant(void) {
  heap = brimful_heap_create(0);
  for (int n = 0; n < 20; ++n) note(brimful_heap_malloc(heap, 80), LOST);
  note(brimful_heap_malloc(heap, 100000), LOST);
  kept = brimful_heap_malloc(heap, 80);
  note(kept, KEPT);
  brimful_heap* gone = brimful_heap_create(0);
  for (int n = 0; n < 20; ++n) note(brimful_heap_malloc(gone, 120), KEPT);
  brimful_heap_destroy(gone);
}

int main(int argc, char** argv) {
  if (brimful_heap_create == NULL) return 77;
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
