# SPDX-License-Identifier: MIT
"""malloc+free pairs on a heap of K live objects freed in random order, all allocators compared.

The other calls that programs make often are measured on a heap of 20,000 objects of mixed sizes.

Every sample is a fresh process (pair.cpp) of a fraction of a second. In each round every cell
(call, K, size) is visited once, and in a cell every allocator once, both in an order drawn anew; all allocators
of a round get the same random places and sizes. Per cell the medians are shown, and both front ends of
brimful against the best rival: the median of the ratios of the same round, with its 95 % bootstrap
interval. The best rival is the one with the lowest median in that cell, so brimful is compared with no
single allocator but with the best of all of them.

The time of a pair contains the loop around it; the column "loop" says what the loop costs alone.
"""

from __future__ import annotations

import random
import statistics as plain
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from brimful.bench import building, launch, statistics
from brimful.bench.model import Allocator, BenchError
from brimful.bench.study import contenders, records
from brimful.bench.study.model import Data, Option, Run, Study, StudyError
from brimful.bench.study.pages import Place, interval, table
from brimful.bench.study.records import Record

SOURCE = Path(__file__).with_name("pair.cpp")
LIVE = "8,64,4096,65536,1048576"
SIZES = "64,mixed"
CALLS = (
    "calloc",
    "aligned_alloc",
    "posix_memalign",
    "realloc-stays",
    "realloc-moves",
    "malloc_usable_size",
)
CALLS_AT = (20_000, "mixed")
GOAL_MEAN = 0.90
GOAL_CELL = 1.00
KEYS = ("ns_per_pair", "ns_loop", "ns_wall")  # processor time, that of a bare loop step, wall time
TIMEOUT_S = 60

Cell = tuple[str, int, str]  # call, live objects, size


# --- measuring ------------------------------------------------------------------------------------


def sample(program: Path, allocator: Allocator, cell: Cell, seconds: float, seed: int) -> Data:
    """One process. Raises BenchError."""
    data = launch.answer(allocator, [program, *cell, seconds, seed], TIMEOUT_S)
    wanted = [str(Path(allocator.library).resolve())] if allocator.library else []
    if data["allocators"] != wanted:
        raise StudyError(f"had {data['allocators']} mapped, not {wanted}")
    return {key: data[key] for key in KEYS}


def measure(run: Run) -> None:
    """All rounds. An allocator that fails in a cell is left out there, and the record says why."""
    options, record = run.options, run.record
    chosen = contenders.chosen(run)
    program = building.program(SOURCE)
    cells = [
        ("malloc", int(k), size)
        for size in options.sizes.split(",")
        for k in options.live.split(",")
        if k
    ]
    cells += [(call, *CALLS_AT) for call in options.calls.split(",") if call]
    samples: list[Data] = record.results.setdefault("samples", [])
    try:
        rounds(run, program, chosen, cells, samples)
    finally:
        record.results["cells"] = rows(record)


def rounds(
    run: Run,
    program: Path,
    chosen: Sequence[Allocator],
    cells: Sequence[Cell],
    samples: list[Data],
) -> None:
    options, record = run.options, run.record
    generator = random.Random(options.seed)
    for number in range(options.rounds):
        started = time.monotonic()
        for cell in generator.sample(cells, len(cells)):
            places = generator.randrange(2**32)
            for one in generator.sample(chosen, len(chosen)):
                if place_name(one.name, cell) in record.not_measured:
                    continue
                try:
                    found = sample(program, one, cell, options.seconds, places)
                except BenchError as error:
                    record.fail(place_name(one.name, cell), error)
                    continue
                call, live, size = cell
                where = {"call": call, "live": live, "size": size}
                where |= {"round": number, "allocator": one.name}
                samples.append(where | found)
        took = time.monotonic() - started
        print(f"round {number + 1}/{options.rounds}: {took:.0f} s", file=sys.stderr, flush=True)


def place_name(allocator: str, cell: Cell) -> str:
    return f"{allocator} at {cell_name(*cell)}"


def cell_name(call: str, live: int, size: str) -> str:
    return f"{live:,} · {size}" if call == "malloc" else f"{call}, {live:,} · {size}"


# --- figures --------------------------------------------------------------------------------------


