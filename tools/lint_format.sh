#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# lint_format.sh [--fix]: C and C++ in the format of .clang-format.
# Releases of clang-format differ in details; the project's is 14, Debian 12's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

clang_format=clang-format
if command -v clang-format-14 > /dev/null; then
  clang_format=clang-format-14
fi
mode=(--dry-run --Werror)
if [ "${1:-}" = --fix ]; then
  mode=(-i)
fi

existing=()
for folder in src include observer tests bench examples; do
  [ ! -d "$folder" ] || existing+=("$folder")
done
mapfile -t files < <(find "${existing[@]}" \( -name '*.h' -o -name '*.c' -o -name '*.cpp' \) | sort)
if ! "$clang_format" --style=file "${mode[@]}" "${files[@]}"; then
  echo "Not in the project's format: run \`make format\`"
  exit 1
fi
echo "format: ${#files[@]} files, no faults"
