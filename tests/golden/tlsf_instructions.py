#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Golden test of TLSF's worst case: how many instructions the slowest calls take.

tlsf_steps.cpp prepares pools of 64 KiB to 4 GiB, filled to 1 to 99 % (in the smallest at most to
what leaves 8 KiB free, without which the longest way does not exist), for the longest way through
malloc, free and realloc in place, and counts single steps. For each of the four calls no pool may
need more than 200, and all pools about the same: at most 10 % between the fewest and the most.
Random calls may not find a longer way than the prepared one.

Environment: BRIMFUL_BUILD (default build/release), BRIMFUL_ROOT, CXX (default c++).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parents[2]))
LIBRARY = Path(os.environ.get("BRIMFUL_BUILD", ROOT / "build/release")) / "libbrimful-pools.a"
SOURCE = ROOT / "tests/golden/tlsf_steps.cpp"

CALLS = ("malloc", "free", "realloc that shrinks", "realloc that grows")
MOST = 200
SPREAD = 0.10
SKIPPED = 77


def count_steps() -> list[list[int]]:
    """One row for each pool size and fill, as tlsf_steps.cpp says."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "tlsf_steps"
        compiler = os.environ.get("CXX", "c++")
        command = [
            compiler,
            "-O2",
            "-std=c++20",
            f"-I{ROOT / 'include'}",
            str(SOURCE),
            str(LIBRARY),
            "-o",
        ]
        subprocess.run([*command, str(program)], check=True)
        run = subprocess.run([str(program)], stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode == SKIPPED:
        print(run.stdout, end="")
        sys.exit(SKIPPED)
    run.check_returncode()
    return [[int(word) for word in line.split()] for line in run.stdout.splitlines()]


def main() -> int:
    rows = count_steps()
    failures = 0
    longest = 0
    for column, call in enumerate(CALLS, start=2):
        counts = [row[column] for row in rows]
        spread = (max(counts) - min(counts)) / max(counts)
        longest = max(longest, *counts)
        wrong = max(counts) > MOST or spread > SPREAD or min(counts) < 1
        failures += wrong
        verdict = "FAILED" if wrong else "ok"
        print(
            f"{call:22} {min(counts):4} to {max(counts):4} instructions, spread {spread:.1%}: {verdict}"
        )
    churn = max(row[-1] for row in rows)
    print(f"slowest of random calls {churn} instructions, {len(rows)} pools")
    if churn > longest:
        print(f"FAILED: random calls took a longer way than the prepared ones ({longest})")
        failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