def rows(record: Record) -> list[Data]:
    """For each cell the medians, the best rival, and the ratios of brimful's front ends against it."""
    samples: dict[Cell, dict[str, dict[int, Data]]] = {}
    for one in record.results["samples"]:
        here = samples.setdefault((one["call"], one["live"], one["size"]), {})
        here.setdefault(one["allocator"], {})[one["round"]] = one
    found = []
    for cell in sorted(samples, key=lambda cell: (cell[0] != "malloc", cell[0], cell[2], cell[1])):
        here = {
            name: by_round
            for name, by_round in samples[cell].items()
            if place_name(name, cell) not in record.not_measured
        }
        medians = {
            name: plain.median(one["ns_per_pair"] for one in by_round.values())
            for name, by_round in here.items()
        }
        rivals = [name for name in medians if name not in front_ends(record)]
        best = min(rivals, key=lambda name: medians[name], default="")
        ratios = {
            name: paired(here[name], here[best])
            for name in front_ends(record)
            if best and name in here
        }
        loop = plain.median(one["ns_loop"] for runs in here.values() for one in runs.values())
        head = {"call": cell[0], "live": cell[1], "size": cell[2], "ns_loop": loop}
        head |= {"best_rival": best}
        found.append(head | {"ns_per_pair": medians, "ratio": ratios})
    return found


def front_ends(record: Record) -> list[str]:
    return [one.name for one in record.allocators if one.ours]


def paired(ours: dict[int, Data], theirs: dict[int, Data]) -> Data:
    both = sorted(ours.keys() & theirs.keys())
    mine, others = ([side[n]["ns_per_pair"] for n in both] for side in (ours, theirs))
    return vars(statistics.paired_ratio(mine, others))


def page_table(record: Record, found: Sequence[Data]) -> list[str]:
    """Bold is the best rival of the cell."""
    names = [one.name for one in record.allocators]
    names = [name for name in names if any(name in row["ns_per_pair"] for row in found)]
    ours = [name for name in names if name in front_ends(record)]
    lines = []
    for row in found:
        values = []
        for name in names:
            value = row["ns_per_pair"].get(name)
            shown = "—" if value is None else f"{value:.1f}"
            values.append(f"**{shown}**" if name == row["best_rival"] else shown)
        ratios = [interval(row["ratio"][name]) if name in row["ratio"] else "—" for name in ours]
        lines.append([row_name(row), f"{row['ns_loop']:.1f}", *values, *ratios])
    head = ["K · size", "loop alone", *names, *(f"{name} ÷ best rival" for name in ours)]
    return table(head, lines)


def row_name(row: Data) -> str:
    return cell_name(row["call"], row["live"], row["size"])


def verdicts(record: Record, found: Sequence[Data]) -> list[str]:
    """Mean and worst cell of each front end beside the project's goals."""
    lines = []
    for name in front_ends(record):
        ratios = {
            row_name(row): row["ratio"][name]["median"]
            for row in found
            if name in row["ratio"]
        }
        if not ratios:
            continue
        worst = max(ratios, key=lambda cell: ratios[cell])
        lines.append(
            f"- {name}: geometric mean **{plain.geometric_mean(ratios.values()):.3f}** of the best "
            f"rival per cell (goal ≤ {GOAL_MEAN:.2f}); worst cell {worst} at {ratios[worst]:.3f} "
            f"(goal ≤ {GOAL_CELL:.2f})."
        )
    lost = [
        f"{name} at {row_name(row)} ({ratio['median']:.3f})"
        for row in found
        for name, ratio in row["ratio"].items()
        if ratio["median"] > 1
    ]
    return [*lines, f"- Cells where the best rival is faster: {', '.join(lost) or 'none'}."]


def told(record: Record) -> list[str]:
    found = record.results["cells"]
    modes = [f"- `{one.mode}`" for one in record.allocators if one.ours and one.mode]
    return [
        *page_table(record, found),
        "Bold: the best rival of the cell.",
        "",
        *verdicts(record, found),
        *modes,
        "",
    ]


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    record = records.load(files["pairs"])
    title = "### malloc+free pairs and other calls, ns, K live objects in random order"
    lines = [title, "", *told(record), *record.gaps()]
    return {"": lines + place.origin(files["pairs"], record.environment, record.allocators)}


STUDY = Study(
    "pairs",
    title="How long do a malloc and a free take on a heap of K live objects?",
    time="25 minutes",
    short_time="a minute",
    measure=measure,
    show=told,
    figures=figures,
    pages=("docs/evaluation.md",),
    options={
        "allocators": contenders.option(),
        "rounds": Option("samples of each cell and allocator", 15, 2),
        "seconds": Option("length of a sample", 0.15, 0.05),
        "live": Option("numbers of live objects, comma-separated", LIVE, "64,4096"),
        "sizes": Option("bytes of each object, or mixed", SIZES),
        "calls": Option("other calls than malloc and free", ",".join(CALLS), CALLS[0]),
    },
)
