#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# in_venv.sh SCRIPT…: runs a Python script with the packages of the bench (build/venv); exits with 77, the code of a
# skipped test, where that folder could not be made because there was no package index.
set -euo pipefail

python="$(dirname "${BASH_SOURCE[0]}")/../build/venv/bin/python"
if ! "$python" -c 'import altair, hdrh, numpy, scipy, vl_convert' 2> /dev/null; then
  echo "build/venv lacks the packages of tools/requirements-bench.txt: not tested (tools/install-deps.sh bench installs them)"
  exit 77
fi
exec "$python" "$@"
