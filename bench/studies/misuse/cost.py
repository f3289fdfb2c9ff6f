# SPDX-License-Identifier: MIT
"""What an allocator's safety costs: time and peak memory of a few rows of the bench, relative to glibc.

Samples are those of `brimful bench`: fresh processes that take turns, each proved to have had its
allocator. The figure is the geometric mean over the rows of the median of paired ratios; an
allocator that fails a row has no figure, and the record says why.
"""

from __future__ import annotations

import random
import statistics as plain
import sys
from collections.abc import Sequence

from brimful.bench import catalog, sample, statistics
from brimful.bench.model import MEMORY, TIME, Allocator, Status
from brimful.bench.study.model import Data, Run, StudyError

BASELINE = "glibc"
ROWS = (
    *("cfrac", "espresso", "small-random", "random-slots-1024", "realloc-growth", "containers"),
    *("fragmentation", "larson", "xmalloc", "rptest"),
)
SLOWEST_S = 60


def works(patterns: str) -> list[catalog.Work]:
    """The rows, compiled. Raises StudyError."""
    try:
        preset = catalog.PRESETS["quick"]
        found = catalog.select(catalog.asked_for(preset, patterns), patterns)
        catalog.compile_programs(work.cell for work in found)
    except catalog.CatalogError as error:
        raise StudyError(f"--rows: {error}") from None
    return found


def measure(run: Run, rows_wanted: Sequence[catalog.Work], chosen: Sequence[Allocator]) -> None:
    """Puts a dictionary for each sample into the record, round by round."""
    found: list[Data] = run.record.results.setdefault("cost", [])
    generator = random.Random(run.options.seed)
    failed: set[tuple[str, str]] = set()
    for number in range(run.options.rounds):
        print(f"cost: round {number + 1} of {run.options.rounds}", file=sys.stderr, flush=True)
        for work in rows_wanted:
            for one in generator.sample(list(chosen), len(chosen)):
                if (work.cell.name, one.name) in failed:
                    continue
                taken, _, _ = sample.run(work.cell, one, number, timeout_s=SLOWEST_S)
                if taken.status is not Status.OK:
                    failed.add((work.cell.name, one.name))
                    why = f"{taken.status.value}: {taken.reason}"
                    run.record.fail(f"cost of {one.name} in {work.cell.name}", why)
                    continue
                found.append(
                    {
                        "row": work.cell.name,
                        "allocator": one.name,
                        "round": number,
                        TIME: taken.metrics[TIME],
                        MEMORY: taken.metrics[MEMORY],
                    }
                )


def ratio(samples: Sequence[Data], name: str, key: str) -> float | None:
    """Geometric mean over the rows of what it costs relative to the baseline; None if a row lacks."""
    by_row: dict[str, dict[str, dict[int, float]]] = {}
    for one in samples:
        by_row.setdefault(one["row"], {}).setdefault(one["allocator"], {})[one["round"]] = one[key]
    ratios = []
    for row in by_row.values():
        mine, base = row.get(name, {}), row.get(BASELINE, {})
        both = sorted(mine.keys() & base.keys())
        if not both:
            return None
        pairs = [mine[n] for n in both], [base[n] for n in both]
        ratios.append(statistics.paired_ratio(*pairs).median)
    return plain.geometric_mean(ratios) if ratios else None


def rows(samples: Sequence[Data], names: Sequence[str]) -> list[list[str]]:
    """Rows of the matrix: time, peak memory."""

    def texts(key: str) -> list[str]:
        found = (ratio(samples, name, key) for name in names)
        return ["–" if value is None else f"{value:.2f}" for value in found]

    return [["time, glibc = 1", *texts(TIME)], ["peak memory, glibc = 1", *texts(MEMORY)]]
