#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ten hot rows may not take an instruction more: counted now, compared with the committed counts.

    test_hot_rows.py             counts, and is `brimful bench compare` of the committed counts
                                 (tests/golden/hot_rows.json) and the new ones
    test_hot_rows.py --accept    counts, and commits to that: on purpose, and the commit says why

What is counted, and why just that: cli/brimful/bench/counted.py. The limit is 1 % where compiler and C
library are those of the committed counts: one instruction more on a hit is 2 % of the rows of hits.
Another compiler makes other code of the slow paths, and another C library other programs; then it is
5 %, and only a hit that became a miss is seen.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cli"))

from brimful.bench import counted, gate, model  # noqa: E402
from brimful.bench.compare import main_compare  # noqa: E402

COMMITTED = ROOT / "tests" / "golden" / "hot_rows.json"
COUNTED = ROOT / "build" / "bench" / "counted.json"
LIBRARY = os.environ.get("BRIMFUL_LIB", "")
LIMIT = 0.01
LIMIT_ELSEWHERE = 0.05
SAME = ("compiler", "libc")  # of the environment
SKIPPED = 77
ACCEPT = "tools/in_venv.sh tests/bench/test_hot_rows.py --accept"


def limit() -> float:
    """The limit, by who compiled the committed counts and who these."""
    old, new = (model.load(path).environment for path in (COMMITTED, COUNTED))
    other = [key for key in SAME if old.get(key) != new.get(key)]
    for key in other:
        print(
            f"Another {key} than that of the committed counts: the limit is {LIMIT_ELSEWHERE:.0%}."
        )
        print(f"  {old.get(key)} there, {new.get(key)} here")
    return LIMIT_ELSEWHERE if other else LIMIT


def main() -> int:
    """The exit code of the gate, 77 where nothing can be counted."""
    if platform.machine() != "x86_64":
        print("skip: the committed counts are those of x86-64")
        return SKIPPED
    if shutil.which("valgrind") is None:
        print("skip: valgrind is not installed, which counts the instructions")
        return SKIPPED
    accepts = "--accept" in sys.argv[1:]
    known = {} if accepts else counted.figures(model.load(COMMITTED))
    code = counted.main_count(COMMITTED if accepts else COUNTED, LIBRARY, known)
    if code != 0 or accepts:
        return code
    print()
    code = main_compare(COMMITTED, COUNTED, limit())
    if code != gate.FINE:
        print(
            f"If the rows above are to cost that from now on: `{ACCEPT}`, and say why in the commit."
        )
    return code


if __name__ == "__main__":
    sys.exit(main())
