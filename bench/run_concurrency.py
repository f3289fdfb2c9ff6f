#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The figures about threads that meet: what `make bench-concurrency` runs.

Four runs of `brimful bench`, one after the other: rows of a few threads under every allocator and each
front end of brimful; sweeps from 1 to 2,048 threads; ten thousand idle threads, and a million that
start and exit; brimful beside its two builds for study (one lock for all, a mutex per size class) on
the rows where locks matter. Raw data goes into bench/results/, from where
bench/report.py writes docs/evaluation.md; of a short run it stays in build/, because it shows that
everything works and proves nothing.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import benchlib

# Rows of two or a few threads, which are short. The others are apart: with thousands of threads some
# rivals need minutes for a sample (rpmalloc, mimalloc 3), which would leave the short rows with few.
SHORT_ROWS = (
    "larson,larson-sized,mstress,rptest,rptest-small,sh6-like,sh8-like,glibc-thread,xmalloc,xmalloc-4,"
    "cache*,cross-thread*,free-only"
)
FRONT_ENDS = "brimful,brimful-percpu,brimful-thread"
SWEEP_RIVALS = "glibc,jemalloc,gperftools,snmalloc"
STORM_RIVALS = f"{SWEEP_RIVALS},mimalloc2"
DESIGN_ROWS = "thread-sweep,xmalloc*,larson"
DESIGNS = "brimful,brimful-class-mutex,brimful-global-lock"
BENCH = [str(benchlib.ROOT / "brimful"), "bench", "--concurrency"]
# kind → what is run; each reports into a folder of its own
RUNS = {
    "concurrency": ["--workloads", SHORT_ROWS],
    "sweeps": ["--workloads", "thread-sweep*", "--allocators", f"{FRONT_ENDS},{SWEEP_RIVALS}"],
    "storms": [
        *("--workloads", "idle-threads,thread-storm", "--rounds", "1:1"),
        *("--allocators", f"{FRONT_ENDS},{STORM_RIVALS}"),
    ],
    "designs": ["--workloads", DESIGN_ROWS, "--allocators", DESIGNS, "--baseline", "brimful"],
}
BUDGETS = {"concurrency": "20m", "sweeps": "12m", "storms": "15m", "designs": "8m"}
# Two rounds and the allocators that matter most: some minutes, no claims.
SHORT = {
    "concurrency": [
        *("--budget", "4m", "--rounds", "1:2"),
        *("--allocators", "glibc,brimful,brimful-percpu,brimful-thread,jemalloc"),
    ],
    "sweeps": ["--budget", "3m", "--rounds", "1:1"],
    "storms": ["--budget", "2m", "--allocators", "glibc,brimful"],
    "designs": ["--budget", "2m", "--rounds", "1:2"],
}


def run(kind: str, folder: Path, more: list[str]) -> int:
    """One run of the bench; its exit code."""
    print(f"== {kind}", flush=True)
    return subprocess.run([*BENCH, *RUNS[kind], *more, "--out", str(folder)]).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--short", action="store_true", help="some minutes; nothing is kept")
    parser.add_argument("--only", choices=sorted(RUNS), help="one of these runs")
    options = parser.parse_args()
    stamp = benchlib.stamp()
    worst = 0
    for kind in [options.only] if options.only else list(RUNS):
        folder = benchlib.ROOT / "build" / "bench" / "results" / f"{kind}-{stamp}"
        code = run(kind, folder, SHORT[kind] if options.short else ["--budget", BUDGETS[kind]])
        if code not in (0, 1):  # 1: some cell failed, which the result says
            return code
        worst = max(worst, code)
        if not options.short:
            kept = benchlib.RESULTS / f"{kind}-{stamp}.json"
            shutil.copy(folder / "results.json", kept)
            print(f"Raw data: {benchlib.path_for_record(kept)}")
    return worst


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
