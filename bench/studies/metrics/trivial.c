// SPDX-License-Identifier: MIT
//
// trivial: the smallest program that uses a heap, to see what an allocator costs before it has done
// anything. It allocates a few objects of different sizes, writes to them, and frees half of them.
//
//   trivial          prints its resident size, exact, and the peak the kernel kept, as JSON
//   trivial quiet    only exits: for timing how long such a program takes from start to end

#include <stdio.h>

#include "status.h"

int main(int argc, char** argv) {
  static const size_t kSizes[] = {16, 24, 40, 64, 100, 200, 1000, 5000};
  enum { kCount = sizeof kSizes / sizeof *kSizes };
  char* volatile objects[kCount];
  for (int i = 0; i < kCount; i++) {
    objects[i] = malloc(kSizes[i]);
    if (objects[i] == NULL) return 1;
    objects[i][0] = 1;
  }
  for (int i = 0; i < kCount; i += 2) free(objects[i]);
  if (argc > 1 && strcmp(argv[1], "quiet") == 0) return 0;

  const long rss = rss_kib();
  const long dirty = status_kib("/proc/self/smaps_rollup", "Private_Dirty:");
  const long peak = status_kib("/proc/self/status", "VmHWM:");
  const long size = status_kib("/proc/self/status", "VmSize:");
  printf("{\"rss_kib\": %ld, \"private_dirty_kib\": %ld, \"peak_rss_kib\": %ld, \"address_space_kib\": %ld}\n", rss,
         dirty, peak, size);
  return 0;
}
