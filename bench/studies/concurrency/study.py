# SPDX-License-Identifier: MIT
"""The figures about threads that meet.

Four runs of `brimful bench`, one after the other: rows of a few threads under every allocator and each
front end of brimful; sweeps from 1 to 2,048 threads; ten thousand idle threads, and a million that
start and exit; brimful beside its two builds for study (one lock for all, a mutex per size class) on
the rows where locks matter. The workloads are those of bench/workloads/.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brimful.bench.study import runs
from brimful.bench.study.pages import Place
from brimful.bench.study.runs import Part

PRESET = "--concurrency"
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
CHARTS = {
    "sweep-thread-sweep": "Time and memory against the number of threads",
    "sweep-thread-sweep-remote": "The same with remote frees",
    "locks-sweep": "Contended locks and throughput on the sweeps, design by design",
    "locks-threads": "Contended locks and throughput on the rows of several threads",
}
# Short: two rounds and the allocators that matter most: some minutes, no claims.
PARTS = {
    "concurrency": Part(
        "Concurrency: threads that meet",
        [PRESET, "--workloads", SHORT_ROWS],
        "20m",
        [
            *("--budget", "4m", "--rounds", "1:2"),
            *("--allocators", "glibc,brimful,brimful-percpu,brimful-thread,jemalloc"),
        ],
        CHARTS,
    ),
    "sweeps": Part(
        "Concurrency: from 1 thread to 2,048",
        [PRESET, "--workloads", "thread-sweep*", "--allocators", f"{FRONT_ENDS},{SWEEP_RIVALS}"],
        "12m",
        ["--budget", "3m", "--rounds", "1:1"],
        CHARTS,
    ),
    "storms": Part(
        "Concurrency: idle threads and storms of them",
        [
            *(PRESET, "--workloads", "idle-threads,thread-storm", "--rounds", "1:1"),
            *("--allocators", f"{FRONT_ENDS},{STORM_RIVALS}"),
        ],
        "15m",
        ["--budget", "2m", "--allocators", "glibc,brimful"],
        CHARTS,
    ),
    "designs": Part(
        "Concurrency: three designs side by side",
        [PRESET, "--workloads", DESIGN_ROWS, "--allocators", DESIGNS, "--baseline", "brimful"],
        "8m",
        ["--budget", "2m", "--rounds", "1:2"],
        CHARTS,
    ),
}


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    return {"": runs.figures(place, PARTS, files, "--concurrency")}


STUDY = runs.study(
    "concurrency",
    title="What do threads cost that meet: rivals, front ends, three designs side by side?",
    time="55 minutes",
    short_time="11 minutes",
    figures=figures,
    pages=("docs/evaluation.md",),
    parts=PARTS,
    needs=("tools/install-deps.sh bench", "make lib", "make lib-locked"),
)
