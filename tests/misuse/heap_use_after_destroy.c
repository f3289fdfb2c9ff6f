// SPDX-License-Identifier: MIT
//
// Uses a block of a destroyed heap. Arguments: the size; how: 0 free, 1 realloc, 2 malloc_usable_size, 3 free by
// another thread, 4 free after other heaps and blocks have come and gone.
#include "heap.h"

int main(int argc, char** argv) {
  size_t size = argument(argc, argv, 1, 64);
  size_t how = argument(argc, argv, 2, 0);
  warm_up();
  brimful_heap* heap = make_heap();
  char* block = hide(brimful_heap_malloc(heap, size));
  for (int i = 0; i < 100; ++i) *(char*)brimful_heap_malloc(heap, 16 + (size_t)i * 40) = 1;
  block[0] = 1;
  if (brimful_heap_destroy(heap) != 0) return 3;
  for (int round = 0; how == 4 && round < 50; ++round) {
    heap = make_heap();
    for (int i = 0; i < 100; ++i) *(char*)brimful_heap_malloc(heap, size + (size_t)i) = 1;
    if (brimful_heap_destroy(heap) != 0) return 3;
    free(allocate(size));
  }
  void* pointer = about_to_misuse(block);
  if (how == 0 || how == 4) free(pointer);
  if (how == 1) (void)!realloc(pointer, size * 3);
  if (how == 2) (void)malloc_usable_size(pointer);
  if (how == 3) run_in_thread(free_it, pointer);
  return survived();
}
