# SPDX-License-Identifier: MIT
"""How much of each real program's time lies in its allocator, and in the kernel on its behalf.

Runs the rows of `brimful bench --real` under perf's timer (see profile.py), with the same launcher and
the same proof of the allocator as the bench: a run that did not have it is no figure. What a faster
malloc can win is the first column; pages are the second, and whether they are asked for early, late,
small or huge is the allocator's choice, too.

Samples are taken while the program runs on a processor, so a share does not depend on who else does,
except through the caches. One that waits has few samples: the table says how many.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from brimful.bench import programs, proof, sample
from brimful.bench.model import Allocator, Cell, Status
from brimful.bench.study import contenders, records
from brimful.bench.study.model import Data, Option, Run, Study
from brimful.bench.study.pages import Place, table
from brimful.bench.study.records import Record
from studies.share import profile

TIMEOUT_S = 300
SHOWN = ("allocator", "fault", "clear", "mapping")


def measure(run: Run) -> None:
    wanted = [name for name in run.options.rows.split(",") if name]
    reason = profile.objection()
    if reason:
        run.record.fail("all of it", reason)
        return
    taking_part = contenders.chosen(run)
    cells = [cell for cell in programs.cells() if not wanted or cell.name in wanted]
    for name in sorted({*wanted} - {cell.name for cell in cells}):
        run.record.fail(name, "there is no such row")
    for cell in cells:
        if cell.missing:
            run.record.fail(cell.name, cell.missing)
    there = [cell for cell in cells if not cell.missing]
    rows: dict[str, dict[str, Data]] = run.record.results.setdefault("rows", {})
    generator = random.Random(run.options.seed)
    for number in range(run.options.rounds):
        for at, cell in enumerate(there, 1):
            print(f"share: round {number + 1}, row {at} of {len(there)}: {cell.name}", flush=True)
            for allocator in generator.sample(taking_part, len(taking_part)):
                try:
                    taken = take(cell, allocator, run.options.hertz)
                except profile.ProfileError as error:
                    run.record.fail(f"{cell.name} under {allocator.name}", error)
                    continue
                add(rows.setdefault(cell.name, {}), allocator.name, taken)


def take(cell: Cell, allocator: Allocator, hertz: int) -> Data:
    """One run: samples by part and CPU seconds. Raises ProfileError."""
    code = profile.code_of(allocator.library, proof.c_library())
    with tempfile.TemporaryDirectory(prefix="brimful-share-") as folder:
        recorded = Path(folder) / "perf.data"
        around = profile.recorder(str(recorded), hertz)
        done, _, _ = sample.run(cell, allocator, 0, timeout_s=TIMEOUT_S, around=around)
        if done.status is not Status.OK:
            raise profile.ProfileError(f"{done.status.value}: {done.reason}")
        counts = profile.read(recorded, code)
    if not counts:
        raise profile.ProfileError("no sample")
    cpu_s = done.metrics["user_s"] + done.metrics["system_s"]
    return {"cpu_s": [cpu_s], "samples": {part: counts[part] for part in profile.PARTS}}


def add(row: dict[str, Data], name: str, taken: Data) -> None:
    """Puts a further run to those of before."""
    before = row.setdefault(name, {"cpu_s": [], "samples": {}})
    before["cpu_s"] += taken["cpu_s"]
    before["samples"] = dict(Counter(before["samples"]) + Counter(taken["samples"]))


# --- the table ------------------------------------------------------------------------------------


def total(samples: Mapping[str, int]) -> int:
    """All samples; those that clear a page are among the faults."""
    return sum(count for part, count in samples.items() if part != "clear")


def percent(samples: Mapping[str, int], part: str) -> float:
    return 100 * samples.get(part, 0) / total(samples)


def tables(record: Record) -> list[str]:
    """A row for each program, sorted by what lies in the baseline's allocator."""
    names = [one.name for one in record.allocators if not one.missing]
    rows: dict[str, dict[str, Data]] = record.results["rows"]
    whole = {row: found for row, found in rows.items() if all(name in found for name in names)}
    heads = [f"{name}: {part}" for name in names for part in ("malloc", *SHOWN[1:])]
    lines = []

    def first(row: str) -> float:
        return percent(whole[row][names[0]]["samples"], "allocator")

    for row in sorted(whole, key=first, reverse=True):
        cells = [
            f"{percent(whole[row][name]['samples'], part):.1f}" for name in names for part in SHOWN
        ]
        seconds = [
            sum(whole[row][name]["cpu_s"]) / len(whole[row][name]["cpu_s"]) for name in names
        ]
        fewest = min(total(whole[row][name]["samples"]) for name in names)
        lines.append([row, *cells, " / ".join(f"{one:.2f}" for one in seconds), f"{fewest:,}"])
    return [
        "Percent of the samples of each program, all its processes and threads, that lie in the "
        "allocator's own code (malloc), in the kernel where it gives out pages (fault; of which "
        "clear: filling them with zeros), and in calls that map or give back memory (mapping):",
        "",
        *table(["row", *heads, "CPU s", "samples"], lines),
        *means(whole, names),
        *record.gaps(),
    ]


def means(whole: Mapping[str, Mapping[str, Data]], names: Sequence[str]) -> list[str]:
    if not whole:
        return []
    said = []
    for name in names:
        each = {
            part: sum(percent(row[name]["samples"], part) for row in whole.values()) / len(whole)
            for part in SHOWN
        }
        said.append(
            f"{name}: malloc {each['allocator']:.1f} %, fault {each['fault']:.1f} %, "
            f"mapping {each['mapping']:.1f} %"
        )
    return [f"Means over the {len(whole)} rows: {'; '.join(said)}.", ""]


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    record = records.load(files["share"])
    origin = place.origin(files["share"], record.environment, record.allocators)
    return {"": [*tables(record), *origin]}


STUDY = Study(
    "share",
    title="How much of each real program's time lies in its allocator, and in the kernel's pages?",
    time="10 minutes",
    short_time="one minute",
    measure=measure,
    show=tables,
    figures=figures,
    pages=("docs/evaluation.md",),
    options={
        "allocators": contenders.option("glibc,brimful"),
        "rows": Option(
            "only these rows of `bench --real`, comma-separated",
            "",
            "perl,sqlite3,redis-plain-lists",
        ),
        "rounds": Option("runs of each row under each", 2, 1),
        "hertz": Option("samples a second", 997),
    },
    needs=("tools/install-deps.sh share", "make lib"),
    wants=("make real-programs",),
)
