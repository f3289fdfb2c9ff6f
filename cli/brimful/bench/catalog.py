# SPDX-License-Identifier: MIT
"""The workloads: ours, real programs, the user's own command.

Ours are described in bench/workloads/*.toml, beside their sources, and are compiled on first use
into build/bench/. A preset is a selection of them with a scale of the work and a budget of time.
An entry with a sweep becomes one cell per point, so that every point is measured like any other row.

An entry may name figures of its own, which the workload prints under "extra": each with title, unit
and, where the project has promised one, a goal. They reach all tables in the same way as the rest.
"""

from __future__ import annotations

import fnmatch
import math
import os
import re
import shutil
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import locate
from . import building
from .model import Cell, Metric

# No builtins: the compiler knows what malloc does and would drop a pair whose object is not used.
FLAGS = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
FLAGS += [f"-fno-builtin-{name}" for name in ("malloc", "calloc", "realloc", "free")]
KEYS = {
    *("name", "program", "arguments", "threads", "family", "title", "source", "shows"),
    *("presets", "figure", "sweep", "memory", "timeout_s", "latency"),
    *("figures", "scales", "rounds"),
}
FIGURE_KEYS = {"key", "title", "unit", "goal"}


class CatalogError(Exception):
    """A workload does not exist, cannot be built, or is described wrongly."""


@dataclass(frozen=True)
class Preset:
    """How much work, for how long, and when a row is known well enough."""

    name: str
    scale: float  # of the work of one sample
    budget_s: float
    target: float  # half width of the interval of a ratio at which a row is done
    least_rounds: int
    most_rounds: int
    curves: int  # runs with memory over time, per allocator and row that asks for it
    callgrind: bool  # instructions by callgrind where the processor's counters are closed
    allocators: str  # unless the user chooses: "few", "main", "all", …; see allocators.of_preset()
    contention: int = 0  # runs for lock counters, per row and build of brimful

    @property
    def every_point(self) -> bool:
        """Whether a sweep has all of its points, or the few that show its shape."""
        return self.name in ("full", "concurrency")


PRESETS = {
    "quick": Preset("quick", 0.3, 140, 0.03, 5, 7, 0, False, "few"),
    "default": Preset("default", 0.25, 45 * 60, 0.02, 5, 15, 1, False, "main", 1),
    "full": Preset("full", 1, 6 * 3600, 0.01, 10, 40, 3, True, "all", 3),
    "concurrency": Preset("concurrency", 0.5, 40 * 60, 0.02, 5, 10, 0, False, "threads", 3),
    "memory": Preset("memory", 0.25, 15 * 60, 0.02, 1, 5, 0, False, "memory"),
    "league": Preset("league", 0.3, math.inf, 0.03, 5, 10, 0, False, "league"),
    "real": Preset("real", 1, 45 * 60, 0.02, 5, 15, 1, False, "main"),
    "command": Preset("command", 1, 30 * 60, 0.02, 5, 30, 1, False, "main"),
}


@dataclass(frozen=True)
class Work:
    """A cell and what the engine must know to run it."""

    cell: Cell
    timeout_s: float = 60
    memory: bool = False  # sample its memory over time, in runs of their own
    rounds: int | None = None  # at most, where a run is long and its figure hardly varies


def workload_folder() -> Path:
    return Path(locate.project_root()) / "bench" / "workloads"


def binary_folder() -> Path:
    return Path(locate.project_root()) / "build" / "bench"


def cpus() -> int:
    """Threads of a workload that wants as many as there are CPUs; at least 2, or nothing meets."""
    return max(2, len(os.sched_getaffinity(0)))


def entries() -> list[dict[str, Any]]:
    """All entries of all catalog files, in order. Raises CatalogError."""
    found: list[dict[str, Any]] = []
    for path in sorted(workload_folder().glob("*.toml")):
        try:
            data = tomllib.loads(path.read_text())
        except tomllib.TOMLDecodeError as error:
            raise CatalogError(f"{path}: {error}") from None
        for entry in data.get("workload", []):
            unknown = set(entry) - KEYS
            if unknown:
                raise CatalogError(f"{path}: {entry.get('name')}: unknown {', '.join(unknown)}")
            for figure in entry.get("figures", []):
                if not {"key", "title", "unit"} <= set(figure) <= FIGURE_KEYS:
                    raise CatalogError(f"{path}: {entry.get('name')}: malformed figure {figure}")
            found.append(entry)
    names = [entry["name"] for entry in found]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise CatalogError(f"workloads of one name: {', '.join(sorted(repeated))}")
    return found


def works(preset: Preset) -> list[Work]:
    """The rows of a preset (not of `real` and `command`, whose rows come from elsewhere)."""
    chosen = [entry for entry in entries() if preset.name in entry["presets"]]
    return [work for entry in chosen for work in expand(entry, preset)]


