# SPDX-License-Identifier: MIT
"""redis built with plain malloc, under brimful and the leading rivals: many short runs.

The league has these rows, too, among thirty others and with few rounds each. A server that asks
malloc_usable_size at every allocation and free is where an entry point that nobody measures shows. So
here the same rows run with a part of their requests, often: what is compared is above all the server's
own CPU time, which depends less on what else the machine does than the time that its client saw.
"""

from __future__ import annotations

import math
import random
import statistics as plain
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from brimful.bench import programs, sample, statistics
from brimful.bench.model import Cell, Status
from brimful.bench.study import contenders, records
from brimful.bench.study.model import Data, Option, Run, Study
from brimful.bench.study.pages import Place, table
from brimful.bench.study.records import Record

ROWS = "redis-plain-"
RIVALS = "glibc,brimful,snmalloc,mimalloc2,gperftools,jemalloc"
TIMEOUT_S = 120
# key of a sample → what it is
FIGURES = {
    "cpu_s": "CPU time of the server (user and system)",
    "seconds": "Time that the client saw",
}


def shortened(cell: Cell, part: int) -> Cell:
    """The row with a part of its requests."""
    words = list(cell.command)
    at = words.index("--requests") + 1
    words[at] = str(int(words[at]) // part)
    return replace(cell, command=tuple(words))


def measure(run: Run) -> None:
    taking_part = contenders.chosen(run)
    cells = [cell for cell in programs.cells() if cell.name.startswith(ROWS)]
    for cell in cells:
        if cell.missing:
            run.record.fail(cell.name, cell.missing)
    there = [shortened(cell, run.options.part) for cell in cells if not cell.missing]
    rows: dict[str, dict[str, list[Data]]] = run.record.results.setdefault("rows", {})
    generator = random.Random(run.options.seed)
    for number in range(run.options.rounds):
        print(f"redis: round {number + 1} of {run.options.rounds}", file=sys.stderr, flush=True)
        for cell in generator.sample(there, len(there)):
            for allocator in generator.sample(taking_part, len(taking_part)):
                done, _, _ = sample.run(cell, allocator, number, timeout_s=TIMEOUT_S)
                if done.status is not Status.OK:
                    what = f"{cell.name} under {allocator.name}, round {number + 1}"
                    run.record.fail(what, f"{done.status.value}: {done.reason}")
                    continue
                cpu_s = done.metrics["user_s"] + done.metrics["system_s"]
                taken = {"round": number, "cpu_s": cpu_s, "seconds": done.metrics["seconds"]}
                rows.setdefault(cell.name, {}).setdefault(allocator.name, []).append(taken)


# --- the tables -----------------------------------------------------------------------------------


def by_round(samples: Sequence[Data], key: str) -> dict[int, float]:
    return {one["round"]: one[key] for one in samples}


def compared(ours: Mapping[int, float], base: Mapping[int, float]) -> str:
    """Median and interval of the ratios of the rounds that have both."""
    both = sorted(ours.keys() & base.keys())
    if not both:
        return "failed"
    ratio = statistics.paired_ratio([ours[at] for at in both], [base[at] for at in both])
    few = math.isinf(ratio.high)
    return f"{ratio.median:.3f} ({'few rounds' if few else f'{ratio.low:.2f}–{ratio.high:.2f}'})"


def tables(record: Record) -> list[str]:
    """Each figure over the first allocator's, row by row."""
    base, *others = [one.name for one in record.allocators if not one.missing]
    lines = []
    for key, title in FIGURES.items():
        found = []
        for name, row in record.results["rows"].items():
            times = by_round(row.get(base, []), key)
            if times:
                ratios = [compared(by_round(row.get(one, []), key), times) for one in others]
                middle = f"{plain.median(times.values()):.2f} s"
                found.append([name, middle, *ratios, str(len(times))])
        lines += [f"{title}, over {base}'s, with 95 % intervals:", ""]
        lines += table(["row", base, *others, "rounds"], found)
    return [*lines, *record.gaps()]


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    record = records.load(files["redis"])
    origin = place.origin(files["redis"], record.environment, record.allocators)
    return {"": ["### redis with plain malloc", "", *tables(record), *origin]}


STUDY = Study(
    "redis",
    title="What does redis cost that is built with plain malloc?",
    time="10 minutes",
    short_time="one minute",
    measure=measure,
    show=tables,
    figures=figures,
    pages=("docs/evaluation.md",),
    options={
        "allocators": contenders.option(RIVALS, "glibc,brimful"),
        "rounds": Option("runs of each row under each", 20, 2),
        "part": Option("of the row's requests, one in so many is made", 8),
    },
    needs=("tools/install-deps.sh bench", "make lib", "make real-programs"),
    wants=("make rivals",),
)
