#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run_ctest.sh FOLDER ARGUMENT…: ctest, then why each skipped test was skipped, then ctest's count line once more.
#
# CTest lists skipped tests by name but keeps their output to itself, and a skip whose reason nobody reads is a test
# that nobody has. The exit code is ctest's.
set -euo pipefail

folder="$1"
shift
output="$folder/ctest-output.txt"
log="$folder/Testing/Temporary/LastTest.log"
rm -f "$log"

status=0
ctest --test-dir "$folder" --output-on-failure --no-tests=error "$@" 2>&1 | tee "$output" || status=$?

# The last line that a test printed is its reason; GoogleTest closes with a summary, so there the line after `Skipped`.
if [ -e "$log" ] && grep -q 'Skipped' "$output"; then
  echo
  echo "Skipped, and why:"
  awk '
    / Testing: / { sub(/.* Testing: /, ""); name = $0; reason = ""; wanted = 0; body = 0; next }
    /^Output:$/ { body = 1; next }
    /^<end of output>$/ { body = 0; next }
    body && /: Skipped$/ { wanted = 1; next }
    body && wanted == 1 { reason = $0; wanted = 2; next }
    body && wanted == 0 && NF && !/^-+$/ { reason = $0 }
    name != "" { reasons[name] = reason }
    END { for (name in reasons) print name "\t" reasons[name] }
  ' "$log" | sort > "$folder/reasons.txt"
  grep -oE '[A-Za-z0-9_./-]+ +\.*\*+Skipped' "$output" | awk '{ print $1 }' | sort | while read -r name; do
    awk -F'\t' -v name="$name" '$1 == name { print "  " name ": " $2 }' "$folder/reasons.txt"
  done
  echo
  grep -E 'tests passed, .* tests? failed out of' "$output"
fi
exit "$status"
