#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# stress-ng --malloc: workers that allocate, reallocate, verify and free at random for five seconds, with threads.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need stress-ng
conf=verbose:0
with_library stress-ng --malloc 2 --malloc-ops 200000 --malloc-bytes 256M --malloc-pthreads 2 --verify --timeout 5 \
  --metrics-brief > "$work/output" 2>&1 || fail "stress-ng: $(tail -n 20 "$work/output")"
grep -q 'successful run completed' "$work/output" || grep -q 'passed: ' "$work/output" || fail "$(cat "$work/output")"
grep -Ei 'fail:|corrupt|unexpected' "$work/output" && fail "stress-ng found faults"
traced stress-ng --malloc 1 --malloc-ops 100 --timeout 2 > /dev/null 2>&1 || fail "stress-ng under the linker's trace"
was_loaded_by stress-ng
