#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# ruff and mypy over all Python of the project, with the settings of pyproject.toml.
#
# mypy runs once per folder: scripts of different folders may have the same name (run.py), and a script imports its
# neighbours by their bare names, as Python does when it runs one. It looks up typer, rich and numpy where Debian's
# interpreter finds them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
mapfile -t files < <(find bench cli tools tests -name '*.py' 2> /dev/null | sort)
build/venv/bin/ruff check --quiet "${files[@]}" || status=1

mapfile -t folders < <(printf '%s\n' "${files[@]}" | xargs -n1 dirname | sort -u)
for folder in "${folders[@]}"; do
  [ ! -e "$folder/__init__.py" ] || continue # a package is checked from the folder that holds it
  scripts=("$folder"/*.py)
  MYPYPATH="$folder:cli:tools" build/venv/bin/mypy --python-executable /usr/bin/python3 --no-error-summary \
    "${scripts[@]}" || status=1
done
for package in cli/*/__init__.py; do
  [ -e "$package" ] || continue
  MYPYPATH=cli build/venv/bin/mypy --python-executable /usr/bin/python3 --no-error-summary \
    -p "$(basename "$(dirname "$package")")" || status=1
done
echo "python: ${#files[@]} files, $([ "$status" -eq 0 ] && echo no faults || echo faults above)"
exit "$status"
