// SPDX-License-Identifier: MIT
//
// Reading one's own memory figures without touching the heap: open, read and a scan of the text on the
// stack. stdio would allocate its buffers from the allocator whose footprint is being measured.
//
// /proc/self/smaps_rollup is exact (it walks the page tables); the figures of /proc/self/status come from
// per-CPU counters and may be off by hundreds of KiB, which matters when a whole program has two MiB.

#ifndef BRIMFUL_BENCH_STATUS_H_
#define BRIMFUL_BENCH_STATUS_H_

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The number of KiB behind `key` in a /proc file of "Key:   N kB" lines, or -1.
static inline long status_kib(const char* path, const char* key) {
  char text[8192];
  size_t length = 0;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  for (ssize_t n; length < sizeof text - 1 && (n = read(file, text + length, sizeof text - 1 - length)) > 0;) {
    length += (size_t)n;
  }
  close(file);
  text[length] = 0;
  const char* const found = strstr(text, key);
  return found == NULL ? -1 : strtol(found + strlen(key), NULL, 10);
}

static inline long rss_kib(void) { return status_kib("/proc/self/smaps_rollup", "Rss:"); }

#endif  // BRIMFUL_BENCH_STATUS_H_
