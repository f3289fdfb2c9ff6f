# SPDX-License-Identifier: MIT
"""Ten hot rows by counted instructions: what a change of the allocator costs, without a clock.

A percent that is lost on a hot path is far below what times on a shared machine can show; a count of
instructions shows it at once. What is counted, by valgrind's callgrind, are the instructions that
ran inside the allocator's library, its start taken off, for each operation of the row. The reasons:

    inside the library      what the program, the C library and the loader execute is another number
                            with each version of theirs, and none of it is ours
    start taken off         it reads what the machine and its cgroup look like; counted with a
                            program that allocates a little and ends
    for each operation      a row may be made shorter or longer, and its figure means something
    by a clock that counts  what happens after a delay (a purge, a look at idle caches) happens at the
                            same moment of every run: bench/micro/counted_clock.c

valgrind has no rseq, so the front end is that of threads: its hits are the same code as those of
CPUs. It runs one thread at a time. Where two threads only meet at the end of long phases, that is the
same each time; rows in which they wait for each other all the time (larson, xmalloc) differ by 1 to
4 % from count to count and are left out. What is left differs by 0.01 % in most rows and by 1.6 % in
`aligned`, where the page heap asks the kernel at random which pages are there. So a row is counted
three times and the lowest figure stays, or until one is as low as it was known to be.

Instructions are not time (a cache miss costs nothing here), so this does not stand in for the league:
it says on the day that something has changed.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from .. import locate
from . import allocators, building, catalog, launch, machine, model, sample
from .model import COUNTED, Allocator, BenchError, Cell, Result, Sample, Status

# Row of the catalog → what is different of its arguments, so that it takes a second.
ROWS = {
    "small-fifo": {"--count": "20000", "--rounds": "12", "--scale": "1"},
    "cfrac": {"--scale": "0.02"},
    "alloc-test": {"--scale": "0.04"},
    "random-slots-1024": {"--scale": "0.04"},
    "size-sweep@65536": {"--scale": "0.04"},
    "realloc-growth": {"--scale": "0.03"},
    "calloc": {"--scale": "0.04"},
    "aligned": {"--scale": "0.04"},
    "containers": {"--scale": "0.02"},
    "cross-thread-reuse-remote": {"--scale": "0.04", "--threads": "2"},
}
ATTEMPTS = 3
CLOSE = 1.005  # times what is known: no further attempt
CONF = "front_end:thread,guards:0"  # which objects are guarded is drawn, another each time
START = "cold-start-process"  # the row that allocates a little and ends


def count(
    library: str, tell: Callable[[str, float], None], known: Mapping[str, float] | None = None
) -> Result:
    """Count all rows under `library` ("": this checkout's); `tell` hears each row and its figure.

    `known` holds figures by row: what is about as low is not counted again. Raises BenchError if
    something cannot be counted, which is a failure here and no gap.
    """
    if shutil.which("valgrind") is None:
        raise BenchError("valgrind is not installed: instructions cannot be counted")
    ours = allocators.pair(library, CONF)[1]
    if ours.missing:
        raise BenchError(ours.missing)
    cells = [_cell(name) for name in ROWS]
    begins = _cell(START)
    catalog.compile_programs([begins, *cells])
    start, _ = _inside(begins, ours)
    result = Result(machine.environment(), {"start_instructions": start}, [ours], cells)
    for cell in cells:
        enough = (known or {}).get(cell.name, 0.0) * CLOSE
        figure = math.inf
        for _ in range(ATTEMPTS):
            total, operations = _inside(cell, ours)
            figure = min(figure, (total - start) / operations)
            if figure <= enough:
                break
        result.samples.append(
            Sample(
                cell=cell.name,
                allocator=ours.name,
                round=0,
                status=Status.OK,
                extra={COUNTED: figure, "operations": operations},
                served_by=(ours.library,),
                instructions_by="callgrind",
            )
        )
        tell(cell.name, figure)
    result.finished = True
    return result


def figures(result: Result) -> dict[str, float]:
    """What was counted, by row."""
    return {taken.cell: taken.extra[COUNTED] for taken in result.samples}


def main_count(out: Path, library: str, known: Mapping[str, float] | None = None) -> int:
    """Count, print each row, write the file; the exit code."""

    def tell(row: str, figure: float) -> None:
        print(f"{row:26} {figure:9.2f}", flush=True)

    print(f"{'row':26} instructions inside the library for each operation")
    try:
        model.save(count(library, tell, known), out)
    except (BenchError, catalog.CatalogError) as error:
        print(f"brimful bench count: {error}", file=sys.stderr)
        return 1
    print(f"\nWritten: {out}")
    return 0


def _cell(name: str) -> Cell:
    """The row of the catalog, shortened, with the count as its figure."""
    preset = catalog.PRESETS["full"]
    found = next(work.cell for work in catalog.asked_for(preset, name) if work.cell.name == name)
    command = list(found.command)
    for option, value in ROWS.get(name, {}).items():
        command[command.index(option) + 1] = value
    threads = int(command[command.index("--threads") + 1])
    return replace(found, command=tuple(command), threads=threads, figure=COUNTED, figures=())


def _inside(cell: Cell, allocator: Allocator) -> tuple[int, float]:
    """Instructions that ran inside the allocator's library, and the operations of the row."""
    with tempfile.TemporaryDirectory(prefix="brimful-bench-") as name:
        folder = Path(name)
        if not sample.profile(cell, allocator, folder, beside=[_clock()]):
            raise BenchError(f"{cell.name}: failed under valgrind")
        counts: Counter[str] = Counter()
        for path in folder.glob("profile.*"):
            counts += by_object(path.read_text(errors="replace"))
        line = launch.find_line(folder / "stdout")
    inside = counts[os.path.realpath(allocator.library)]
    operations = float(line.get("operations", 0))
    if inside == 0 or (operations <= 0 and cell.name != START):
        missing = "no operations" if inside else f"nothing in {allocator.library}"
        raise BenchError(f"{cell.name}: {missing} counted")
    return inside, operations


def _clock() -> str:
    """Path of the clock that counts, compiled if needed. Raises BenchError."""
    source = Path(locate.project_root()) / "bench" / "micro" / "counted_clock.c"
    binary = catalog.binary_folder() / "counted_clock.so"
    compiler = ["gcc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC"]
    return str(building.built(binary, source, compiler))


def by_object(profile: str) -> Counter[str]:
    """Instructions by the file whose code they are of, from a profile of callgrind.

    A line of cost is `position cost`, and belongs to the object named last (`ob=`); the one behind a
    line `calls=` is what the called function cost in all, which is counted where it ran. Names are
    given once, with a number, which stands for them later.
    """
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    current = ""
    inclusive = False
    for line in profile.splitlines():
        found = re.match(r"(c?)ob=\((\d+)\)(?: (.*))?$", line)
        if found:
            if found[3]:
                names[found[2]] = os.path.realpath(found[3])
            if not found[1]:
                current = found[2]
        elif line.startswith("calls="):
            inclusive = True
        elif re.match(r"[0-9+*-]", line):
            words = line.split()
            if not inclusive and len(words) > 1:
                counts[names.get(current, "")] += int(words[1])
            inclusive = False
    return counts
