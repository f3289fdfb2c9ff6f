# SPDX-License-Identifier: MIT
"""The figures about memory.

Three runs of `brimful bench`, one after the other: what is held after large objects, bursts and a
long life, and by a trivial process; a heap grown to 2 GiB and read at random; heaps of which nine
objects in ten are freed, with transparent hugepages on for everybody. (Populate by its levels is the
study populate.) The third changes /sys/kernel/mm/transparent_hugepage/enabled and puts it back, for
which it must be root. Samples are large and hardly vary, so most rows have one round;
`--bench='--rounds 5:5' --budget 1h` gives them more. The geometric means over all workloads and the
real programs come from the league's results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from brimful.bench.study import records, runs
from brimful.bench.study.hugepages import system_says
from brimful.bench.study.pages import Place
from brimful.bench.study.runs import Part

FOOTPRINT_ROWS = (
    "trivial-process,malloc-large,malloc-large-touched,malloc-large-shrunk,burst-light,burst-still,"
    "long-life"
)
FEW = "glibc,brimful,brimful-background,jemalloc,mimalloc3,snmalloc"
CHARTS = {
    "memory-burst-light": "Resident memory over time: a burst of 1 GiB, then light activity",
    "memory-burst-still": "Resident memory over time: a burst of 1 GiB, then stillness",
    "memory-long-life": "Resident memory over time: a long life of shifting sizes",
    "memory-thinned-small": "Resident memory over time: nine small objects in ten freed",
    "memory-thinned-mixed": "Resident memory over time: nine objects of all sizes in ten freed",
}
# The page faults and means of these are shown with the figures about memory.
WHOLE = ("league", "real")


@contextmanager
def thp_always() -> Iterator[None]:
    with system_says("always"):
        yield


PARTS = {
    "footprint": Part(
        "Memory: what is held after large objects, bursts and a long life",
        ["--memory", "--workloads", FOOTPRINT_ROWS],
        "6m",
        ["--budget", "100s", "--rounds", "1:1", "--allocators", FEW],
        CHARTS,
    ),
    "grown": Part(
        "Memory: a heap grown to 2 GiB, read at random",
        ["--memory", "--workloads", "grown-read", "--rounds", "1:1"],
        "4m",
        ["--budget", "50s", "--allocators", "glibc,brimful,snmalloc"],
        CHARTS,
    ),
    "thp": Part(
        "Memory: nine objects in ten freed, with THP=always",
        ["--memory", "--workloads", "thinned-*", "--rounds", "1:1"],
        "4m",
        ["--budget", "60s", "--allocators", "glibc,brimful,jemalloc"],
        CHARTS,
        thp_always,
    ),
}


def whole(place: Place, files: Mapping[str, Path]) -> list[str]:
    """The means over the league and the real programs together, and what else is missing."""
    lines = ["### Memory and time over all workloads and real programs", ""]
    for name, part in PARTS.items():
        if name not in files:
            lines += [f"{part.heading}: not measured (make study STUDY=memory).", ""]
    shown = records.newest(WHOLE)
    if set(shown) != set(WHOLE):
        absent = ", ".join(kind for kind in WHOLE if kind not in shown)
        return [*lines, f"Not measured: no result of: {absent}.", ""]
    first, second = shown.values()
    lines += runs.said(["--memory", "--also", str(second)], first)
    names = " and ".join(f"[`{path.name}`]({place.link(path)})" for path in shown.values())
    return [*lines, "", f"Raw data: {names}.", ""]


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    return {"": [*whole(place, files), *runs.figures(place, PARTS, files, "--memory")]}


STUDY = runs.study(
    "memory",
    title="What is held after bursts, in grown and thinned heaps, and over a long life?",
    time="15 minutes",
    short_time="4 minutes",
    figures=figures,
    pages=("docs/evaluation.md",),
    parts=PARTS,
)
