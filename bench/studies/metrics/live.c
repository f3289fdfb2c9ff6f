// SPDX-License-Identifier: MIT
//
// live: how many resident bytes an allocator needs beyond the live bytes themselves.
//
//   live TOTAL_BYTES OBJECT_BYTES
//
// Allocates TOTAL_BYTES in objects of OBJECT_BYTES, writes to every one of them, frees nothing, and
// reports by how much the resident size grew. The table of pointers is mapped and filled beforehand,
// outside the heap, so the growth is the allocator's: the live bytes, its metadata, and what it rounds up.
// What mallinfo2 says of the same heap is printed beside it.

#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>

#include "status.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const size_t total = strtoull(argv[1], NULL, 10);
  const size_t size = strtoull(argv[2], NULL, 10);
  if (size < 8 || total < size) return 2;
  const size_t count = total / size;
  char** const objects =
      mmap(NULL, count * sizeof *objects, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (objects == MAP_FAILED) return 1;
  free(malloc(size));  // the allocator is awake and its code is mapped in before the first reading

  const long before = rss_kib();
  for (size_t i = 0; i < count; i++) {
    objects[i] = malloc(size);
    if (objects[i] == NULL) return 1;
    memset(objects[i], 1, size);
  }
  const long after = rss_kib();
  const struct mallinfo2 info = mallinfo2();
  printf("{\"live_bytes\": %zu, \"grown_kib\": %ld, \"mallinfo2\": {\"arena\": %zu, \"hblkhd\": %zu, ", count * size,
         after - before, info.arena, info.hblkhd);
  printf("\"uordblks\": %zu, \"fordblks\": %zu}}\n", info.uordblks, info.fordblks);
  return 0;
}
