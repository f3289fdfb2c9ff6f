#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Recursion at start-up. A second preloaded library wraps malloc and friends by dlsym(RTLD_NEXT), once in its constructor and once
# at the first call: dlsym itself may allocate, and getenv and mmap wrappers may be called by the allocator while it
# wakes up. Both orders of the two libraries are tried.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need gcc
cat > "$work/wrapper.c" << 'PROGRAM'
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static void* (*next_malloc)(size_t);
static void (*next_free)(void*);
static void* (*next_calloc)(size_t, size_t);
static void* (*next_realloc)(void*, size_t);
static char* (*next_getenv)(const char*);
static long calls;
static char early[65536];  /* what dlsym asks for while the real functions are not known */
static size_t early_used;
static int is_resolving;
static void resolve(void) {
  is_resolving = 1;
  next_malloc = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  next_free = (void (*)(void*))dlsym(RTLD_NEXT, "free");
  next_calloc = (void* (*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
  next_realloc = (void* (*)(void*, size_t))dlsym(RTLD_NEXT, "realloc");
  next_getenv = (char* (*)(const char*))dlsym(RTLD_NEXT, "getenv");
  is_resolving = 0;
}
#ifdef IN_CONSTRUCTOR
__attribute__((constructor)) static void start(void) { resolve(); free(strdup("from the constructor")); }
#endif
static void* take_early(size_t size) {
  size_t at = (early_used + 15) & ~(size_t)15;
  if (at + size > sizeof early) _exit(60);
  early_used = at + size;
  return early + at;
}
void* malloc(size_t size) {
  if (next_malloc == NULL) {
    if (is_resolving) return take_early(size);
    resolve();
  }
  ++calls;
  return next_malloc(size);
}
void* calloc(size_t count, size_t size) {
  if (next_calloc == NULL) {
    if (is_resolving) return take_early(count * size);
    resolve();
  }
  return next_calloc(count, size);
}
void free(void* pointer) {
  if ((char*)pointer >= early && (char*)pointer < early + sizeof early) return;
  if (next_free == NULL) resolve();
  next_free(pointer);
}
void* realloc(void* pointer, size_t size) {
  if ((char*)pointer >= early && (char*)pointer < early + sizeof early) {
    void* moved = malloc(size);
    memcpy(moved, pointer, size);
    return moved;
  }
  if (next_realloc == NULL) resolve();
  return next_realloc(pointer, size);
}
/* A getenv that allocates, as some sandboxes have it. */
char* getenv(const char* name) {
  if (next_getenv == NULL) {
    if (is_resolving) return NULL;
    resolve();
  }
  free(malloc(100));
  return next_getenv(name);
}
long wrapper_calls(void) { return calls; }
PROGRAM
cat > "$work/program.c" << 'PROGRAM'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern long wrapper_calls(void) __attribute__((weak));
int main(void) {
  char* text[1000];
  for (int i = 0; i < 1000; ++i) { text[i] = malloc((size_t)i + 10); sprintf(text[i], "%d", i); }
  for (int i = 0; i < 1000; ++i) { if (atoi(text[i]) != i) return 1; text[i] = realloc(text[i], 5000); if (atoi(text[i]) != i) return 2; free(text[i]); }
  printf("%s\n", wrapper_calls != NULL && wrapper_calls() >= 1000 ? "wrapped" : "not wrapped");
}
PROGRAM
gcc -O1 -fPIC -shared -fno-builtin -o "$work/at_first_call.so" "$work/wrapper.c" -ldl
gcc -O1 -fPIC -shared -fno-builtin -DIN_CONSTRUCTOR -o "$work/in_constructor.so" "$work/wrapper.c" -ldl
gcc -O1 -fno-builtin -o "$work/program" "$work/program.c"
run() {
  local wrapper
  for wrapper in at_first_call in_constructor; do
    equal "$wrapper before the library" "wrapped" \
      "$(timeout 20 env LD_PRELOAD="$work/$wrapper.so $library" BRIMFUL_CONF="$conf" "$work/program")"
    # Behind the library the wrapper is never called, but its getenv is in force all the same where it comes first.
    equal "$wrapper behind the library" "not wrapped" \
      "$(timeout 20 env LD_PRELOAD="$library $work/$wrapper.so" BRIMFUL_CONF="$conf" "$work/program")"
  done
}
with_both_front_ends run
