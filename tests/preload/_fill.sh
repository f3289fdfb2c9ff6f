# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# A program that meets the end of memory: for tests of limits. Sourced after _common.sh.

# Builds $work/fill: takes all there is, three times, in blocks of several sizes, writes every byte, gets NULL with ENOMEM,
# frees, goes on; prints how many MiB it got at the least.
build_fill() {
  need gcc
  cat > "$work/fill.c" << 'PROGRAM'
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
  static const size_t kSizes[] = {65536, 100, 3000, 1000000};
  long least = 1L << 40;
  for (int round = 0; round < 3; ++round) {
    for (unsigned i = 0; i < sizeof kSizes / sizeof kSizes[0]; ++i) {
      void* list = NULL;
      long filled = 0;
      while (filled < 200L << 20) {
        errno = 0;
        void** block = malloc(kSizes[i]);
        if (block == NULL) break;
        memset(block, 1, kSizes[i]);
        *block = list;
        list = block;
        filled += (long)kSizes[i];
      }
      if (filled < 200L << 20 && errno != ENOMEM) return 4;
      if (filled < least) least = filled;
      while (list != NULL) {
        void* next = *(void**)list;
        free(list);
        list = next;
      }
    }
  }
  printf("%ld\n", least >> 20);
}
PROGRAM
  gcc -O1 -fno-builtin -o "$work/fill" "$work/fill.c"
}
