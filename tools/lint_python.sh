#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# lint_python.sh [--fix]: ruff and mypy over all Python of the project, with the settings of pyproject.toml; with
# --fix, rewrites the files in ruff's format instead.
#
# mypy runs once per folder: scripts of different folders may have the same name (run.py), and a script imports its
# neighbours by their bare names, as Python does when it runs one. It looks up other packages in build/venv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=build/venv/bin
if [ ! -x "$venv/ruff" ] || [ ! -x "$venv/mypy" ]; then
  echo "ruff and mypy are not in build/venv: Python is not checked (tools/install-deps.sh test installs them)"
  exit 77
fi
existing=()
for folder in bench cli examples tests tools; do
  [ ! -d "$folder" ] || existing+=("$folder")
done
mapfile -t files < <(find "${existing[@]}" -name '*.py' | sort)
if [ "${1:-}" = --fix ]; then
  exec "$venv/ruff" format --quiet "${files[@]}"
fi

status=0
"$venv/ruff" check --quiet "${files[@]}" || status=1
"$venv/ruff" format --quiet --diff "${files[@]}" || status=1

check_types() { # check_types MYPYPATH ARGUMENT…
  MYPYPATH="$1" "$venv/mypy" --python-executable $venv/python --no-error-summary "${@:2}" || status=1
}
mapfile -t folders < <(printf '%s\n' "${files[@]}" | xargs -n1 dirname | sort -u)
for folder in "${folders[@]}"; do
  [ ! -e "$folder/__init__.py" ] || continue # part of a package, checked below
  scripts=("$folder"/*.py)
  check_types "$folder:tests/bench:bench:bench/programs:cli:tools" "${scripts[@]}"
done
for package in bench/*/__init__.py cli/*/__init__.py; do
  folder="$(dirname "$package")"
  [ ! -e "$package" ] || check_types bench:cli -p "$(basename "$folder")"
done
if [ "$status" -ne 0 ]; then
  echo "Python has faults (\`make format\` mends the format)"
  exit 1
fi
echo "python: ${#files[@]} files, no faults"
