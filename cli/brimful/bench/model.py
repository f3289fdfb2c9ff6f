# SPDX-License-Identifier: MIT
"""What a result file says: the data of one run of the bench, and how it becomes JSON and back.

A result holds raw data only (who, where, each sample); everything that can be computed from those
(ratios, winners, means) is computed when it is shown, by `summary`, so a better formula or a fixed
mistake also reaches old files. The format is versioned by SCHEMA and documented in
docs/bench-format.md; a reader refuses a file of another major version instead of guessing.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from .. import locate

SCHEMA = "brimful-bench/1"


class BenchError(Exception):
    """Something cannot be measured, built or read; the message says what and why."""


class ResultError(BenchError):
    """A result file cannot be read; the message says which and why."""


class Status(StrEnum):
    """How one run of one program ended. Only OK carries figures that may be compared."""

    OK = "ok"
    FAILED = "failed"  # exit code other than 0, or its own check of its results
    CRASHED = "crashed"  # ended by a signal
    TIMED_OUT = "timed out"
    NOT_LOADED = "not loaded"  # another allocator than the wanted one served the process
    MISSING = "missing"  # the allocator, or the program, is not on this machine


@dataclass(frozen=True)
class Metric:
    """A figure of a sample: less is better for all of them."""

    key: str
    title: str
    unit: str  # "s", "KiB", "MiB", "count", "ns", "ratio", "percent"
    goal: float | None = None  # what it has to stay below, if the project has promised that


METRICS = (
    Metric("seconds", "time of the measured part", "s"),
    Metric("wall_s", "wall time of the process", "s"),
    Metric("user_s", "user time", "s"),
    Metric("system_s", "system time", "s"),
    Metric("peak_rss_kib", "peak resident size", "KiB"),
    Metric("mean_rss_kib", "mean resident size", "KiB"),
    Metric("idle_rss_kib", "resident size after idling", "KiB"),
    Metric("peak_pss_kib", "peak proportional size", "KiB"),
    Metric("huge_share", "share of memory in huge pages", "ratio"),
    Metric("ullage", "peak resident size over peak live bytes", "ratio"),
    Metric("minor_faults", "minor page faults", "count"),
    Metric("major_faults", "major page faults", "count"),
    Metric("page_faults", "page faults taken, populated pages left out", "count"),
    Metric("voluntary_switches", "voluntary context switches", "count"),
    Metric("involuntary_switches", "involuntary context switches", "count"),
    Metric("instructions", "instructions", "count"),
    Metric("cycles", "cycles", "count"),
    Metric("cache_misses", "cache misses", "count"),
    Metric("branch_misses", "branch misses", "count"),
)
METRIC = {metric.key: metric for metric in METRICS}
TIME = "seconds"
# A cell's own figure that was counted (see counted): it has no noise, so one sample says all.
COUNTED = "instructions_per_operation"
MEMORY = "peak_rss_kib"


@dataclass(frozen=True)
class Allocator:
    """One column of a comparison: a library to preload and the settings it runs under."""

    name: str
    title: str = ""
    version: str = ""
    origin: str = ""  # "Debian package x", "crate y 1.2", "this checkout", "--lib"
    library: str = ""  # absolute path when running; "" is what the program has by itself
    sha256: str = ""
    settings: dict[str, str] = field(default_factory=dict)  # environment it needs to run this way
    mode: str = ""  # what it says of itself, e.g. which caches are in use
    missing: str = ""  # why it cannot run here; "" if it can
    ours: bool = False  # a build of brimful: the others are its rivals


@dataclass(frozen=True)
class Cell:
    """One row of a comparison: a program with its arguments, at one point of a sweep if it has one."""

    name: str  # "larson", "thread-sweep@64"
    workload: str  # "larson", "thread-sweep"
    family: str  # threads, single, compute, large, memory, latency, sweep, start, program, command
    title: str = ""
    source: str = ""  # what it imitates and where that is described
    shows: str = ""  # the property of an allocator that it is about
    command: tuple[str, ...] = ()
    threads: int = 1  # 0: unknown
    axis: str = ""  # of a sweep: "threads", "size"
    at: float = 0  # the point on the axis
    figure: str = TIME  # what is compared as its time: "seconds", "wall_s", or one of `extra`
    missing: str = ""  # why it cannot run here, e.g. a program that is not installed
    figures: tuple[Metric, ...] = ()  # further ones of this row, by their keys in Sample.extra


@dataclass(frozen=True)
class Sample:
    """One fresh process. `round` pairs it with the other allocators' samples of the same round."""

    cell: str
    allocator: str
    round: int
    status: Status
    reason: str = ""  # of every status but OK: one line
    again: bool = False  # the second run of the same allocator in its round: the A/A pair
    metrics: dict[str, float] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)  # further figures of the workload itself
    served_by: tuple[str, ...] = ()  # files that hold malloc in the measured processes
    instructions_by: str = ""  # "perf" or "callgrind" when metrics has instructions


@dataclass(frozen=True)
class Phase:
    """A moment that a workload names."""

    name: str
    at_s: float


