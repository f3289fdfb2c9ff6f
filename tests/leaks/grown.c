// SPDX-License-Identifier: MIT
//
// A chain of blocks through 40 MB of heap, each block's last word the only way to the next: whatever of the heap is missing
// from a core shows as loss.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kBlocks = 400, kBytes = 100000 };

static char* first;

int main(void) {
  char** last = &first;
  for (int i = 0; i < kBlocks; ++i) {
    char* block = malloc(kBytes);
    memset(block, 0, kBytes);
    *last = block;
    last = (char**)(block + kBytes - sizeof(char*));
  }
  puts("ready");
  fflush(stdout);
  char byte;
  return read(0, &byte, 1) < 0;
}
