// SPDX-License-Identifier: MIT
//
// Records which sizes a program asks malloc for: a library to preload, for bench/record_sizes.py.
//
// Every request goes on to glibc (__libc_malloc …) and is counted by its size; the blocks that live are kept in a table
// by address, so that frees are known by size, too. Whenever the live bytes reach a new peak, 1/64 above the last one that was
// kept, the counts of what lives are copied. At exit one JSON object goes to $SIZES_OUT/PID.json: the requests and the
// peak's live blocks by size, exact up to 32 KiB, in whole pages above. A lock around everything: this is for counting,
// not for timing. What a process that ends without exit() did is not recorded.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* pointer, size_t bytes);
extern void* __libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void* pointer);

enum { EXACT = 32768, LARGE = 16384, COUNTERS = EXACT + 1 + LARGE, PAGE = 4096 };
static const uint64_t kPlaces = UINT64_C(1) << 24;

struct place {
  uintptr_t address;  // 0: nobody's
  size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place* places;  // open addressing, linear probing
static uint64_t requests[COUNTERS], live[COUNTERS], peak[COUNTERS];
static uint64_t live_bytes, peak_bytes, kept_bytes, aligned_requests, resizes, blocks;

static size_t counter_of(size_t bytes) {
  if (bytes <= EXACT) return bytes;
  size_t pages = (bytes + PAGE - 1) / PAGE;
  return EXACT + (pages < LARGE ? pages : LARGE);
}

static uint64_t home_of(uintptr_t address) { return (((uint64_t)address >> 4) * UINT64_C(0x9E3779B97F4A7C15)) >> 40; }

static void add(void* pointer, size_t bytes) {
  if (pointer == NULL) return;
  pthread_mutex_lock(&lock);
  if (places == NULL) {
    places = mmap(NULL, kPlaces * sizeof *places, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
  }
  ++requests[counter_of(bytes)];
  if (places != MAP_FAILED && blocks < kPlaces / 2) {
    uint64_t i = home_of((uintptr_t)pointer);
    while (places[i].address != 0) i = (i + 1) & (kPlaces - 1);
    places[i] = (struct place){(uintptr_t)pointer, bytes};
    ++blocks;
    ++live[counter_of(bytes)];
    live_bytes += bytes;
    if (live_bytes > peak_bytes) peak_bytes = live_bytes;
    if (live_bytes > kept_bytes + kept_bytes / 64 + 4096) {
      kept_bytes = live_bytes;
      memcpy(peak, live, sizeof peak);
    }
  }
  pthread_mutex_unlock(&lock);
}

static void take_out(void* pointer) {
  if (pointer == NULL) return;
  pthread_mutex_lock(&lock);
  uint64_t i = home_of((uintptr_t)pointer);
  while (places != NULL && places[i].address != (uintptr_t)pointer && places[i].address != 0)
    i = (i + 1) & (kPlaces - 1);
  if (places != NULL && places[i].address != 0) {
    --live[counter_of(places[i].bytes)];
    live_bytes -= places[i].bytes;
    --blocks;
    // Knuth, vol. 3, 6.4, algorithm R: what was pushed on by this entry moves up.
    for (uint64_t j = i;;) {
      places[i].address = 0;
      for (;;) {
        j = (j + 1) & (kPlaces - 1);
        if (places[j].address == 0) goto done;
        uint64_t home = home_of(places[j].address);
        if (((j - home) & (kPlaces - 1)) >= ((j - i) & (kPlaces - 1))) break;
      }
      places[i] = places[j];
      i = j;
    }
  }
done:
  pthread_mutex_unlock(&lock);
}

void* malloc(size_t bytes) {
  void* block = __libc_malloc(bytes);
  add(block, bytes);
  return block;
}

void* calloc(size_t count, size_t bytes) {
  void* block = __libc_calloc(count, bytes);
  add(block, count * bytes);
  return block;
}

// Another thread may be given the address as soon as glibc has it back, so it leaves the table first.
void free(void* pointer) {
  take_out(pointer);
  __libc_free(pointer);
}

void* realloc(void* pointer, size_t bytes) {
  ++resizes;
  take_out(pointer);
  void* block = __libc_realloc(pointer, bytes);
  add(block, bytes);
  return block;
}

void* memalign(size_t alignment, size_t bytes) {
  ++aligned_requests;
  void* block = __libc_memalign(alignment, bytes);
  add(block, bytes);
  return block;
}

void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
void* valloc(size_t bytes) { return memalign(PAGE, bytes); }

int posix_memalign(void** result, size_t alignment, size_t bytes) {
  void* block = memalign(alignment, bytes);
  if (block == NULL) return ENOMEM;
  *result = block;
  return 0;
}

// A program that brings its own allocator (redis) must not ask that one about our blocks.
size_t malloc_usable_size(void* pointer) {
  if (pointer == NULL || places == NULL) return 0;
  pthread_mutex_lock(&lock);
  uint64_t i = home_of((uintptr_t)pointer);
  while (places[i].address != (uintptr_t)pointer && places[i].address != 0) i = (i + 1) & (kPlaces - 1);
  size_t bytes = places[i].address != 0 ? places[i].bytes : 0;
  pthread_mutex_unlock(&lock);
  return bytes;
}

static void print_counts(FILE* file, const char* name, const uint64_t* counts) {
  fprintf(file, ",\"%s\":[", name);
  const char* between = "";
  for (size_t i = 0; i < COUNTERS; ++i) {
    if (counts[i] == 0) continue;
    fprintf(file, "%s[%zu,%lu]", between, i <= EXACT ? i : (i - EXACT) * PAGE, counts[i]);
    between = ",";
  }
  fprintf(file, "]");
}

__attribute__((destructor)) static void write_down(void) {
  const char* folder = getenv("SIZES_OUT");
  if (folder == NULL) return;
  char name[4096];
  snprintf(name, sizeof name, "%s/%d.json", folder, getpid());
  FILE* file = fopen(name, "w");
  if (file == NULL) return;
  fprintf(file, "{\"program\":\"%s\",\"peak_bytes\":%lu,\"aligned\":%lu,\"resizes\":%lu", program_invocation_short_name,
          peak_bytes, aligned_requests, resizes);
  print_counts(file, "requests", requests);
  print_counts(file, "live_at_peak", peak);
  fprintf(file, "}\n");
  fclose(file);
}
