// SPDX-License-Identifier: MIT
//
// Preloaded with a rival, this says which file serves malloc and whether the allocator works at all.
//
// A library that is not really loaded, or that loses blocks, would give fine figures: the first measures glibc,
// the second measures nothing. So every rival runs this before it may be measured. It prints one line for each
// call it looked up ("serves malloc /path"), each stage that it begins, alignments that the library cannot give
// ("limit …"), the front end that runs if the library can say it ("mode …"), and either "sound" or one line
// "fault: …" with exit code 1. The checks are those that hold for every malloc:
// contents survive, blocks do not overlap, alignment, realloc, calloc, and blocks freed by another thread than
// the one that asked for them.
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kThreads = 4, kRounds = 40, kBatch = 500 };

struct Block {
  unsigned char* bytes;
  size_t size;
  unsigned char mark;
};

// One mailbox for each thread: it fills its own, and empties its neighbour's after the barrier.
static struct Block boxes[kThreads][kBatch];
static pthread_barrier_t everyone;

static void fail(const char* what, size_t size) {
  printf("fault: %s (size %zu)\n", what, size);
  fflush(stdout);
  _Exit(1);
}

// The compiler may not know what the pointer is, or it deletes pairs of malloc and free.
static void* opaque(void* pointer) {
  __asm__ volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

static uint32_t next(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

// Mostly small, as programs are; one in 64 up to 256 KiB.
static size_t some_size(uint32_t* state) {
  uint32_t draw = next(state);
  return draw % 64 == 0 ? draw % (256u << 10) : draw % 1024;
}

static void check_filled(const struct Block* block) {
  for (size_t i = 0; i < block->size; i++) {
    if (block->bytes[i] != block->mark) fail("a block lost its contents", block->size);
  }
}

static void fill_box(struct Block* box, uint32_t* state) {
  for (int i = 0; i < kBatch; i++) {
    struct Block* block = &box[i];
    block->size = some_size(state);
    block->mark = (unsigned char)next(state);
    block->bytes = opaque(malloc(block->size));
    if (block->bytes == NULL) fail("malloc returned NULL", block->size);
    size_t alignment = block->size >= 16 ? 16 : 8;
    if ((uintptr_t)block->bytes % alignment != 0) fail("malloc misaligned", block->size);
    memset(block->bytes, block->mark, block->size);
  }
}

static void* work(void* argument) {
  int self = (int)(intptr_t)argument;
  uint32_t state = (uint32_t)self * 7919u + 1u;
  for (int round = 0; round < kRounds; round++) {
    fill_box(boxes[self], &state);
    pthread_barrier_wait(&everyone);
    struct Block* neighbours = boxes[(self + 1) % kThreads];
    for (int i = 0; i < kBatch; i++) {
      check_filled(&neighbours[i]);
      free(neighbours[i].bytes);
    }
    pthread_barrier_wait(&everyone);
  }
  return NULL;
}

static void check_threads(void) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&everyone, NULL, kThreads);
  for (intptr_t i = 0; i < kThreads; i++) {
    if (pthread_create(&threads[i], NULL, work, (void*)i) != 0) fail("pthread_create failed", 0);
  }
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
}

static void check_realloc(void) {
  struct Block block = {NULL, 0, 0x5a};
  for (size_t size = 1; size <= 8u << 20; size = size * 3 + 1) {
    block.bytes = opaque(realloc(block.bytes, size));
    if (block.bytes == NULL) fail("realloc returned NULL", size);
    check_filled(&block);
    memset(block.bytes, block.mark, size);
    block.size = size;
  }
  for (size_t size = block.size; size > 1; size /= 5) {
    block.bytes = opaque(realloc(block.bytes, size));
    block.size = size;
    if (block.bytes == NULL) fail("realloc returned NULL", size);
    check_filled(&block);
  }
  free(block.bytes);
}

static void check_calloc(void) {
  for (size_t size = 1; size <= 1u << 20; size *= 4) {
    for (int again = 0; again < 8; again++) {
      struct Block block = {opaque(calloc(1, size)), size, 0};
      if (block.bytes == NULL) fail("calloc returned NULL", size);
      check_filled(&block);
      memset(block.bytes, 0xff, size);
      free(opaque(block.bytes));
    }
  }
}

// What is wrong with blocks of this alignment, or NULL. Blocks with a fault are kept: freeing them may abort.
static const char* aligned_fault(size_t alignment) {
  void* pointer = opaque(aligned_alloc(alignment, 3 * alignment));
  void* other = NULL;
  if (pointer == NULL || (uintptr_t)pointer % alignment != 0) return "aligned_alloc cannot align";
  if (posix_memalign(&other, alignment, 100) != 0 || (uintptr_t)other % alignment != 0) {
    return "posix_memalign cannot align";
  }
  if (malloc_usable_size(other) < 100) return "malloc_usable_size is too small for a block aligned";
  memset(pointer, 1, 3 * alignment);
  memset(other, 2, 100);
  free(pointer);
  free(other);
  return NULL;
}

// Programs ask for a page at most; beyond it a failure is a limit worth knowing and no fault.
static void check_aligned(void) {
  for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
    const char* fault = aligned_fault(alignment);
    if (fault != NULL) fail(fault, alignment);
  }
}

static void say_limits(void) {
  for (size_t alignment = 8192; alignment <= 1u << 20; alignment *= 2) {
    const char* fault = aligned_fault(alignment);
    if (fault == NULL) continue;
    printf("limit %s to %zu bytes or more\n", fault, alignment);
    return;
  }
}

static void begin(const char* stage) {
  printf("checking %s\n", stage);
  fflush(stdout);
}

static void say_who_serves(const char* name) {
  void* symbol = dlsym(RTLD_DEFAULT, name);
  Dl_info info;
  bool known = symbol != NULL && dladdr(symbol, &info) != 0;
  printf("serves %s %s\n", name, known ? info.dli_fname : "nobody");
}

// Google's tcmalloc tells which of its front ends runs; asked after the threads, when it has decided.
static void say_mode(void) {
  void* symbol = dlsym(RTLD_DEFAULT, "MallocExtension_Internal_GetPerCpuCachesActive");
  bool (*per_cpu)(void);
  if (symbol == NULL) return;
  memcpy(&per_cpu, &symbol, sizeof per_cpu);
  printf("mode %s\n", per_cpu() ? "per-CPU caches" : "per-thread caches");
}

int main(void) {
  static const char* const kCalls[] = {
      "malloc", "free", "calloc", "realloc", "aligned_alloc", "posix_memalign", "malloc_usable_size"};
  for (size_t i = 0; i < sizeof kCalls / sizeof kCalls[0]; i++) say_who_serves(kCalls[i]);
  begin("threads");
  check_threads();
  begin("realloc");
  check_realloc();
  begin("calloc");
  check_calloc();
  begin("alignment");
  check_aligned();
  say_limits();
  say_mode();
  puts("sound");
  return 0;
}
