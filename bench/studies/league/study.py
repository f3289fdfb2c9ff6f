# SPDX-License-Identifier: MIT
"""The league as docs/evaluation.md shows it: three runs of `brimful bench` under every allocator.

All workloads; what stays when work ends; the real programs. The workloads are those of
bench/workloads/, the drivers of the programs those of bench/programs/.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brimful.bench.study import runs
from brimful.bench.study.model import Study
from brimful.bench.study.pages import Place
from brimful.bench.study.runs import Part

CHARTS = {
    "league": "Geometric means of time and of peak memory with intervals",
    "frontier": "Time against memory of all allocators",
    "memory-burst-and-idle": "Resident memory over time: a burst, then idleness",
}
FEW = ["--allocators", "glibc,brimful", "--rounds", "1:1"]
PARTS = {
    "league": Part(
        "The league: workloads under every allocator",
        ["--workloads", "threads,single,compute,large,latency,sweep,start"],
        "45m",
        ["--budget", "90s", *FEW],
        CHARTS,
    ),
    "memory": Part(
        "Memory over time: what stays when work ends",
        ["--workloads", "memory", "--rounds", "5:5"],
        "14m",
        ["--budget", "60s", *FEW],
        CHARTS,
    ),
    "real": Part(
        "The league: real programs under every allocator",
        ["--real"],
        "30m",
        ["--budget", "90s", *FEW],
        CHARTS,
    ),
}


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    return {"": runs.figures(place, PARTS, files, "--markdown")}


STUDY = Study(
    "league",
    title="All workloads and real programs under every allocator.",
    time="85 minutes",
    short_time="4 minutes",
    measure=lambda run: runs.measure(run, PARTS),
    show=lambda record: runs.show(record.results),
    figures=figures,
    pages=("docs/evaluation.md",),
    parts=tuple(PARTS),
    kinds=tuple(PARTS),
    options=runs.MORE,
    needs=("tools/install-deps.sh bench", "make lib", "make rivals", "make real-programs"),
)
