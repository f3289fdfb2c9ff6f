// SPDX-License-Identifier: MIT
//
// What the misuse programs share. Each commits one fault and is told apart by run.py, which knows what the
// library has to say: a program announces the pointer on standard output right before the faulty call, and
// says so if it survives. Nothing but write(2) is used, so that the only heap work is the program's own.
#ifndef BRIMFUL_TESTS_MISUSE_MISUSE_H_
#define BRIMFUL_TESTS_MISUSE_MISUSE_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "brimful/misuse.h"

// C23, and the C++ operators under their mangled names; the allocator under test supplies them.
extern void free_sized(void*, size_t) __attribute__((weak));
extern void free_aligned_sized(void*, size_t, size_t) __attribute__((weak));
extern void _ZdlPv(void*) __attribute__((weak));           // operator delete(void*)
extern void _ZdlPvm(void*, size_t) __attribute__((weak));  // operator delete(void*, size_t)
extern void* _Znwm(size_t) __attribute__((weak));          // operator new(size_t)

// Hides a pointer from the compiler, which warns about the very faults that these programs commit, or deletes
// them.
static inline void* hide(const void* pointer) {
  void* hidden = (void*)(uintptr_t)pointer;
  __asm__ volatile("" : "+r"(hidden) : : "memory");
  return hidden;
}

static inline void print_line(const char* text) {
  ssize_t written = write(STDOUT_FILENO, text, strlen(text));
  (void)written;
}

// Prints "pointer 0x…" and gives the pointer on, to be the argument of the faulty call.
static inline void* about_to_misuse(const void* pointer) {
  char line[64];
  snprintf(line, sizeof line, "pointer 0x%llx\n", (unsigned long long)(uintptr_t)pointer);
  print_line(line);
  return hide(pointer);
}

// Whether the heap gives each of many blocks to one owner only, keeps their bytes, and gives the addresses again when they were freed: behind a
// report that the program survived it has to.
static inline int is_heap_right(void) {
  enum { kBlocks = 400 };
  static const size_t kSizes[] = {1, 16, 61, 64, 100, 1000, 3000, 4096, 32768, 40000, 200000};
  static unsigned char* blocks[kBlocks];
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kBlocks; ++i) {
      const size_t size = kSizes[i % (sizeof kSizes / sizeof kSizes[0])];
      const size_t seen = size < 4096 ? size : 4096;
      blocks[i] = hide(malloc(size));
      if (blocks[i] == NULL) return 0;
      memset(blocks[i], i, seen);
    }
    for (int i = 0; i < kBlocks; ++i) {
      const size_t size = kSizes[i % (sizeof kSizes / sizeof kSizes[0])];
      const size_t seen = size < 4096 ? size : 4096;
      for (size_t n = 0; n < seen; ++n)
        if (blocks[i][n] != (unsigned char)i) return 0;
      free(blocks[i]);
    }
  }
  return 1;
}

// The return value of main when the faulty call came back.
static inline int survived(void) {
  print_line(is_heap_right() ? "survived\n" : "the heap is damaged\n");
  return 0;
}

// With misuse:hook, what MISUSE_HOOK says: the hook prints what it was told, allocates, and answers so.
extern void brimful_set_misuse_hook(enum brimful_misuse_answer (*)(const struct brimful_misuse*)) __attribute__((weak));

static enum brimful_misuse_answer hook_answer;

static inline enum brimful_misuse_answer on_misuse(const struct brimful_misuse* report) {
  char line[600];
  snprintf(line, sizeof line, "hook %d %s 0x%llx: %s\n", (int)report->kind, report->call,
           (unsigned long long)(uintptr_t)report->pointer, report->message);
  char* copy = malloc(strlen(line) + 1);
  if (copy != NULL) strcpy(copy, line);
  print_line(copy != NULL ? copy : "hook without memory\n");
  free(copy);
  return hook_answer;
}

__attribute__((constructor)) static void register_hook(void) {
  const char* answer = getenv("MISUSE_HOOK");
  if (answer == NULL || brimful_set_misuse_hook == NULL) return;
  hook_answer = strcmp(answer, "warn") == 0     ? BRIMFUL_MISUSE_WARN
                : strcmp(answer, "ignore") == 0 ? BRIMFUL_MISUSE_IGNORE
                                                : BRIMFUL_MISUSE_ABORT;
  brimful_set_misuse_hook(on_misuse);
}

// Argument number i as a number (decimal or 0x…), or a default.
static inline size_t argument(int argc, char** argv, int i, size_t otherwise) {
  return i < argc ? (size_t)strtoull(argv[i], NULL, 0) : otherwise;
}

// malloc that must work, with the first byte touched.
static inline char* allocate(size_t size) {
  char* object = hide(malloc(size));
  if (object == NULL) {
    print_line("out of memory\n");
    _exit(3);
  }
  if (size > 0) object[0] = 1;
  return object;
}

// Runs a function in a thread of its own and waits for its end.
static inline void run_in_thread(void* (*function)(void*), void* passed) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, function, passed) != 0) _exit(4);
  pthread_join(thread, NULL);
}

static inline void* do_nothing(void* passed) {
  free(allocate(64));
  return passed;
}

// What a program's first thread and first small object make the heap build (and libc allocate) must not take the place
// of a block that a test has just freed: the address would then be that of a live object, and its free a right one.
static inline void warm_up(void) { run_in_thread(do_nothing, NULL); }

#endif  // BRIMFUL_TESTS_MISUSE_MISUSE_H_
