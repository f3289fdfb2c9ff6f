#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# hugetlb:2M with a pool of 48 hugepages, set up for this test: a heap of 300 MiB takes them all and goes on with ordinary
# pages, contents stay right, and freed ones go back to the pool. With an empty pool the program runs as without the option.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/_global_settings.sh"

need gcc
cat > "$work/pool.c" << 'PROGRAM'
/* Prints the KiB of hugepages of the pool that the process holds: full, and after all was freed. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { kCount = 4000 };
static long pool_kib(void) {
  char line[256];
  long kib = -1;
  FILE* file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) sscanf(line, "HugetlbPages: %ld", &kib);
  if (file != NULL) fclose(file);
  return kib;
}
int main(void) {
  static unsigned char* block[kCount];
  long full = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kCount; ++i) {
      size_t size = i % 40 == 0 ? 3000000 : i % 2 == 0 ? 5000 : 100;
      block[i] = round == 1 ? calloc(1, size) : malloc(size);
      if (block[i] == NULL) return 3;
      if (round == 1)
        for (size_t k = 0; k < size; ++k)
          if (block[i][k] != 0) return 4;
      memset(block[i], i, size);
      if (i % 80 == 0) block[i] = realloc(block[i], 5000000);
      if (block[i] == NULL || block[i][size - 1] != (unsigned char)i) return 5;
    }
    full = pool_kib();
    for (int i = 0; i < kCount; ++i) {
      if (block[i][0] != (unsigned char)i || block[i][99] != (unsigned char)i) return 6;
      free(block[i]);
    }
    if (round < 2) malloc_trim(0);
  }
  malloc_trim(0);
  printf("%ld %ld\n", full, pool_kib());
}
PROGRAM
gcc -O1 -fno-builtin -o "$work/pool" "$work/pool.c"

run() {
  local answer front_end full rest
  for front_end in percpu thread; do
    answer=$(conf=hugetlb:$1,verbose:1,front_end:$front_end && with_library "$work/pool" 2> "$work/said") \
      || fail "the program ends with $?: $(cat "$work/said")"
    full=${answer% *} rest=${answer#* }
    # Hugepages that got ordinary pages keep them, so the last round may leave some of the pool.
    if [ "$full" -gt "$2" ] || [ "$full" -lt $(($2 * 3 / 4)) ]; then
      fail "$full KiB came from the pool of $2 ($front_end)"
    fi
    if [ "$1" = 2M ] || [ "$2" = 0 ]; then
      [ "$rest" -le $((full / 4)) ] || fail "$rest of $full KiB did not go back ($front_end)"
      grep -q "pool is empty" "$work/said" || fail "nothing says that the pool is empty: $(cat "$work/said")"
    fi
    echo "ok   $full KiB from the pool with $1, $rest after freeing ($front_end)"
  done
}
run 2M 0
run 1G 0
with_setting /proc/sys/vm/nr_hugepages 48 run 2M $((48 * 2048))
# A page of 1 GiB is more than the program needs; it stays until the program ends.
with_setting /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages 1 run 1G $((1 << 20))
