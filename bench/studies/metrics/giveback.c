// SPDX-License-Identifier: MIT
//
// giveback: how soon the resident size comes down after a program has freed nearly everything.
//
//   giveback TOTAL_BYTES OBJECT_BYTES SECONDS
//
// Allocates and writes TOTAL_BYTES in objects of OBJECT_BYTES, frees them all, then goes on with light
// activity for SECONDS: every millisecond a few small objects come and go, as in a server between two
// requests. An allocator that gives memory back on its slow paths needs some such activity; one that
// gives back at once or from a thread of its own does not. The resident size is read every 10 ms. Output:
// JSON with the size before, at the peak, and a list of [milliseconds since the last free, KiB].

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "status.h"

enum { kActivityNs = 1000000, kTicksPerReading = 10, kObjectsPerTick = 64 };

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// Resident KiB by the kernel's counters: exact enough for a gigabyte, and cheap at any size.
static long resident_kib(void) { return status_kib("/proc/self/status", "VmRSS:"); }

static void be_lightly_active(uint32_t* random) {
  char* volatile objects[kObjectsPerTick];
  for (int i = 0; i < kObjectsPerTick; i++) {
    *random = *random * 1664525u + 1013904223u;
    objects[i] = malloc(16 + (*random >> 22));
    if (objects[i] != NULL) objects[i][0] = 1;
  }
  for (int i = 0; i < kObjectsPerTick; i++) free(objects[i]);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const size_t total = strtoull(argv[1], NULL, 10);
  const size_t size = strtoull(argv[2], NULL, 10);
  const double wait_ms = strtod(argv[3], NULL) * 1e3;
  if (size < 8 || total < size) return 2;
  const size_t count = total / size;
  char** const objects =
      mmap(NULL, count * sizeof *objects, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (objects == MAP_FAILED) return 1;
  uint32_t random = 1;
  be_lightly_active(&random);

  const long before = resident_kib();
  for (size_t i = 0; i < count; i++) {
    objects[i] = malloc(size);
    if (objects[i] == NULL) return 1;
    memset(objects[i], 1, size);
  }
  const long peak = resident_kib();
  const double free_start = now_ms();
  for (size_t i = 0; i < count; i++) free(objects[i]);
  const double start = now_ms();
  printf("{\"before_kib\": %ld, \"peak_kib\": %ld, \"free_ms\": %.1f, \"series\": [[0, %ld]", before, peak,
         start - free_start, resident_kib());
  for (int tick = 1; now_ms() - start < wait_ms; tick++) {
    be_lightly_active(&random);
    nanosleep(&(struct timespec){0, kActivityNs}, NULL);
    if (tick % kTicksPerReading == 0) printf(", [%.1f, %ld]", now_ms() - start, resident_kib());
  }
  printf("]}\n");
  return 0;
}
