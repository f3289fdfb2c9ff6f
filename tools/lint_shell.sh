#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Checks every shell script of the project with shellcheck, whatever its name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v shellcheck > /dev/null; then
  echo "shellcheck is not installed: shell scripts are not checked"
  exit 77
fi
existing=()
for folder in .ci bench cli docs tests tools; do
  [ ! -d "$folder" ] || existing+=("$folder")
done
mapfile -t scripts < <(
  # What begins with _ is part of the scripts that source it, and is checked there.
  find "${existing[@]}" -name '*.sh' ! -name '_*'
  # A file with no match is no fault of grep's.
  find . .ci bench tools tests -maxdepth 1 -type f ! -name '*.*' -print0 2> /dev/null \
    | xargs -0 --no-run-if-empty grep -lE '^#!.*\b(ba)?sh\b' || [ $? -eq 123 ]
)
shellcheck --external-sources --source-path=SCRIPTDIR "${scripts[@]}"
echo "shell: ${#scripts[@]} scripts, no faults"
