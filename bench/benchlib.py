# SPDX-License-Identifier: MIT
"""What every measurement here shares: allocators, environment, compiling, statistics, saving.

Rules that all scripts follow, because a figure that breaks one of them is worth nothing:
every sample is a fresh process; allocators take turns in an order drawn anew for each round, so
that drift of the machine hits all alike; samples of one round are compared with each other (paired
ratios), and the median of those is given with a bootstrap interval; /proc/PID/maps proves which
library served each process; a library that is missing or fails is a declared cell, not a number.
"""

from __future__ import annotations

import csv
import datetime
import functools
import hashlib
import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "cli"))

# The package lives beside this folder, not on the path.
from brimful import locate  # noqa: E402
from brimful.bench import building, launch, machine  # noqa: E402

LIBRARY = ROOT / "build" / "release" / "libbrimful.so"
WORK = ROOT / "build" / "run"
RESULTS = ROOT / "bench" / "results"
RESAMPLES = 4000


class BenchError(Exception):
    """A measurement cannot be made; the message says why."""


# --- allocators ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Allocator:
    """One column of a comparison: a library to preload and the settings it runs under."""

    name: str
    library: Path | None = None  # None: what the program has by itself
    settings: dict[str, str] = field(default_factory=dict)
    package: str = ""

    def environment(self) -> dict[str, str]:
        """The caller's environment with this allocator's preload and settings, and no other's."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("LD_PRELOAD", "BRIMFUL"))}
        preload = {} if self.library is None else {"LD_PRELOAD": self.preload()}
        return kept | preload | self.settings

    def preload(self) -> str:
        """The library by a name that LD_PRELOAD can hold, or ""."""
        return "" if self.library is None else locate.preloadable(str(self.library))

    def available(self) -> bool:
        return self.library is None or self.library.exists()

    def front_end(self) -> str:
        """What brimful says of itself at start under these settings, or ""."""
        if not self.available():
            return ""
        conf = ",".join(filter(None, [self.settings.get("BRIMFUL_CONF", ""), "verbose:1"]))
        environment = self.environment() | {"BRIMFUL_CONF": conf}
        try:
            done = subprocess.run(
                ["ls", "/"], env=environment, capture_output=True, text=True, timeout=20
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        return done.stderr.strip()

    def describe(self) -> dict[str, Any]:
        """Path, version and checksum, for the record."""
        if self.library is None:
            return {"library": "the system's", "version": platform.libc_ver()[1]}
        if not self.available():
            return {"library": str(self.library), "missing": True}
        real = self.library.resolve()
        version = (
            machine.said(["dpkg-query", "-W", "-f=${Version}", self.package])
            if self.package
            else ""
        )
        return {
            "library": path_for_record(real),
            "version": version,
            "sha256": hashlib.sha256(real.read_bytes()).hexdigest(),
            "settings": self.settings,
        }


def system_library(name: str) -> Path:
    """Where Debian keeps `name` for this machine's architecture."""
    return Path("/usr/lib") / f"{platform.machine()}-linux-gnu" / name


def allocators(library: Path = LIBRARY) -> list[Allocator]:
    """Everything the figures compare: both front ends of brimful, and Debian's own rivals."""
    return [
        Allocator("glibc"),
        Allocator("jemalloc", system_library("libjemalloc.so.2"), package="libjemalloc2"),
        Allocator(
            "tcmalloc",
            system_library("libtcmalloc_minimal.so.4"),
            package="libtcmalloc-minimal4",
        ),
        Allocator("mimalloc", system_library("libmimalloc.so.2.0"), package="libmimalloc2.0"),
        Allocator("brimful percpu", library, {"BRIMFUL_CONF": "front_end:percpu"}),
        Allocator("brimful thread", library, {"BRIMFUL_CONF": "front_end:thread"}),
    ]


def choose(available: list[Allocator], names: str) -> list[Allocator]:
    """The allocators whose names are in the comma-separated list `names`; all if it is empty."""
    if not names:
        return available
    known = {allocator.name: allocator for allocator in available}
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise BenchError(f"no allocator {name!r}; there are: {', '.join(known)}")
    return [known[name] for name in wanted]


# --- the machine --------------------------------------------------------------------------------


def path_for_record(path: Path) -> str:
    """A path that means the same on another machine: relative to the checkout if it is inside."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def environment() -> dict[str, Any]:
    """The facts about this machine and checkout that a figure depends on."""
    facts = machine.environment()
    return facts | {"cpus": facts["cpus_allowed"]}


# --- programs -----------------------------------------------------------------------------------


@functools.cache
def compiled(source: str, *flags: str) -> Path:
    """Compile bench/`source` into build/run/ unless the binary there is newer; returns its path."""
    path = ROOT / "bench" / source
    driver = ["g++", "-std=c++20"] if path.suffix == ".cpp" else ["gcc"]
    try:
        return building.built(WORK / path.stem, path, [*driver, "-O2", "-Wall", "-Wextra", *flags])
    except building.BuildError as error:
        raise BenchError(str(error)) from None


def measuring_program() -> Path:
    """The static launcher that measures a command (bench/micro/measure.c)."""
    try:
        return Path(launch.launcher())
    except launch.LauncherError as error:
        raise BenchError(str(error)) from None


def measure_command(
    allocator: Allocator,
    command: Sequence[str],
    *,
    variables: dict[str, str] | None = None,
    output: Path | None = None,
    timeout: float = 120,
) -> list[str]:
    """The command line that runs `command` under `allocator` and prints its costs as JSON."""
    line = [str(measuring_program()), "--timeout", str(timeout)]
    if allocator.library is not None:
        line += ["--preload", allocator.preload()]
    for name, value in {**allocator.settings, **(variables or {})}.items():
        line += ["--set", f"{name}={value}"]
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)  # in a fresh clone nothing has made it yet
        line += ["--stdout", str(output)]
    return [*line, "--", *command]


# --- statistics ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratio:
    """Median of paired ratios with its 95 % bootstrap interval."""

    median: float
    low: float
    high: float
    pairs: int

    def verdict(self) -> str:
        """What the interval allows one to say; of fewer than five pairs it is worth nothing."""
        if self.pairs < 5:
            return "no difference shown"
        if self.high < 1:
            return "less"
        return "more" if self.low > 1 else "no difference shown"

    def __str__(self) -> str:
        return f"{self.median:.3f} [{self.low:.3f} … {self.high:.3f}]"


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Ratio of samples taken in the same rounds; seeded, so the same data give the same answer."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True) if b > 0]
    if not ratios:
        return Ratio(math.nan, math.nan, math.nan, 0)
    generator = random.Random(len(ratios))
    medians = sorted(
        statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES)
    )
    return Ratio(
        statistics.median(ratios),
        medians[int(0.025 * RESAMPLES)],
        medians[int(0.975 * RESAMPLES) - 1],
        len(ratios),
    )


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


# --- records ------------------------------------------------------------------------------------


def stamp() -> str:
    """Date and time for file names."""
    return datetime.datetime.now().strftime("%Y-%m-%dT%H%M")


def save_json(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def save_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows that all have the same keys."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
