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

run() { # run ARGUMENT…: prints values, live bytes and evictions so far in each of the three states
  "$zcache" --bytes 1M --churn 3 "$@" "$work/files" > "$work/out" 2> "$work/said" || fail "zcache $*: exit code $?"
  python3 -c '
import json, sys
result = json.load(sys.stdin)
assert result["wrong"] == 0 and result["refused"] == 0, result
for state in result["states"]:
    print(state["values"], state["live_bytes"], state["evicted"])' < "$work/out" || fail "zcache $*: the result"
}

for codec in zstd lz4 none; do
  for piece in 4096 64K; do
    handles=$(run --store handles --codec $codec --piece $piece)
    [ "$handles" = "$(run --store malloc --codec $codec --piece $piece)" ] || fail "$codec, $piece: not the same values"
    echo "ok   $codec, $piece: ${handles//$'\n'/; }"
  done
done

read -r _ live evicted < <(run --limit 100K --erase 0 | sed -n 2p)
[ "$live" -le 102400 ] || fail "$live bytes are more than the limit"
[ "$evicted" -gt 0 ] || fail "nothing was evicted"

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
"$zcache" --churn 1000000 "$work/files" > "$work/out" 2> "$work/said" &
process=$!
while kill -0 $process && ! grep -q "loading" "$work/said"; do sleep 0.05; done
kill -INT $process
code=0
wait $process || code=$?
[ "$code" = 130 ] || fail "interrupted: exit code $code"
grep -q "zcache: interrupted" "$work/said" || fail "does not say that it was interrupted"
[ ! -s "$work/out" ] || fail "interrupted, and yet a result"
echo "ok   limit, faults, interrupt"