def asked_for(preset: Preset, patterns: str) -> list[Work]:
    """The rows of `preset` and those that `patterns` names, whether or not the preset has them.

    A sweep that is named has all of its points. Raises CatalogError.
    """
    wanted = _patterns(patterns)
    found = []
    for entry in entries():
        every = expand(entry, preset, every_point=True)
        if any(_fits(pattern, _own_names(work)) for pattern in wanted for work in every):
            found += every
        elif preset.name in entry["presets"]:
            found += expand(entry, preset)
    return found


def expand(entry: dict[str, Any], preset: Preset, *, every_point: bool = False) -> list[Work]:
    """One Work for a plain entry, one per point for a sweep."""
    sweep = entry.get("sweep")
    if sweep is None:
        return [_work(entry, preset, entry["name"], [], _threads(entry))]
    all_points = sweep.get("full", sweep["values"])
    few_points = sweep.get(preset.name, sweep["values"])
    points = all_points if every_point or preset.every_point else few_points
    result = []
    for point in points:
        by_threads = sweep["argument"] == "--threads"
        more = [] if by_threads else [sweep["argument"], str(point)]
        threads = int(point) if by_threads else _threads(entry)
        name = f"{entry['name']}@{point}"
        result.append(_work(entry, preset, name, more, threads, sweep["axis"], float(point)))
    return result


def select(available: Sequence[Work], patterns: str) -> list[Work]:
    """Rows whose name, workload or family fits one of the comma-separated patterns, in which * and
    ? stand for any text and any character. Raises CatalogError.
    """
    wanted = _patterns(patterns)
    if not wanted:
        raise CatalogError("--workloads: the list is empty")
    for pattern in wanted:
        if not any(_fits(pattern, _names(work)) for work in available):
            known = dict.fromkeys(work.cell.workload for work in available)
            raise CatalogError(f"no workload {pattern!r}; there are: {', '.join(known)}")
    return [work for work in available if any(_fits(pattern, _names(work)) for pattern in wanted)]


def user_command(command: Sequence[str], timeout_s: float) -> Work:
    """The row of `bench -- COMMAND`. Raises CatalogError."""
    program = shutil.which(command[0])
    if program is None:
        raise CatalogError(f"{command[0]}: not found, or not executable")
    name = os.path.basename(command[0])
    title = " ".join(command)
    absolute = (os.path.abspath(program), *command[1:])
    cell = Cell(name, name, "command", title, command=absolute, threads=0, figure="wall_s")
    return Work(cell, timeout_s, memory=True)


def compile_programs(cells: Iterable[Cell]) -> None:
    """Compile what these cells run, where a source is newer than its binary. Raises CatalogError."""
    names = {Path(cell.command[0]).name for cell in cells if _is_ours(cell)}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_compile, sorted(names)))


def _is_ours(cell: Cell) -> bool:
    return bool(cell.command) and Path(cell.command[0]).parent == binary_folder()


def _patterns(text: str) -> list[str]:
    return [pattern.strip() for pattern in text.split(",") if pattern.strip()]


def _fits(pattern: str, names: set[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


def _own_names(work: Work) -> set[str]:
    return {work.cell.name, work.cell.workload}


def _names(work: Work) -> set[str]:
    return _own_names(work) | {work.cell.family}


def _threads(entry: dict[str, Any]) -> int:
    wanted = entry.get("threads", 1)
    return cpus() if wanted == "cpus" else int(wanted)


def _work(
    entry: dict[str, Any],
    preset: Preset,
    name: str,
    more: list[str],
    threads: int,
    axis: str = "",
    at: float = 0,
) -> Work:
    arguments = [str(argument) for argument in entry.get("arguments", [])]
    scale = float(entry.get("scales", {}).get(preset.name, preset.scale))
    if "--scale" in arguments:
        place = arguments.index("--scale") + 1
        arguments[place] = f"{float(arguments[place]) * scale:g}"
    else:
        arguments += ["--scale", f"{scale:g}"]
    program = str(binary_folder() / entry["program"])
    cell = Cell(
        name=name,
        workload=entry["name"],
        family=entry["family"],
        title=entry["title"],
        source=entry["source"],
        shows=entry["shows"],
        command=(program, *arguments, *more, "--threads", str(threads)),
        threads=threads,
        axis=axis,
        at=at,
        figure=entry.get("figure", "seconds"),
        figures=tuple(Metric(**figure) for figure in entry.get("figures", [])),
    )
    return Work(
        cell,
        timeout_s=float(entry.get("timeout_s", 60)),
        memory=bool(entry.get("memory", False)),
        rounds=entry.get("rounds"),
    )


def _compile(name: str) -> None:
    source = workload_folder() / f"{name.replace('-', '_')}.cpp"
    text = source.read_text() if source.exists() else ""
    links = " ".join(re.findall(r"^// link: (.+)$", text, re.MULTILINE)).split()
    try:
        building.built(binary_folder() / name, source, ["g++", *FLAGS], links)
    except building.BuildError as error:
        raise CatalogError(str(error)) from None
