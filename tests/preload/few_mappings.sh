#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# vm.max_map_count = 1000: an allocator that splits its reserve into many mappings (by protection, advice or names) meets
# ENOMEM from mprotect, munmap and madvise there. The program must run through: a failing call costs memory at most, never
# a crash or a lost object.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/_global_settings.sh"

build_churn
cat > "$work/holes.c" << 'PROGRAM'
/* Every other of 3000 large blocks is freed: as many holes as possible; then the holes are used again. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { kCount = 3000 };
int main(void) {
  static char* block[kCount];
  int missing = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kCount; ++i) {
      if (block[i] != NULL) continue;
      size_t size = 70000 + (size_t)(i % 7) * 10000;
      errno = 0;
      block[i] = malloc(size);
      if (block[i] == NULL) {
        if (errno != ENOMEM) return 3;
        ++missing;
        continue;
      }
      block[i][0] = (char)i;
      block[i][size - 1] = (char)~i;
    }
    for (int i = round % 2; i < kCount; i += 2) {
      if (block[i] != NULL && block[i][0] != (char)i) return 4;
      free(block[i]);
      block[i] = NULL;
    }
    malloc_trim(0);
  }
  for (int i = 0; i < kCount; ++i) {
    if (block[i] != NULL && block[i][0] != (char)i) return 5;
    free(block[i]);
  }
  printf("all right, %d refused\n", missing);
}
PROGRAM
gcc -O1 -fno-builtin -o "$work/holes" "$work/holes.c"

run() {
  local answer front_end
  for front_end in percpu thread; do
    answer=$(conf=front_end:$front_end,purge_delay_ms:0 && time_limit=8 with_library "$work/holes") \
      || fail "holes end with $? ($front_end)"
    echo "ok   $answer ($front_end)"
    answer=$(conf=front_end:$front_end && time_limit=8 with_library "$work/churn") || fail "churn ends with $? ($front_end)"
    case $answer in "all right 4 "*) echo "ok   $answer MiB ($front_end)" ;; *) fail "churn says: $answer" ;; esac
  done
}
with_setting /proc/sys/vm/max_map_count 1000 run
