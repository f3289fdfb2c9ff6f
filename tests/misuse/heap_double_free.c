// SPDX-License-Identifier: MIT
//
// Frees a block of a heap twice. Argument 1: the size; argument 2: 0 both here, 1 the second by another thread, 2 with
// the heap as the thread's current one, 3 when the block is the last of its slab, so that the slab has gone.
#include "heap.h"

int main(int argc, char** argv) {
  size_t size = argument(argc, argv, 1, 64);
  size_t how = argument(argc, argv, 2, 0);
  warm_up();
  brimful_heap* heap = make_heap();
  if (how == 2 && brimful_heap_set_current(heap) != 0) return 3;
  // Enough to fill slabs, so that the one of the last block is not the one that malloc takes from.
  enum { kMost = 10000 };
  static char* blocks[kMost];
  size_t count = how == 3 && size <= 32768 ? kMost : 10;
  for (size_t i = 0; i < count; ++i) blocks[i] = hide(brimful_heap_malloc(heap, size));
  char* block = blocks[count - 1];
  for (size_t i = 0; how == 3 && i + 1 < count; ++i) free(blocks[i]);
  block[0] = 1;
  free(block);
  void* pointer = about_to_misuse(block);
  if (how == 1) {
    run_in_thread(free_it, pointer);
  } else {
    free(pointer);
  }
  return survived();
}
