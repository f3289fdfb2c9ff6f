#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# lint_format.sh [--fix]: C and C++ in the format of .clang-format, Python as `ruff format` writes it.
# Releases of clang-format differ in details; the project's is 14, Debian 12's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

clang_format=clang-format
if command -v clang-format-14 > /dev/null; then
  clang_format=clang-format-14
fi
mode=(--dry-run --Werror)
ruff_mode=(--check --diff)
if [ "${1:-}" = --fix ]; then
  mode=(-i)
  ruff_mode=()
fi

existing=()
for folder in src include tests bench cli tools; do
  [ ! -d "$folder" ] || existing+=("$folder")
done

status=0
find "${existing[@]}" \( -name '*.h' -o -name '*.c' -o -name '*.cpp' \) -print0 \
  | xargs -0 --no-run-if-empty "$clang_format" --style=file "${mode[@]}" || status=1
build/venv/bin/ruff format --quiet "${ruff_mode[@]}" "${existing[@]}" || status=1
if [ "$status" -ne 0 ]; then
  echo "Not in the project's format: run \`make format\`"
fi
exit "$status"
