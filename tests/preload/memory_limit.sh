#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A control group with 96 MiB of memory: with limit:auto the program gets NULL and ENOMEM before the kernel kills it, frees,
# and goes on. Without the option it is killed there, which shows that the group is real. A group above the program's own
# counts as well; and where there is no group with a limit, `auto` means none.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need gcc
cat > "$work/fill.c" << 'PROGRAM'
/* Takes all there is, three times, in blocks of several sizes; every byte is written. */
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

# make_group: two groups, one in the other, the outer with the limit. Sets $outer and $inner; fails where that is not allowed.
make_group() {
  local base limit=memory.max
  for base in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    [ -e "$base/cgroup.procs" ] || continue
    [ "$base" = /sys/fs/cgroup ] || limit=memory.limit_in_bytes
    [ "$base" != /sys/fs/cgroup ] || grep -qw memory "$base/cgroup.subtree_control" || continue
    outer=$base/brimful-limit-$$ inner=$base/brimful-limit-$$/inner
    mkdir "$outer" 2> /dev/null || continue
    { [ "$base" != /sys/fs/cgroup ] || echo +memory > "$outer/cgroup.subtree_control"; } 2> /dev/null || true
    mkdir "$inner" 2> /dev/null && echo $((96 << 20)) 2> /dev/null > "$outer/$limit" && return 0
    remove_group
  done
  return 1
}
remove_group() {
  rmdir "$inner" 2> /dev/null || true
  rmdir "$outer" 2> /dev/null || true
}

# in_group CONF: the program's answer from inside the group, and its exit code.
in_group() {
  timeout -k 5 "$time_limit" bash -c 'echo $$ > "$1/cgroup.procs" && LD_PRELOAD=$2 BRIMFUL_CONF=$3 exec "$4"' - \
    "$inner" "$library" "$1" "$work/fill"
}

make_group || skip "no control group with a memory limit can be made here"
trap 'remove_group; clean_up' EXIT

if answer=$(in_group limit:0 2> /dev/null); then
  skip "the limit of the group does not hold here: the program got $answer MiB"
fi
echo "ok   without the option the program is killed"
for front_end in percpu thread; do
  answer=$(in_group "limit:auto,front_end:$front_end") || fail "with limit:auto it ends with $? ($front_end)"
  [ "$answer" -ge 50 ] || fail "only $answer of 96 MiB could be used ($front_end)"
  [ "$answer" -lt 96 ] || fail "$answer of 96 MiB were used ($front_end)"
  echo "ok   $answer MiB, then NULL, and the same after freeing ($front_end)"
done
answer=$(in_group "limit:auto,soft_limit:auto,verbose:1" 2> "$work/said") || fail "with a soft limit it ends with $?"
grep -q "limit $((80 << 20)), soft limit $((70 << 20))" "$work/said" || fail "it says: $(cat "$work/said")"
echo "ok   verbose:1 names the limits"
