# SPDX-License-Identifier: MIT
"""redis built with plain malloc, under brimful and the leading rivals.

The league has these rows, too, among thirty others and with few rounds each. A server that asks
malloc_usable_size at every allocation and free is where an entry point that nobody measures shows, so
these rows have a run of their own that is short enough to be repeated after each change.
"""

from __future__ import annotations

import math
import statistics as plain
from collections.abc import Mapping
from pathlib import Path

from brimful.bench import model, statistics
from brimful.bench.model import Result, Status
from brimful.bench.study import runs
from brimful.bench.study.pages import Place, table
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


def cpu_seconds(result: Result) -> dict[str, dict[str, dict[int, float]]]:
    """Row → allocator → round → user and system time of the server."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for one in result.samples:
        if one.status is Status.OK and not one.again:
            row = found.setdefault(one.cell, {}).setdefault(one.allocator, {})
            row[one.round] = one.metrics["user_s"] + one.metrics["system_s"]
    return found


def cpu_table(result: Result) -> list[str]:
    """The server's CPU time over the baseline's, of the rounds that have both."""
    rows, base = cpu_seconds(result), str(result.options["baseline"])
    names = [one.name for one in result.allocators if not one.missing and one.name != base]
    lines = []
    for row, found in rows.items():
        times = found.get(base, {})
        if not times:
            continue
        cells = [f"{plain.median(times.values()):.2f} s"]
        for name in names:
            both = sorted(times.keys() & found.get(name, {}).keys())
            if not both:
                cells.append("failed")
                continue
            ratio = statistics.paired_ratio(
                [found[name][at] for at in both], [times[at] for at in both]
            )
            few = math.isinf(ratio.high)
            interval = "too few rounds" if few else f"{ratio.low:.2f}–{ratio.high:.2f}"
            cells.append(f"{ratio.median:.3f} ({interval})")
        lines.append([row, *cells, str(len(times))])
    return [
        f"CPU time of the server (user and system) over {base}'s, paired by rounds, with 95 % "
        "intervals; it depends less on what else the machine does than the client's time above:",
        "",
        *table(["row", base, *names, "rounds"], lines),
    ]


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    lines = runs.figures(place, PARTS, files, "--markdown")
    if "redis" in files:
        lines += cpu_table(model.load(files["redis"]))
    return {"": lines}


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
