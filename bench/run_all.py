#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every measurement against the other allocators, one after the other: what `make bench` runs.

Each script shows its own table and writes its own raw data into bench/results/. One at a time, because
two measurements on one machine would measure each other.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPTS = ("pairs.py", "metrics.py")


def main() -> int:
    """Run all scripts; the exit code is the worst of theirs."""
    folder = Path(__file__).resolve().parent
    worst = 0
    for script in SCRIPTS:
        print(f"== {script}", flush=True)
        done = subprocess.run([sys.executable, folder / script, *sys.argv[1:]])
        worst = max(worst, abs(done.returncode))
    return worst


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
