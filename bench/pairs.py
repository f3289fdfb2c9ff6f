#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""malloc+free pairs on a heap of K live objects freed in random order, all allocators compared.

Every sample is a fresh process (bench/micro/pair.cpp) of a fraction of a second. In each round every
cell (K, size) is visited once, and in a cell every allocator once, both in an order drawn anew; all
allocators of a round get the same random places and sizes. Per cell the medians are shown, and both
front ends of brimful against the best rival: the median of the ratios of the same round, with its
95 % bootstrap interval. The best rival is the one with the lowest median in that cell, so brimful is
compared with no single allocator but with the best of all of them.

The time of a pair contains the loop around it; the column "loop" says what the loop costs alone.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import benchlib
from benchlib import Allocator, BenchError

try:
    from rich.console import Console
    from rich.table import Table
except ImportError:
    sys.exit("pairs: rich is missing: apt-get install python3-rich")

LIVE = (8, 64, 4096, 65536, 1 << 20)
SIZES = ("64", "mixed")
OURS = ("brimful percpu", "brimful thread")
GOAL_MEAN = 0.90
GOAL_CELL = 1.00

Cell = tuple[int, str]


class Sample(NamedTuple):
    """One process: nanoseconds of processor time per pair and per bare loop step, and of wall time."""

    pair: float
    loop: float
    wall: float


Samples = dict[Cell, dict[str, dict[int, Sample]]]  # cell → allocator → round


def sample(allocator: Allocator, cell: Cell, seconds: float, seed: int) -> Sample:
    """Run one process. Raises BenchError."""
    command = [str(benchlib.compiled("micro/pair.cpp")), str(cell[0]), cell[1]]
    command += [str(seconds), str(seed)]
    try:
        done = subprocess.run(
            command, env=allocator.environment(), capture_output=True, text=True, timeout=60
        )
    except subprocess.TimeoutExpired:
        raise BenchError("no end after 60 s") from None
    if done.returncode != 0:
        raise BenchError(f"exit code {done.returncode}: {done.stderr.strip()[-200:]}")
    data = json.loads(done.stdout)
    wanted = [] if allocator.library is None else [str(allocator.library.resolve())]
    if data["allocators"] != wanted:
        raise BenchError(f"had {data['allocators']} mapped, not {wanted}")
    return Sample(data["ns_per_pair"], data["ns_loop"], data["ns_wall"])


def measure(
    chosen: list[Allocator], cells: list[Cell], rounds: int, seconds: float, seed: int
) -> tuple[Samples, dict[str, str]]:
    """All rounds. A missing allocator, or one that fails in a cell, is left out there: see `failed`.

    The keys of `failed` are an allocator's name, or `cell_name` for a single cell.
    """
    samples: Samples = defaultdict(lambda: defaultdict(dict))
    failed = {a.name: f"not found: {a.library}" for a in chosen if not a.available()}
    generator = random.Random(seed)
    for number in range(rounds):
        started = time.monotonic()
        for cell in generator.sample(cells, len(cells)):
            places = generator.randrange(2**32)
            for allocator in generator.sample(chosen, len(chosen)):
                if allocator.name in failed or cell_name(allocator.name, cell) in failed:
                    continue
                try:
                    result = sample(allocator, cell, seconds, places)
                except BenchError as error:
                    failed[cell_name(allocator.name, cell)] = str(error)
                    continue
                samples[cell][allocator.name][number] = result
        took = time.monotonic() - started
        print(f"round {number + 1}/{rounds}: {took:.0f} s", file=sys.stderr, flush=True)
    return samples, failed


def cell_name(allocator: str, cell: Cell) -> str:
    return f"{allocator} at {cell[0]} · {cell[1]}"


def pair_times(by_round: dict[int, Sample]) -> list[float]:
    return [run.pair for run in by_round.values()]


def evaluate(samples: Samples, failed: dict[str, str]) -> list[dict[str, Any]]:
    """One row per cell: medians, best rival, ratios of brimful's front ends against it."""
    rows = []
    for cell in sorted(samples, key=lambda cell: (cell[1], cell[0])):
        here = {
            name: runs
            for name, runs in samples[cell].items()
            if cell_name(name, cell) not in failed
        }
        medians = {name: statistics.median(pair_times(runs)) for name, runs in here.items()}
        rivals = {name: value for name, value in medians.items() if name not in OURS}
        best = min(rivals, key=lambda name: rivals[name]) if rivals else ""
        ratios = {}
        for name in OURS:
            if name in here and best:
                common = sorted(here[name].keys() & here[best].keys())
                ours = [here[name][number].pair for number in common]
                theirs = [here[best][number].pair for number in common]
                ratios[name] = benchlib.paired_ratio(ours, theirs)
        loop = statistics.median(run.loop for runs in here.values() for run in runs.values())
        rows.append(
            {
                "live": cell[0],
                "size": cell[1],
                "ns_per_pair": medians,
                "ns_loop": loop,
                "best_rival": best,
                "ratio": ratios,
            }
        )
    return rows


