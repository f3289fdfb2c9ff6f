// SPDX-License-Identifier: MIT
//
// Guarded objects for the misuse programs, which run with guards:1: one at its page's end, where the first byte behind it has
// no access, or at its page's start, where the last byte before it has none.
#ifndef BRIMFUL_TESTS_MISUSE_GUARDED_H_
#define BRIMFUL_TESTS_MISUSE_GUARDED_H_

#include "misuse.h"

enum { kMostTries = 200 };

// `size` a multiple of 16: others leave room before the page's end.
__attribute__((unused)) static char* guarded_at_end(size_t size) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (int i = 0; i < kMostTries; ++i) {
    char* object = allocate(size);
    if (((uintptr_t)object + size) % page == 0) return object;
  }
  print_line("no object at the end of a page\n");
  _exit(5);
}

__attribute__((unused)) static char* guarded_at_start(size_t size) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (int i = 0; i < kMostTries; ++i) {
    char* object = allocate(size);
    if ((uintptr_t)object % page == 0) return object;
  }
  print_line("no object at the start of a page\n");
  _exit(5);
}

// These stay calls, for the stack of the report to name them.
__attribute__((noinline, unused)) static void write_at(volatile char* at) { *at = 1; }
__attribute__((noinline, unused)) static int read_at(const volatile char* at) { return *at; }

#endif  // BRIMFUL_TESTS_MISUSE_GUARDED_H_
