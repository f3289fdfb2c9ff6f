#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What an allocator costs beside its speed, for every allocator of this machine.

Four figures, each from a small C program of bench/micro/ in fresh processes that take turns:
  start-up    time of a trivial program from vfork to wait, against the same under glibc
  trivial     resident size of that program, exact (smaps_rollup)
  metadata    resident bytes beyond the live ones at 100 MiB live in 64-byte objects
  give back   1 GiB in objects of several sizes freed: how soon the resident size is back

A library that is missing or fails is named with the reason, never silently left out.
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
from typing import Any

import benchlib
from benchlib import Allocator, BenchError

try:
    from rich.console import Console
    from rich.table import Table
except ImportError:
    sys.exit("metrics: rich is missing: apt-get install python3-rich")

MIB = 1 << 20
LIVE_BYTES = 100 * MIB
LIVE_OBJECT = 64
FREED_BYTES = 1 << 30
FREED_OBJECTS = (1 << 10, 64 << 10, 16 << 20)
BACK_SHARE = 0.02  # "back" is within this share of the freed bytes from where it started
PARTS = ("startup", "trivial", "metadata", "giveback")


def run_json(source: str, allocator: Allocator, *arguments: object) -> dict[str, Any]:
    """Run a program of bench/micro/ under `allocator` and read the JSON it prints."""
    command = [str(benchlib.compiled(source)), *map(str, arguments)]
    try:
        done = subprocess.run(
            command, env=allocator.environment(), capture_output=True, text=True, timeout=120
        )
    except subprocess.TimeoutExpired:
        raise BenchError("no end after 120 s") from None
    if done.returncode != 0:
        raise BenchError(f"{source}: exit code {done.returncode}: {done.stderr.strip()[-200:]}")
    if "cannot be preloaded" in done.stderr:
        raise BenchError(done.stderr.strip())
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def startup(chosen: list[Allocator], rounds: int, seed: int) -> dict[str, dict[str, Any]]:
    """Milliseconds that a trivial program takes under each allocator, and the difference to glibc."""
    # The loader's own search is the same for all, so only the preload and the settings are passed.
    environments = [
        " ".join(
            [f"LD_PRELOAD={a.preload()}"] * bool(a.preload())
            + [f"{name}={value}" for name, value in a.settings.items()]
        )
        for a in chosen
    ]
    timer = benchlib.compiled("micro/spawn_time.c", "-static")
    trivial = benchlib.compiled("micro/trivial.c")
    command = [str(timer), str(rounds), str(seed), str(trivial), "quiet", "--", *environments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise BenchError(done.stderr.strip())
    times: dict[str, list[float]] = defaultdict(list)
    for line in done.stdout.splitlines():
        number, ns = line.split()
        times[chosen[int(number)].name].append(int(ns) / 1e6)
    result: dict[str, dict[str, Any]] = {}
    for name, values in times.items():
        result[name] = {"median_ms": statistics.median(values), "samples_ms": values}
        if "glibc" in times:
            result[name]["over_glibc_ms"] = statistics.median(
                mine - base for mine, base in zip(values, times["glibc"], strict=True)
            )
    return result


def trivial(chosen: list[Allocator], rounds: int, seed: int) -> dict[str, dict[str, Any]]:
    """Resident size of the trivial program."""
    generator = random.Random(seed)
    seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for _ in range(rounds):
        for allocator in generator.sample(chosen, len(chosen)):
            seen[allocator.name].append(run_json("micro/trivial.c", allocator))
    return {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        | {"samples": runs}
        for name, runs in seen.items()
    }


def metadata(chosen: list[Allocator], rounds: int, seed: int) -> dict[str, dict[str, Any]]:
    """Share of resident bytes beyond the live ones."""
    generator = random.Random(seed)
    seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for _ in range(rounds):
        for allocator in generator.sample(chosen, len(chosen)):
            run = run_json("micro/live.c", allocator, LIVE_BYTES, LIVE_OBJECT)
            run["overhead"] = run["grown_kib"] * 1024 / run["live_bytes"] - 1
            seen[allocator.name].append(run)
    return {
        name: {"overhead": statistics.median(run["overhead"] for run in runs), "samples": runs}
        for name, runs in seen.items()
    }


def giveback(chosen: list[Allocator], seconds: float, seed: int) -> dict[str, dict[str, Any]]:
    """Time from the last free until the resident size is back, by object size."""
    generator = random.Random(seed)
    result: dict[str, dict[str, Any]] = defaultdict(dict)
    for size in FREED_OBJECTS:
        for allocator in generator.sample(chosen, len(chosen)):
            run = run_json("micro/giveback.c", allocator, FREED_BYTES, size, seconds)
            limit = run["before_kib"] + BACK_SHARE * FREED_BYTES / 1024
            run["back_ms"] = next((at for at, kib in run["series"] if kib <= limit), None)
            run["left_kib"] = run["series"][-1][1] - run["before_kib"]
            result[allocator.name][str(size)] = run
    return result


def human(size: int) -> str:
    return f"{size >> 20} MiB" if size >= MIB else f"{size >> 10} KiB"


def give_back_cell(run: dict[str, Any] | None, seconds: float) -> str:
    if run is None:
        return "—"
    if run["back_ms"] is None:
        return f"not in {seconds:.0f} s ({run['left_kib'] / 1024:.0f} MiB left)"
    return f"{run['back_ms'] / 1e3:.2f} s"


def table(chosen: list[Allocator], results: dict[str, Any], seconds: float) -> Table:
    shown = Table(title="Footprint and start-up; medians of fresh processes")
    shown.add_column("allocator")
    shown.add_column("start-up, ms")
    shown.add_column("over glibc, ms")
    shown.add_column("trivial RSS, KiB")
    shown.add_column("of that written, KiB")
    shown.add_column(f"beyond {LIVE_BYTES // MIB} MiB live in {LIVE_OBJECT} B")
    for size in FREED_OBJECTS:
        shown.add_column(f"1 GiB in {human(size)} back after")
    for column in shown.columns[1:]:
        column.justify = "right"
    for allocator in chosen:
        name = allocator.name
        start = results.get("startup", {}).get(name, {})
        small = results.get("trivial", {}).get(name, {})
        extra = results.get("metadata", {}).get(name, {})
        back = results.get("giveback", {}).get(name, {})
        shown.add_row(
            name,
            f"{start['median_ms']:.3f}" if start else "—",
            f"{start['over_glibc_ms']:+.3f}" if "over_glibc_ms" in start else "—",
            f"{small['rss_kib']:.0f}" if small else "—",
            f"{small['private_dirty_kib']:.0f}" if small else "—",
            f"{extra['overhead'] * 100:.2f} %" if extra else "—",
            *(give_back_cell(back.get(str(size)), seconds) for size in FREED_OBJECTS),
        )
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--lib", type=Path, default=benchlib.LIBRARY, help="libbrimful.so to use")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=400, help="start-up runs per allocator")
    parser.add_argument("--samples", type=int, default=9, help="other runs per allocator")
    parser.add_argument("--seconds", type=float, default=4, help="how long to wait for memory back")
    parser.add_argument("--allocators", default="", help="some of them, comma separated")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31)
    parser.add_argument("--dry", action="store_true", help="do not write into bench/results/")
    options = parser.parse_args()
    parts = options.parts.split(",")
    if set(parts) - set(PARTS):
        parser.error(f"--parts: only {', '.join(PARTS)}")
    facts = benchlib.environment()
    try:
        chosen = benchlib.choose(benchlib.allocators(options.lib.absolute()), options.allocators)
    except BenchError as error:
        print(f"metrics: {error}", file=sys.stderr)
        return 2
    failed = {a.name: f"not found: {a.library}" for a in chosen if not a.available()}
    usable = [a for a in chosen if a.name not in failed]
    # An allocator that cannot run the simplest program at all must not end the whole measurement.
    for allocator in list(usable):
        try:
            run_json("micro/trivial.c", allocator)
        except BenchError as error:
            failed[allocator.name] = str(error)
            usable.remove(allocator)
    results: dict[str, Any] = {}
    jobs = {
        "startup": lambda: startup(usable, options.rounds, options.seed),
        "trivial": lambda: trivial(usable, options.samples, options.seed),
        "metadata": lambda: metadata(usable, min(options.samples, 3), options.seed),
        "giveback": lambda: giveback(usable, options.seconds, options.seed),
    }
    for part in parts:
        print(f"measuring: {part}", file=sys.stderr, flush=True)
        try:
            results[part] = jobs[part]()
        except (BenchError, subprocess.TimeoutExpired) as error:
            failed[part] = str(error)
    console = Console()
    if not console.is_terminal:
        console = Console(width=150)
    console.print(table(usable, results, options.seconds))
    for name, reason in failed.items():
        console.print(f"{name}: not measured: {reason}", highlight=False, markup=False)
    if not options.dry:
        path = benchlib.RESULTS / f"metrics-{benchlib.stamp()}.json"
        benchlib.save_json(
            path,
            {
                "what": "bench/metrics.py",
                "environment": facts,
                "allocators": {allocator.name: allocator.describe() for allocator in chosen},
                "options": {
                    key: getattr(options, key) for key in ("rounds", "samples", "seconds", "seed")
                },
                "not_measured": failed,
                "results": results,
            },
        )
        print(f"Raw data: {benchlib.path_for_record(path)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
