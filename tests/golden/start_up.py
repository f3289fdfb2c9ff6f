#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Golden test of what the library adds to the start of a program, in counts that no neighbour changes.

A preloaded library starts with every shell command. Each system call costs 0.5 to 3 us there, each page
that is touched first 2, each file that is read 8 to 17. Two programs are started as they are and under
the library: one that asks for no memory, and the trivial one of the study "metrics", which asks for
eight sizes. The fewest of several starts count, because where the kernel puts mappings differs.

Environment: BRIMFUL_LIB (default build/release/libbrimful.so), BRIMFUL_ROOT, CC (default cc).
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parents[2]))
LIBRARY = Path(os.environ.get("BRIMFUL_LIB", ROOT / "build/release/libbrimful.so")).resolve()
SOURCES = {
    "counts": ROOT / "tests/golden/start_up_counts.c",
    "trivial": ROOT / "bench/studies/metrics/trivial.c",
}
STARTS = 12
SKIPPED = 77


class Counts(NamedTuple):
    calls: int
    opens: int
    faults: int


# What the library may add: the loader's own eight calls and its one file for any library among them.
MOST = {
    "nothing": Counts(calls=8, opens=1, faults=14),
    "trivial": Counts(calls=15, opens=1, faults=40),
}


def build(folder: Path) -> dict[str, Path]:
    """The programs, by name."""
    (folder / "nothing.c").write_text("int main(void) { return 0; }\n")
    programs = {}
    for name, source in {**SOURCES, "nothing": folder / "nothing.c"}.items():
        programs[name] = folder / name
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-O2", str(source), "-o", str(programs[name])], check=True)
    return programs


def fewest(programs: dict[str, Path], name: str, library: Path | None) -> Counts:
    """Of several starts of a program, each count by itself."""
    command = [str(programs["counts"]), str(library or ""), str(programs[name]), "quiet"]
    seen = []
    for _ in range(STARTS):
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if run.returncode == SKIPPED:
            print("the system lets nobody be traced")
            sys.exit(SKIPPED)
        run.check_returncode()
        seen.append([int(word) for word in run.stdout.split()])
    return Counts(*(min(column) for column in zip(*seen, strict=True)))


def main() -> int:
    if platform.machine() != "x86_64":
        print("the counts are those of x86-64")
        return SKIPPED
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        programs = build(Path(folder))
        for name, most in MOST.items():
            alone = fewest(programs, name, None)
            under = fewest(programs, name, LIBRARY)
            added = Counts(*(b - a for a, b in zip(alone, under, strict=True)))
            print(f"{name}: added {added}, at most {most}; alone {alone}")
            failures += any(got > bound for got, bound in zip(added, most, strict=True))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
