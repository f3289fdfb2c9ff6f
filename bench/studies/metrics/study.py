# SPDX-License-Identifier: MIT
"""What an allocator costs beside its speed, for every allocator of this machine.

Four figures, each from a small C program of this folder in fresh processes that take turns:
  startup     time of a trivial program from vfork to wait, against the same under glibc
  trivial     resident size of that program, exact (smaps_rollup)
  metadata    resident bytes beyond the live ones at 100 MiB live in 64-byte objects
  giveback    1 GiB in objects of several sizes freed: how soon the resident size is back

A library that is missing or fails is named with the reason, never silently left out.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from brimful.bench import building, launch
from brimful.bench.model import Allocator, BenchError
from brimful.bench.study import contenders, records
from brimful.bench.study.model import Data, Option, Run, Study, StudyError
from brimful.bench.study.pages import Place, human, table
from brimful.bench.study.records import Record

HERE = Path(__file__).resolve().parent
MIB = 1 << 20
LIVE_BYTES = 100 * MIB
LIVE_OBJECT = 64
FREED_BYTES = 1 << 30
FREED_OBJECTS = (1 << 10, 64 << 10, 16 << 20)
BACK_SHARE = 0.02  # "back" is within this share of the freed bytes from where it started
MOST_LIVE_SAMPLES = 3  # of 100 MiB live: they hardly vary
TIMEOUT_S = 120


def answer(source: str, allocator: Allocator, *arguments: object) -> Data:
    """What a program of this folder says under `allocator`. Raises BenchError."""
    return launch.answer(allocator, [building.program(HERE / source), *arguments], TIMEOUT_S)


# --- the four figures -----------------------------------------------------------------------------


def startup(run: Run, chosen: list[Allocator]) -> Data:
    """Milliseconds that a trivial program takes under each allocator, and the difference to glibc."""
    # The loader's own search is the same for all, so only the preload and the settings are passed.
    kept = launch.clean_environment()
    environments = [
        " ".join(f"{k}={v}" for k, v in launch.environment(one).items() if k not in kept)
        for one in chosen
    ]
    timer = building.program(HERE / "spawn_time.c", "-static")
    trivial = building.program(HERE / "trivial.c")
    command = [timer, run.options.rounds, run.options.seed, trivial, "quiet", "--", *environments]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise StudyError(done.stderr.strip())
    times: dict[str, list[float]] = defaultdict(list)
    for line in done.stdout.splitlines():
        number, ns = line.split()
        times[chosen[int(number)].name].append(int(ns) / 1e6)
    result: Data = {}
    for name, values in times.items():
        result[name] = {"median_ms": statistics.median(values), "samples_ms": values}
        if "glibc" in times:
            result[name]["over_glibc_ms"] = statistics.median(
                mine - base for mine, base in zip(values, times["glibc"], strict=True)
            )
    return result


def in_turns(
    run: Run, chosen: list[Allocator], rounds: int, *command: object
) -> dict[str, list[Data]]:
    generator = random.Random(run.options.seed)
    seen: dict[str, list[Data]] = defaultdict(list)
    for _ in range(rounds):
        for one in generator.sample(chosen, len(chosen)):
            seen[one.name].append(answer(str(command[0]), one, *command[1:]))
    return seen


def trivial(run: Run, chosen: list[Allocator]) -> Data:
    """Resident size of the trivial program."""
    return {
        name: {key: statistics.median(one[key] for one in runs) for key in runs[0]}
        | {"samples": runs}
        for name, runs in in_turns(run, chosen, run.options.samples, "trivial.c").items()
    }


def metadata(run: Run, chosen: list[Allocator]) -> Data:
    """Share of resident bytes beyond the live ones."""
    rounds = min(run.options.samples, MOST_LIVE_SAMPLES)
    seen = in_turns(run, chosen, rounds, "live.c", LIVE_BYTES, LIVE_OBJECT)
    for one in (one for runs in seen.values() for one in runs):
        one["overhead"] = one["grown_kib"] * 1024 / one["live_bytes"] - 1
    return {
        name: {"overhead": statistics.median(one["overhead"] for one in runs), "samples": runs}
        for name, runs in seen.items()
    }


def giveback(run: Run, chosen: list[Allocator]) -> Data:
    """Time from the last free until the resident size is back, by object size."""
    generator = random.Random(run.options.seed)
    result: dict[str, Data] = defaultdict(dict)
    for size in FREED_OBJECTS:
        for one in generator.sample(chosen, len(chosen)):
            found = answer("giveback.c", one, FREED_BYTES, size, run.options.seconds)
            limit = found["before_kib"] + BACK_SHARE * FREED_BYTES / 1024
            found["back_ms"] = next((at for at, kib in found["series"] if kib <= limit), None)
            found["left_kib"] = found["series"][-1][1] - found["before_kib"]
            result[one.name][str(size)] = found
    return result


PARTS = {"startup": startup, "trivial": trivial, "metadata": metadata, "giveback": giveback}


def measure(run: Run) -> None:
    usable = []
    # An allocator that cannot run the simplest program at all must not end the whole measurement.
    for one in contenders.chosen(run):
        try:
            answer("trivial.c", one)
            usable.append(one)
        except BenchError as error:
            run.record.fail(one.name, error)
    for part in filter(run.wants, PARTS):
        print(f"measuring: {part}", file=sys.stderr, flush=True)
        try:
            run.record.results[part] = PARTS[part](run, usable)
        except (BenchError, subprocess.TimeoutExpired) as error:
            run.record.fail(part, error)


# --- figures --------------------------------------------------------------------------------------


def give_back_cell(found: Data | None, seconds: float) -> str:
    if found is None:
        return "—"
    if found["back_ms"] is None:
        return f"not in {seconds:.0f} s ({found['left_kib'] / 1024:.0f} MiB left)"
    return f"{found['back_ms'] / 1e3:.2f} s"


def told(record: Record) -> list[str]:
    results, seconds = record.results, record.options["seconds"]
    head = ["allocator", "start-up over glibc, ms", "trivial RSS, KiB", "of that written, KiB"]
    head += [f"beyond {LIVE_BYTES >> 20} MiB live in {LIVE_OBJECT} B"]
    head += [f"1 GiB in {human(size)} back after" for size in FREED_OBJECTS]
    rows = []
    for one in record.allocators:
        start, small, extra, back = (results.get(part, {}).get(one.name, {}) for part in PARTS)
        rows.append(
            [
                one.name,
                f"{start['over_glibc_ms']:+.3f}" if "over_glibc_ms" in start else "—",
                f"{small['rss_kib']:.0f}" if small else "—",
                f"{small['private_dirty_kib']:.0f}" if small else "—",
                f"{extra['overhead'] * 100:.2f} %" if extra else "—",
                *(give_back_cell(back.get(str(size)), seconds) for size in FREED_OBJECTS),
            ]
        )
    return table(head, rows)


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    record = records.load(files["metrics"])
    lines = ["### Footprint, start-up and give-back", "", *told(record), *record.gaps()]
    return {"": lines + place.origin(files["metrics"], record.environment, record.allocators)}


STUDY = Study(
    "metrics",
    title="What does an allocator cost at start-up, in metadata, and until memory is given back?",
    time="5 minutes",
    short_time="a minute",
    measure=measure,
    show=told,
    figures=figures,
    pages=("docs/evaluation.md",),
    parts=tuple(PARTS),
    options={
        "allocators": contenders.option(),
        "rounds": Option("start-up runs of each allocator", 400, 20),
        "samples": Option("other runs of each allocator", 9, 2),
        "seconds": Option("how long to wait until memory is back", 4.0, 2.0),
    },
)
