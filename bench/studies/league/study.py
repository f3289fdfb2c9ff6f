# SPDX-License-Identifier: MIT
"""The league as docs/evaluation.md shows it: all workloads, and the real programs, under every allocator.

These two are measured by `make league`, in pieces that can be stopped and gone on with, and kept in
bench/results/; here they become figures of the page. What stays when work ends is measured here. The
workloads are those of bench/workloads/, the drivers of the programs those of bench/programs/.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brimful.bench import model
from brimful.bench.study import runs
from brimful.bench.study.pages import Place
from brimful.bench.study.runs import Part

CHARTS = {
    "league": "Geometric means of time and of peak memory with intervals",
    "frontier": "Time against memory of all allocators",
    "memory-burst-and-idle": "Resident memory over time: a burst, then idleness",
}
MEASURED_HERE = {
    "memory": Part(
        "Memory over time: what stays when work ends",
        ["--workloads", "memory", "--rounds", "5:5"],
        "14m",
        ["--budget", "60s", "--rounds", "1:1", "--allocators", "glibc,brimful"],
        CHARTS,
    ),
}
PARTS = {
    "league": Part("The league: workloads under every allocator", [], "", [], CHARTS),
    **MEASURED_HERE,
    "real": Part("The league: real programs under every allocator", [], "", [], CHARTS),
}


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    if place.page.name != "README.md":
        return {"": runs.figures(place, PARTS, files, "--markdown")}
    from studies.league import front_page  # needs the packages of build/venv

    shown = {kind: files[kind] for kind in front_page.KINDS if kind in files}
    results = {kind: model.load(path) for kind, path in shown.items()}
    return {"": front_page.block(results, shown)}


STUDY = runs.study(
    "league",
    title="The figures of `make league`, and what stays when work ends.",
    time="14 minutes",
    short_time="a minute",
    figures=figures,
    pages=("docs/evaluation.md", "README.md"),
    parts=PARTS,
    measured=MEASURED_HERE,
    needs=("tools/install-deps.sh bench", "make lib", "make rivals"),
)
