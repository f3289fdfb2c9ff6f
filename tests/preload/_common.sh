# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What the preload tests share; sourced, never run. Each test starts one real program under the library with a workload
# that allocates in earnest, checks the program's own result, and proves that the library was really there. Rules:
#   - LD_PRELOAD is set for one command only (with_library), never exported.
#   - A program that is not installed is a skip (77) with its name, not a pass.
#   - Proof of loading: /proc/PID/maps of a living process, or the dynamic linker's own record for short ones
#     (traced), which lists every process of a tree.
#   - Everything lives in one temporary folder, which goes away with every process that the test started.
#
# Environment: BRIMFUL_LIB, the library.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
library=$(realpath -m "${BRIMFUL_LIB:-$root/build/release/libbrimful.so}")
conf=verbose:0
time_limit=60
started_processes=()

work=$(mktemp -d "${TMPDIR:-/tmp}/brimful-preload-XXXXXX")
chmod 755 "$work"

clean_up() {
  local status=$? pid
  for pid in "${started_processes[@]}"; do
    kill "$pid" 2> /dev/null || true
    wait "$pid" 2> /dev/null || true
  done
  rm -rf "$work"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

skip() {
  echo "skip: $*"
  exit 77
}

fail() {
  echo "FAIL: $*"
  exit 1
}

need() {
  local program
  for program in "$@"; do
    command -v "$program" > /dev/null || skip "$program is not installed"
  done
}

[ -e "$library" ] || fail "no library at $library"

# with_library COMMAND…: runs it under the library with the options in $conf. `env` stands behind `timeout`, so neither
# of the two is preloaded itself.
with_library() {
  timeout -k 5 "$time_limit" env LD_PRELOAD="$library" BRIMFUL_CONF="$conf" "$@"
}

# traced COMMAND…: the same, and the dynamic linker writes what it initialised in every process of the tree.
traced() {
  rm -f "$work"/linker.*
  timeout -k 5 "$time_limit" env LD_PRELOAD="$library" BRIMFUL_CONF="$conf" \
    LD_DEBUG=files LD_DEBUG_OUTPUT="$work/linker" "$@"
}

# was_loaded_by PROGRAM…: the record of `traced` shows that each program ran with the library initialised.
was_loaded_by() {
  local program record found
  for program in "$@"; do
    found=no
    for record in "$work"/linker.*; do
      [ -e "$record" ] || continue
      if grep -q "initialize program: .*$program" "$record"; then
        grep -q "calling init: $library" "$record" || fail "$program ran without the library"
        found=yes
      fi
    done
    [ "$found" = yes ] || fail "no record that $program ran"
  done
}

# is_mapped_in PID: the library is mapped in a living process.
is_mapped_in() {
  grep -q "$library" "/proc/$1/maps" || fail "process $1 ($(cat "/proc/$1/comm")) runs without the library"
}

# equal WHAT EXPECTED FOUND
equal() {
  [ "$2" = "$3" ] || fail "$1: expected \"$2\", found \"$3\""
}

# Runs a function with each front end; for the workloads that are fast enough to be run twice.
with_both_front_ends() {
  for conf in verbose:0 front_end:thread; do
    "$@"
    echo "ok   $* ($conf)"
  done
  conf=verbose:0
}

# wait_for SECONDS COMMAND…: until the command succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" > /dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || fail "still not true: $*"
    sleep 0.1
  done
}
