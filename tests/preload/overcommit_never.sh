#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# vm.overcommit_memory = 2: the kernel counts every writable private page against a limit at the moment it is mapped.
# A large reserve must therefore be inaccessible (PROT_NONE costs nothing there), and only what is used be made
# writable. The program runs as it does elsewhere, many processes at once, goes on when memory is full and some was freed, and the commit charge of an idle one stays small.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/_global_settings.sh"
source "$(dirname "${BASH_SOURCE[0]}")/_fill.sh"

build_churn
build_fill
cat > "$work/idle.c" << 'PROGRAM'
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  free(malloc(100));
  puts("ready");
  fflush(stdout);
  getchar();
}
PROGRAM
gcc -O1 -fno-builtin -o "$work/idle" "$work/idle.c"

committed_kib() {
  sed -n 's/^Committed_AS: *\([0-9]*\) kB/\1/p' /proc/meminfo
}

run() {
  local answer before pids=() i
  answer=$(time_limit=8 with_library "$work/churn") || fail "the program ends with $?"
  case $answer in "all right 4 "*) echo "ok   $answer MiB" ;; *) fail "the program says: $answer" ;; esac
  # The machine's memory is not for a test to use up; a limit on what is writable refuses at the same calls.
  answer=$(ulimit -d $((96 << 10)) && with_library "$work/fill") || fail "when memory is full, the program ends with $?"
  [ "$answer" -ge 48 ] || fail "only $answer of 96 MiB could be used"
  echo "ok   $answer of 96 MiB, then NULL, and the same after freeing"
  before=$(committed_kib)
  for ((i = 0; i < 20; ++i)); do
    with_library "$work/idle" < <(sleep 2) > "$work/idle.$i" &
    pids+=("$!")
  done
  for ((i = 0; i < 20; ++i)); do wait_for 5 grep -q ready "$work/idle.$i"; done
  local each=$((($(committed_kib) - before) / 20))
  echo "ok   an idle process is charged $each KiB"
  for i in "${pids[@]}"; do wait "$i" || fail "an idle program ends with $?"; done
  # Other processes of the machine allocate too: the limit is far above an idle program and far below a reserve.
  [ "$each" -lt 65536 ] || fail "an idle process is charged $each KiB"
}
with_setting /proc/sys/vm/overcommit_memory 2 run