@dataclass(frozen=True)
class Curve:
    """Memory over time of one run made for that purpose (its time is not compared)."""

    cell: str
    allocator: str
    seconds: tuple[float, ...]
    rss_kib: tuple[float, ...]
    pss_kib: tuple[float, ...]
    huge_kib: tuple[float, ...]
    phases: tuple[Phase, ...] = ()


@dataclass(frozen=True)
class Histogram:
    """Latency of one operation in one band of sizes: [nanoseconds, count] of each filled bucket."""

    cell: str
    allocator: str
    operation: str  # malloc, free, realloc
    band: str  # bytes, "65-512"
    counts: tuple[tuple[float, int], ...]
    max_ns: float


@dataclass(frozen=True)
class LockCounts:
    """What the locks of one kind counted in one run."""

    acquisitions: float = 0
    contended: float = 0  # acquisitions that found the lock taken and waited
    sleeps: float = 0  # calls of the kernel to wait
    wait_ns: float = 0  # in contended acquisitions
    busy: float = 0  # attempts that found the lock taken and went elsewhere


@dataclass(frozen=True)
class Contention:
    """The lock counters of one run made for that purpose (its time is not compared)."""

    cell: str
    allocator: str
    operations: float = 0  # of the workload: a malloc and its free are one
    processes: int = 0  # that printed counters; they are summed
    locks: dict[str, LockCounts] = field(default_factory=dict)  # by kind: "heap", "central", …
    missing: str = ""  # why there are none


@dataclass
class Result:
    """One run of the bench."""

    environment: dict[str, Any]
    options: dict[str, Any]  # preset, seed, budget, target, the command line as typed
    allocators: list[Allocator]
    cells: list[Cell]
    samples: list[Sample] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    histograms: list[Histogram] = field(default_factory=list)
    contention: list[Contention] = field(default_factory=list)
    finished: bool = False  # false: interrupted, or out of budget before every cell had its turn
    schema: str = SCHEMA

    def allocator(self, name: str) -> Allocator:
        return next(allocator for allocator in self.allocators if allocator.name == name)

    def cell(self, name: str) -> Cell:
        return next(cell for cell in self.cells if cell.name == name)


def save(result: Result, path: Path) -> None:
    """See write."""
    write(dataclasses.asdict(result), path)


def write(data: dict[str, Any], path: Path) -> None:
    """Write the file in one step: whoever reads meanwhile, or after a loss of power, sees the old
    one or the new one.

    Paths inside the checkout are written relative to it: they mean the same on another machine, and
    say nothing about this one. Raises an OSError that names the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    parts = [f"{json.dumps(key)}: {_lines(value)}" for key, value in data.items()]
    text = "{" + ",\n".join(parts) + "}\n"
    try:
        with fresh.open("w") as file:
            file.write(text.replace(f"{locate.project_root()}/", ""))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def _lines(value: object) -> str:
    """JSON with a line for each item: small, and a difference shows what differs."""
    if isinstance(value, dict) and value:
        items = (f"{json.dumps(key)}: {_text(item)}" for key, item in value.items())
        return "{\n" + ",\n".join(items) + "\n}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(map(_text, value)) + "\n]"
    return _text(value)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def load(path: Path) -> Result:
    """Read a result file. Raises ResultError."""
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise ResultError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path} is not JSON: {error}") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema == SCHEMA and "study" in data:
        name = data["study"]
        raise ResultError(f"{path} is of a study: `brimful bench study {name} --write` shows it")
    if schema != SCHEMA:
        raise ResultError(f"{path} is not a result of this bench ({schema!r}, not {SCHEMA!r})")
    try:
        return Result(
            environment=data["environment"],
            options=data["options"],
            allocators=[Allocator(**item) for item in data["allocators"]],
            cells=[_cell(item) for item in data["cells"]],
            samples=[_sample(item) for item in data["samples"]],
            curves=[_curve(item) for item in data["curves"]],
            histograms=[_histogram(item) for item in data["histograms"]],
            contention=[_contention(item) for item in data.get("contention", [])],
            finished=data["finished"],
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ResultError(f"{path} is damaged: {error!r}") from None


def _cell(item: dict[str, Any]) -> Cell:
    figures = tuple(Metric(**one) for one in item.get("figures", []))
    return Cell(**{**item, "command": tuple(item["command"]), "figures": figures})


def _contention(item: dict[str, Any]) -> Contention:
    locks = {name: LockCounts(**counts) for name, counts in item["locks"].items()}
    return Contention(**{**item, "locks": locks})


def _sample(item: dict[str, Any]) -> Sample:
    known = {"status": Status(item["status"]), "served_by": tuple(item["served_by"])}
    return Sample(**{**item, **known})


def _curve(item: dict[str, Any]) -> Curve:
    columns = {key: tuple(item[key]) for key in ("seconds", "rss_kib", "pss_kib", "huge_kib")}
    return Curve(**{**item, **columns, "phases": tuple(Phase(**one) for one in item["phases"])})


def _histogram(item: dict[str, Any]) -> Histogram:
    return Histogram(**{**item, "counts": tuple((value, n) for value, n in item["counts"])})
