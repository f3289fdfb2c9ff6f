// SPDX-License-Identifier: MIT
//
// What the misuse programs about heaps (include/brimful/heap.h) share; the library is preloaded, so the names are weak.
#ifndef BRIMFUL_TESTS_MISUSE_HEAP_H_
#define BRIMFUL_TESTS_MISUSE_HEAP_H_

#include "misuse.h"

typedef struct brimful_heap brimful_heap;
extern brimful_heap* brimful_heap_create(size_t) __attribute__((weak));
extern int brimful_heap_destroy(brimful_heap*) __attribute__((weak));
extern void* brimful_heap_malloc(brimful_heap*, size_t) __attribute__((weak));
extern void* brimful_heap_realloc(brimful_heap*, void*, size_t) __attribute__((weak));
extern int brimful_heap_set_current(brimful_heap*) __attribute__((weak));
extern int brimful_heap_set_limit(brimful_heap*, size_t) __attribute__((weak));

static inline brimful_heap* make_heap(void) {
  brimful_heap* heap = brimful_heap_create(0);
  if (heap == NULL) {
    print_line("no heap\n");
    _exit(3);
  }
  return heap;
}

// For run_in_thread().
static inline void* free_it(void* block) {
  free(block);
  return NULL;
}

#endif  // BRIMFUL_TESTS_MISUSE_HEAP_H_
