# SPDX-License-Identifier: MIT
"""redis built with plain malloc, under brimful and the leading rivals.

The league has these rows, too, among thirty others and with few rounds each. A server that asks
malloc_usable_size at every allocation and free is where an entry point that nobody measures shows, so
these rows have a run of their own that is short enough to be repeated after each change.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brimful.bench.study import runs
from brimful.bench.study.pages import Place
from brimful.bench.study.runs import Part

RIVALS = "glibc,brimful,snmalloc,mimalloc2,gperftools,jemalloc"
CHOICE = ("--real", "--workloads", "redis-plain-*", "--allocators")

PARTS = {
    "redis": Part(
        "redis with plain malloc",
        [*CHOICE, RIVALS, "--rounds", "10:15"],
        "30m",
        ["--budget", "60s", "--rounds", "1:1", "--allocators", "glibc,brimful"],
        {},
    ),
}


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    return {"": runs.figures(place, PARTS, files, "--markdown")}


STUDY = runs.study(
    "redis",
    title="What does redis cost that is built with plain malloc?",
    time="25 minutes",
    short_time="one minute",
    figures=figures,
    pages=("docs/evaluation.md",),
    parts=PARTS,
    needs=("make rivals", "make lib", "make real-programs"),
)
