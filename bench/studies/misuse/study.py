# SPDX-License-Identifier: MIT
"""Which faults does an allocator stop, and what does that cost?

The cases are the processes of suite/: one fault each, with objects of one size, by one thread or two.
Each proves by itself what became of it (suite.h, runs.py), so the same program judges every
allocator, and none has to say the words of another. What is drawn at random by an allocator is drawn
anew in each run; hence the repeats. Cases of the kind `no-fault` are right programs: an allocator
that stops one of them is not to be believed in the others.

Not a comparison of effort: an attacker who knows the allocator does better than these programs.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from brimful.bench import allocators, launch
from brimful.bench.model import Allocator
from brimful.bench.study import contenders, records
from brimful.bench.study.model import WORK, Data, Option, Run, Study, StudyError
from brimful.bench.study.pages import Place, table
from brimful.bench.study.records import Record
from studies.misuse import cost, runs
from studies.misuse.matrix import Matrix, letter, rows

OURS = (
    *("brimful", "brimful-guards-1000", "brimful-guards-all", "brimful-canary", "brimful-zero"),
    *("brimful-quarantine", "brimful-random", "brimful-guard", "brimful-hardened"),
    "brimful-hardened-all",
)
OTHERS = (
    *("glibc", "jemalloc", "mimalloc3", "mimalloc3-secure", "snmalloc", "snmalloc-checks"),
    *("scudo", "isoalloc", "hardened-light", "hardened"),
)
ISOALLOC = "isoalloc"
# Some hundred times as slow, and meant to be: their cost isn't measured.
HUNTS = ("brimful-guards-all",)
PICTURE = (
    "Kinds of faults against allocators; dark blue: always stopped, light blue: in half of the runs or "
    "more, light red: in fewer, dark red: never, grey: harmless"
)


def measure(run: Run) -> None:
    chosen = contenders.chosen(run)
    works = cost.works(run.options.rows) if run.wants("cost") else []
    if run.wants("faults"):
        faults(run, [*chosen, *flawed(run)])
    if run.wants("cost"):
        cost.measure(run, works, [one for one in chosen if one.name not in HUNTS])


def flawed(run: Run) -> list[Allocator]:
    """IsoAlloc, whose realloc fails the probe of the rivals, is built, and takes part in the faults:
    the right programs among the cases show what it can't do. Its cost stays unmeasured."""
    library = allocators.build_folder() / "rivals" / f"lib{ISOALLOC}.so"
    return [
        replace(one, library=str(library), missing="")
        for one in run.record.allocators
        if one.name == ISOALLOC and one.missing and library.exists()
    ]


def faults(run: Run, chosen: Sequence[Allocator]) -> None:
    """All cases under all allocators, as often as asked for."""
    runs.forbid_cores()
    program = WORK / "misuse-suite"
    runs.compile_suite(program)
    cases = runs.cases(program)
    found: list[Data] = [{"case": str(case), "outcomes": {}} for case in cases]
    run.record.results["cases"] = found
    generator = random.Random(run.options.seed)
    for number in range(run.options.repeats):
        print(f"faults: run {number + 1} of {run.options.repeats}", file=sys.stderr, flush=True)
        for one in generator.sample(list(chosen), len(chosen)):
            variables = launch.environment(one)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                try:
                    endings = list(
                        pool.map(lambda case: runs.commit(program, case, variables), cases)  # noqa: B023
                    )
                except KeyboardInterrupt:
                    pool.shutdown(cancel_futures=True)
                    raise
            if any("cannot be preloaded" in ending.said for ending in endings):
                raise StudyError(f"{one.name} could not be preloaded")
            for row, ending in zip(found, endings, strict=True):
                row["outcomes"][one.name] = row["outcomes"].get(one.name, "") + letter(ending)


def matrix_of(record: Record) -> Matrix:
    return Matrix(record.results.get("cases", []), [one.name for one in record.allocators])


def tables(record: Record, wanted: Sequence[str]) -> list[str]:
    """The matrix for some of the allocators, with what they cost."""
    matrix, samples = matrix_of(record), record.results.get("cost", [])
    names = [name for name in matrix.names if name in wanted]
    lines = rows(matrix, names) + (cost.rows(samples, names) if samples else [])
    heads = [name.removeprefix("brimful-") for name in names]
    return table(["fault", *heads], lines) if names else []


def told(record: Record) -> list[str]:
    """A table of ours, one of the others, one of the reader's own."""
    more = [one.name for one in record.allocators if one.name not in (*OURS, *OTHERS)]
    lines: list[str] = []
    for group in (OURS, OTHERS, more):
        lines += tables(record, group)
    return lines


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    from studies.misuse import charts  # only whoever draws needs the packages of build/venv

    record = records.load(files["misuse"])
    picture = place.chart("misuse", charts.chart(matrix_of(record)), PICTURE)
    origin = place.origin(files["misuse"], record.environment, record.allocators)
    return {"": [*picture, *told(record), *record.gaps(), *origin]}


STUDY = Study(
    "misuse",
    title="Which faults of programs does an allocator stop, and what does that cost?",
    time="30 minutes",
    short_time="2 minutes",
    measure=measure,
    show=told,
    figures=figures,
    pages=("docs/guide/safety.md",),
    parts=("faults", "cost"),
    options={
        "allocators": contenders.option(",".join((*OURS, *OTHERS))),
        "repeats": Option("runs of each case", 5, 1),
        "rounds": Option("samples of each row of the cost", 5, 1),
        "rows": Option("of the bench, for the cost", ",".join(cost.ROWS), "cfrac,larson"),
    },
)