def table(rows: list[dict[str, Any]], chosen: list[Allocator]) -> Table:
    result = Table(title="ns per malloc+free pair (median of fresh processes)")
    result.add_column("live, size")
    result.add_column("loop", justify="right")
    for allocator in chosen:
        result.add_column(allocator.name, justify="right")
    ours = [allocator.name for allocator in chosen if allocator.name in OURS]
    for name in ours:
        result.add_column(f"{name} ÷ best", justify="right")
    for row in rows:
        cells = [f"{row['live']:,} · {row['size']}", f"{row['ns_loop']:.1f}"]
        for allocator in chosen:
            value = row["ns_per_pair"].get(allocator.name)
            mark = "*" if allocator.name == row["best_rival"] else ""
            cells.append("—" if value is None else f"{value:.1f}{mark}")
        for name in ours:
            ratio = row["ratio"].get(name)
            if ratio is None:
                cells.append("—")
                continue
            colour = "green" if ratio.high < 1 else "red" if ratio.low > 1 else "default"
            cells.append(
                f"[{colour}]{ratio.median:.3f}[/]\n[dim]{ratio.low:.3f}…{ratio.high:.3f}[/]"
            )
        result.add_row(*cells)
    result.caption = "* best rival of the cell; ratios: median of the rounds, 95 % interval"
    return result


def conclusions(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Geometric mean and worst cell of each front end, beside the goals of the project."""
    result: dict[str, Any] = {}
    for name in OURS:
        ratios = {
            f"{r['live']} · {r['size']}": r["ratio"][name] for r in rows if name in r["ratio"]
        }
        if not ratios:
            continue
        worst = max(ratios, key=lambda cell: ratios[cell].median)
        mean = benchlib.geometric_mean([ratio.median for ratio in ratios.values()])
        result[name] = {
            "geometric_mean": mean,
            "worst_cell": worst,
            "worst_ratio": ratios[worst].median,
            "goal_reached": mean <= GOAL_MEAN and ratios[worst].median <= GOAL_CELL,
        }
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--lib", type=Path, default=benchlib.LIBRARY, help="libbrimful.so to use")
    parser.add_argument("--samples", type=int, default=15, help="per cell and allocator")
    parser.add_argument("--seconds", type=float, default=0.15, help="length of one sample")
    parser.add_argument("--live", default="", help=f"K values (default {','.join(map(str, LIVE))})")
    parser.add_argument("--sizes", default=",".join(SIZES), help="bytes or `mixed`")
    parser.add_argument("--allocators", default="", help="some of them, comma separated")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31)
    parser.add_argument("--dry", action="store_true", help="do not write into bench/results/")
    options = parser.parse_args()
    try:
        chosen = benchlib.choose(benchlib.allocators(options.lib.absolute()), options.allocators)
        benchlib.compiled("micro/pair.cpp")
    except BenchError as error:
        print(f"pairs: {error}", file=sys.stderr)
        return 2
    live = [int(word) for word in options.live.split(",")] if options.live else list(LIVE)
    cells = [(k, size) for size in options.sizes.split(",") for k in live]
    facts = benchlib.environment()
    samples, failed = measure(chosen, cells, options.samples, options.seconds, options.seed)
    rows = evaluate(samples, failed)
    console = Console()
    if not console.is_terminal:
        console = Console(width=150)
    console.print(table(rows, chosen))
    for name, reason in failed.items():
        console.print(f"{name}: not measured: {reason}", highlight=False, markup=False)
    verdicts = conclusions(rows)
    for name, verdict in verdicts.items():
        console.print(
            f"{name}: geometric mean {verdict['geometric_mean']:.3f} of the best rival per cell "
            f"(goal {GOAL_MEAN}), worst cell {verdict['worst_cell']} at "
            f"{verdict['worst_ratio']:.3f} (goal {GOAL_CELL}): "
            f"{'reached' if verdict['goal_reached'] else 'not reached'}",
            highlight=False,
            markup=False,
        )
    if not options.dry:
        save(samples, rows, verdicts, failed, chosen, facts, vars(options))
    return 1 if failed else 0


def save(
    samples: Samples,
    rows: list[dict[str, Any]],
    verdicts: dict[str, Any],
    failed: dict[str, str],
    chosen: list[Allocator],
    facts: dict[str, Any],
    options: dict[str, Any],
) -> None:
    """Raw data as CSV, everything as JSON, both named after the moment."""
    flat = [
        {
            "round": number,
            "live": cell[0],
            "size": cell[1],
            "allocator": name,
            "ns_per_pair": run.pair,
            "ns_loop": run.loop,
            "ns_wall": run.wall,
        }
        for cell, by_name in samples.items()
        for name, by_round in by_name.items()
        for number, run in by_round.items()
    ]
    path = benchlib.RESULTS / f"pairs-{benchlib.stamp()}"
    benchlib.save_csv(path.with_suffix(".csv"), flat)
    benchlib.save_json(
        path.with_suffix(".json"),
        {
            "what": "bench/pairs.py",
            "environment": facts,
            "allocators": {allocator.name: allocator.describe() for allocator in chosen},
            "front_ends": {a.name: a.front_end() for a in chosen if a.name in OURS},
            "options": {k: options[k] for k in ("samples", "seconds", "sizes", "live", "seed")},
            "not_measured": failed,
            "conclusions": verdicts,
            "cells": [
                row | {"ratio": {name: vars(ratio) for name, ratio in row["ratio"].items()}}
                for row in rows
            ],
            "samples": flat,
        },
    )
    print(f"Raw data: {benchlib.path_for_record(path)}.json and .csv")


if __name__ == "__main__":
    sys.exit(main())
