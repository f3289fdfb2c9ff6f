# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Finds a python3 that has its own test modules, and runs some of them under the library; sourced after _common.sh.
# Debian keeps the modules in libpython3.11-testsuite; interpreters of version managers often bring them along.

# find_python: sets $python to an interpreter with all the modules, by its real path (shims are shell scripts).
find_python() {
  local candidate
  for candidate in /usr/bin/python3 "$(command -v python3 || true)" \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[0-9]*/bin/python3; do
    [ -x "$candidate" ] || continue
    python=$("$candidate" -c '
import importlib.util, os, sys
import test.test_json, test.test_threading, test.test_subprocess
import test.test_multiprocessing_fork, test.test_multiprocessing_spawn
print(os.path.realpath(sys.executable))' 2> /dev/null) && return 0
  done
  skip "no python3 with the modules test.test_json … test.test_multiprocessing_spawn (Debian: libpython3.11-testsuite)"
}

# run_module MODULE [PATTERN…]: the module's tests whose names match one of the patterns. A module that fails without
# the library too has something against this machine, and is skipped by name.
run_module() {
  local module=$1 pattern options=()
  shift
  for pattern in "$@"; do options+=(-k "$pattern"); done
  # Since Python 3.12 the multiprocessing tests are a package with one module for each kind of worker.
  if "$python" -c "import $module.test_processes" 2> /dev/null; then module=$module.test_processes; fi
  cd "$work"
  if ! with_library env PYTHONMALLOC=malloc "$python" -m unittest "${options[@]}" "$module" > "$work/output" 2>&1; then
    if timeout -k 5 "$time_limit" env PYTHONMALLOC=malloc "$python" -m unittest "${options[@]}" "$module" \
      > "$work/output.plain" 2>&1; then
      tail -n 40 "$work/output"
      fail "$module fails under the library and passes without it"
    fi
    echo "note: $module fails without the library too, so it says nothing"
    return 0
  fi
  grep -Eq '^Ran [1-9][0-9]* tests' "$work/output" || fail "$module ran no test: $(tail -n 3 "$work/output")"
  echo "ok   $module: $(grep -E '^Ran ' "$work/output")"
}

# The proof that the interpreter really had the library.
prove_python() {
  with_library "$python" -c "
import sys
sys.exit(not any('$library' in line for line in open('/proc/self/maps')))" || fail "$python runs without the library"
}
