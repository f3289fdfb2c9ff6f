#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# 96 MiB, and not more: of address space (ulimit -v), of private writable memory (ulimit -d), and of memory in a control
# group. There, with limit:auto the program gets NULL and ENOMEM before the kernel kills it, frees,
# and goes on. Without the option it is killed there, which shows that the group is real. A group above the program's own
# counts as well; and where there is no group with a limit, `auto` means none.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/_fill.sh"

build_fill

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
  # shellcheck disable=SC2016  # the inner shell expands them
  timeout -k 5 "$time_limit" bash -c 'echo $$ > "$1/cgroup.procs" && LD_PRELOAD=$2 BRIMFUL_CONF=$3 exec "$4"' - \
    "$inner" "$library" "$1" "$work/fill"
}

# under_ulimit OPTION: the program under 96 MiB of what the shell's ulimit means by the option.
under_ulimit() {
  local answer front_end
  for front_end in percpu thread; do
    answer=$(ulimit "$1" $((96 << 10)) && conf=front_end:$front_end && with_library "$work/fill") \
      || fail "under ulimit $1 it ends with $? ($front_end)"
    [ "$answer" -ge "$2" ] || fail "only $answer of 96 MiB could be used under ulimit $1 ($front_end)"
    echo "ok   $answer MiB under ulimit $1, then NULL, and the same after freeing ($front_end)"
  done
}
under_ulimit -v 24
under_ulimit -d 48

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
