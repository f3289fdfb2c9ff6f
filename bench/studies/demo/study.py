# SPDX-License-Identifier: MIT
"""Real programs on real input, alternately under the system's allocator and under brimful.

This is the main job of `make run`, and the first thing that a new user sees. Each round runs every
program once under each allocator, the order drawn anew, so that a machine that gets slower or faster
meanwhile does it to both. What is compared are the two runs of one round; the table gives the median of
those ratios and its interval.

A run that was not what it claims to be (see programs.py), or that prints something else than under the
other allocator, makes the program's row FAILED and the exit code 1.
"""

from __future__ import annotations

import random
import statistics as plain
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from brimful.bench import allocators, launch, statistics
from brimful.bench.model import Allocator, BenchError
from brimful.bench.study import records
from brimful.bench.study.model import LIBRARY, Data, Option, Run, Study, StudyError
from brimful.bench.study.pages import Place, interval, table
from studies.demo.programs import Program, programs, proof

SYSTEM, BRIMFUL = "system", "brimful"
PARTS = ("compiler", "malloc", "pymalloc", "redis")
# title, key of a sample, unit, factor, digits
MEASURES: tuple[tuple[str, str, str, float, int], ...] = (
    ("wall time", "wall_s", "s", 1, 3),
    ("user time", "user_s", "s", 1, 3),
    ("system time", "system_s", "s", 1, 3),
    ("peak RSS", "peak_rss_kib", "MiB", 1 / 1024, 1),
    ("page faults", "page_faults", "", 1, 0),
    ("requests/s", "requests_per_s", "", 1, 0),
)

Show = Callable[[str, str], None]


# --- the rounds -----------------------------------------------------------------------------------


@contextmanager
def progress(total: int) -> Iterator[Show]:
    """A function (what runs now, what the last run gave) → shown: a bar on a terminal, else lines.

    `total` is the number of runs that are certain; further ones count beyond it.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console()
    if not console.is_terminal:
        count = 0

        def line(now: str, last: str) -> None:
            nonlocal count
            if last:
                count += 1
                print(f"[{count}/{max(count, total)}] {last}", flush=True)

        yield line
        return
    what = TextColumn("{task.description}")
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), what)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)

        def show(now: str, last: str) -> None:
            bar.update(task, description=now, advance=1 if last else 0)
            bar.update(task, total=max(total, bar.tasks[0].completed))

        yield show


def measure(run: Run) -> None:
    """Everything `pairs` times, and more often while another round fits into `seconds`."""
    options, record = run.options, run.record
    system, ours = allocators.pair(options.lib, options.conf)
    if ours.missing:
        raise StudyError(ours.missing)
    pair = [replace(system, name=SYSTEM), ours]
    record.allocators = pair
    launch.launcher()
    todo = list(programs(options.only))
    for part in sorted({*options.only} - {program.part for program in todo}):
        print(f"{part} is left out: its program is not installed", file=sys.stderr)
    generator = random.Random(options.seed)
    start, done, least = time.monotonic(), 0, max(1, options.pairs)
    try:
        with progress(len(todo) * len(pair) * least) as show:
            while done < least or (time.monotonic() - start) * (done + 1) / done < options.seconds:
                for program in generator.sample(todo, len(todo)):
                    run_pair(program, generator.sample(pair, 2), ours.library, show)
                done += 1
                if all(program.failure for program in todo):
                    break
    finally:
        measured = [program for program in todo if program.samples or program.failure]
        record.results["programs"] = [told(program) for program in measured]
        for program in measured:
            if program.failure:
                record.fail(program.name, f"FAILED: {program.failure}")


def run_pair(program: Program, pair: Sequence[Allocator], library: str, show: Show) -> None:
    """One round of one program: both allocators in the given order."""
    samples: dict[str, Data] = {}
    for allocator in pair:
        label = f"{program.name} under {allocator.name}"
        if program.failure:
            show(label, f"{label}: skipped, it failed before")
            continue
        show(label, "")
        try:
            data = program.sample(allocator)
        except BenchError as error:
            program.failure = f"{allocator.name}: {error}"
            show(label, f"{label}: FAILED: {error}")
            continue
        missing = proof(program.process, allocator, library, data)
        if missing:
            program.failure = f"{allocator.name}: {missing}"
        samples[allocator.name] = data
        if len(samples) == len(pair):  # before it is shown: whoever interrupts then has it
            program.samples.append(samples)
            if samples[SYSTEM]["output"] != samples[BRIMFUL]["output"]:
                program.failure = program.failure or "its output differs between the allocators"
        rss = data["peak_rss_kib"] / 1024
        mark = " FAILED" if missing else ""
        show(label, f"{label}: {data['wall_s']:.2f} s, peak {rss:.0f} MiB{mark}")


def told(program: Program) -> Data:
    """What the record keeps of a program."""
    for data in (data for sample in program.samples for data in sample.values()):
        data["output"] = data["output"][:200]
    return {
        "name": program.name,
        "what": program.what,
        "failure": program.failure,
        "summary": summary(program.samples),
        "rounds": program.samples,
    }


def summary(samples: Sequence[Mapping[str, Data]]) -> list[Data]:
    """Medians and paired ratio of each measure of one program."""
    rows = []
    for title, key, unit, scale, digits in MEASURES:
        found = [[one[name].get(key, 0) * scale for name in (SYSTEM, BRIMFUL)] for one in samples]
        pairs = [pair for pair in found if all(pair)]  # a time below the clock's step is none
        if not pairs:
            continue
        system, ours = zip(*pairs, strict=True)
        head = {"measure": title, "unit": unit, "digits": digits}
        medians = {SYSTEM: plain.median(system), BRIMFUL: plain.median(ours)}
        rows.append(head | medians | {"ratio": vars(statistics.paired_ratio(ours, system))})
    return rows


# --- the page -------------------------------------------------------------------------------------


def show(record: records.Record) -> list[str]:
    from studies.demo import shown  # needs rich

    shown.results(record)
    return []


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    record = records.load(files["demo"])
    programs = record.results["programs"]
    rows = []
    for program in programs:
        if program["failure"]:
            rows.append([program["name"], f"FAILED: {program['failure']}", "", "", ""])
        for at, measure in enumerate(program["summary"]):
            unit = f", {measure['unit']}" if measure["unit"] else ""
            values = [f"{measure[name]:,.{measure['digits']}f}" for name in (SYSTEM, BRIMFUL)]
            name = f"**{program['name']}**" if at == 0 else ""
            rows.append([name, measure["measure"] + unit, *values, interval(measure["ratio"])])
    lines = ["### Real programs: the system's allocator against brimful", ""]
    lines += table(["program", "measure", "system", "brimful", "ratio [95 %]"], rows)
    lines += [f"- {p['name']}: {p['what']} ({len(p['rounds'])} pairs)" for p in programs]
    return {"": [*lines, "", *place.origin(files["demo"], record.environment, record.allocators)]}


STUDY = Study(
    "demo",
    title="Real programs under the system's malloc and under brimful: the job of `make run`.",
    time="2 minutes",
    short_time="30 seconds",
    measure=measure,
    show=show,
    figures=figures,
    pages=("docs/evaluation.md",),
    parts=PARTS,
    options={
        "lib": Option("the library to preload", str(LIBRARY)),
        "conf": Option("BRIMFUL_CONF for the runs under brimful", ""),
        "pairs": Option("least runs of each; of fewer than five nothing is said", 5, 1),
        "seconds": Option("add runs while they fit", 110.0, 30.0),
    },
    needs=("tools/install-deps.sh run", "make lib"),
    plain=True,
    keeps=False,
)
