#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The figures about threads that meet: what `make bench-concurrency` runs.

Four runs of `brimful bench`, one after the other: rows of a few threads under every allocator and each
front end of brimful; sweeps from 1 to 2,048 threads; ten thousand idle threads, and a million that
start and exit; brimful beside its two builds for study (one lock for all, a mutex per size class) on
the rows where locks matter. runs.py says where the data goes.
"""

from __future__ import annotations

import sys

import runs
from runs import Kind

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
# Short: two rounds and the allocators that matter most: some minutes, no claims.
KINDS = {
    "concurrency": Kind(
        ["--workloads", SHORT_ROWS],
        "20m",
        [
            *("--budget", "4m", "--rounds", "1:2"),
            *("--allocators", "glibc,brimful,brimful-percpu,brimful-thread,jemalloc"),
        ],
    ),
    "sweeps": Kind(
        ["--workloads", "thread-sweep*", "--allocators", f"{FRONT_ENDS},{SWEEP_RIVALS}"],
        "12m",
        ["--budget", "3m", "--rounds", "1:1"],
    ),
    "storms": Kind(
        [
            *("--workloads", "idle-threads,thread-storm", "--rounds", "1:1"),
            *("--allocators", f"{FRONT_ENDS},{STORM_RIVALS}"),
        ],
        "15m",
        ["--budget", "2m", "--allocators", "glibc,brimful"],
    ),
    "designs": Kind(
        ["--workloads", DESIGN_ROWS, "--allocators", DESIGNS, "--baseline", "brimful"],
        "8m",
        ["--budget", "2m", "--rounds", "1:2"],
    ),
}

if __name__ == "__main__":
    sys.exit(runs.main(str(__doc__).split("\n", 1)[0], "--concurrency", KINDS))
