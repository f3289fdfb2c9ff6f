// SPDX-License-Identifier: MIT
//
// Hands a destroyed heap, or what never was one, to a call. Argument 1: the call (malloc, realloc, destroy, current,
// limit); argument 2: destroyed, replaced (another heap took its place meanwhile), null, garbage, address.
#include "heap.h"

static brimful_heap* bad_heap(const char* kind) {
  brimful_heap* heap = make_heap();
  if (strcmp(kind, "null") == 0) return NULL;
  if (strcmp(kind, "garbage") == 0) return (brimful_heap*)hide((void*)(uintptr_t)0x123456789ABCDEF0);
  if (strcmp(kind, "address") == 0) return (brimful_heap*)hide(malloc(64));
  if (brimful_heap_destroy(heap) != 0) _exit(3);
  if (strcmp(kind, "replaced") == 0) make_heap();
  return heap;
}

int main(int argc, char** argv) {
  warm_up();
  const char* call = argc > 1 ? argv[1] : "malloc";
  brimful_heap* heap = (brimful_heap*)about_to_misuse(bad_heap(argc > 2 ? argv[2] : "destroyed"));
  if (strcmp(call, "malloc") == 0) (void)!brimful_heap_malloc(heap, 64);
  if (strcmp(call, "large") == 0) (void)!brimful_heap_malloc(heap, 100000);
  if (strcmp(call, "realloc") == 0) (void)!brimful_heap_realloc(heap, NULL, 64);
  if (strcmp(call, "destroy") == 0) (void)!brimful_heap_destroy(heap);
  if (strcmp(call, "set_current") == 0) (void)!brimful_heap_set_current(heap);
  if (strcmp(call, "set_limit") == 0) (void)!brimful_heap_set_limit(heap, 1);
  return survived();
}
