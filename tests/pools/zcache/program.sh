#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# program.sh ZCACHE: the program on a small folder, with both stores and each codec: every value comes back, both stores
# hold the same, the limit holds; then the command line's faults, and Ctrl-C.
set -euo pipefail

zcache=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/brimful-zcache-XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAIL: $*"
  cat "$work/said"
  exit 1
}

# A text that compresses, one that does not, a short one, none, and what is not to be followed.
mkdir -p "$work/files/inner"
seq 1 40000 > "$work/files/numbers"
head -c 100000 /dev/urandom > "$work/files/inner/noise"
echo short > "$work/files/inner/short"
: > "$work/files/inner/empty"
ln -s .. "$work/files/inner/up"

run() { # run ARGUMENT…: into $work/out
  "$zcache" --bytes 1M --churn 3 "$@" "$work/files" > "$work/out" 2> "$work/said" || fail "zcache $*: exit code $?"
  python3 -m json.tool "$work/out" > "$work/pretty" || fail "zcache $*: no JSON"
  grep -q '"wrong": 0,' "$work/out" || fail "zcache $*: wrong values"
}

figure() { # figure STATE NAME: from the last run
  python3 -c '
import json, sys
states = json.load(open(sys.argv[1]))["states"]
print(next(state for state in states if state["state"] == sys.argv[2])[sys.argv[3]])' "$work/out" "$@"
}

for codec in zstd lz4 none; do
  for piece in 4096 64K; do
    live=()
    for store in handles malloc; do
      run --store $store --codec $codec --piece $piece
      live+=("$(figure loaded live_bytes) $(figure churned live_bytes) $(figure thinned live_bytes)")
    done
    [ "${live[0]}" = "${live[1]}" ] || fail "$codec, $piece: the stores hold different values: ${live[*]}"
    echo "ok   $codec, $piece: ${live[0]} bytes"
  done
done

run --limit 100K --erase 0
[ "$(figure churned live_bytes)" -le 102400 ] || fail "more than the limit"
[ "$(figure churned evicted)" -gt 0 ] || fail "nothing was evicted"

rejected() { # rejected CODE TEXT ARGUMENT…
  local code=0
  "$zcache" "${@:3}" > "$work/out" 2> "$work/said" || code=$?
  [ "$code" = "$1" ] || fail "zcache ${*:3}: exit code $code, not $1"
  grep -qF -- "$2" "$work/said" || fail "zcache ${*:3}: does not say $2"
}
rejected 2 "no FOLDER" --codec lz4
rejected 2 '--codec: "gzip" is not zstd, lz4 or none' --codec gzip .
rejected 2 '--piece: "4Q" is not a size' --piece 4Q .
rejected 2 "--colour: no such option" --colour red .
rejected 1 "is not a folder" "$work/nowhere"
"$zcache" --help | grep -q -- "--store handles|malloc" || fail "--help"

# An interrupt ends it soon and without a result.
"$zcache" --churn 100000000 "$work/files" > "$work/out" 2> "$work/said" &
process=$!
while kill -0 $process && ! grep -q "loading" "$work/said"; do sleep 0.05; done
kill -INT $process
code=0
wait $process || code=$?
[ "$code" = 130 ] || fail "interrupted: exit code $code"
grep -q "zcache: interrupted" "$work/said" || fail "does not say that it was interrupted"
[ ! -s "$work/out" ] || fail "interrupted, and yet a result"
echo "ok   limit, faults, interrupt"
