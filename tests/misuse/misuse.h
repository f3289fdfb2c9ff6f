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

// The return value of main when the faulty call came back.
static inline int survived(void) {
  print_line("survived\n");
  return 0;
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
