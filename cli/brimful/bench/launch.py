# SPDX-License-Identifier: MIT
"""Runs one command through the launcher (bench/micro/measure.c) and gathers what it left behind.

The environment is the caller's without anything that steers an allocator or the loader; the settings
of the allocator are put in afterwards. Programs (not the user's own command) run in a folder of
their own that is removed afterwards.

A driver (bench/programs/serve_*.py) is a program that measures another one itself: it starts a
server through the same launcher, loads it with a client, and prints the launcher's report under
"measured" in its line. The driver and its client then run on the system's malloc, and times, memory
and proof are those of the server alone; `seconds` is what the client saw. It learns what to do from
BENCH_MEASURE (the launcher and its arguments, one to a line) and prints nothing but the line.
"""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import locate
from . import building, proof
from .model import Allocator, BenchError, Cell, Status

# Variables by which allocators, the loader and Python choose how memory is had.
STEERING = re.compile(
    r"LD_(PRELOAD|AUDIT|DEBUG|BIND|TRACE|WARN)|BRIMFUL|BENCH_|MALLOC_|_?RJEM_|JE_|JEMALLOC|"
    r"TCMALLOC|HEAP(PROFILE|CHECK)|MIMALLOC|SCUDO|SNMALLOC|RPMALLOC|TBB_MALLOC|MESH_|"
    r"GLIBC_TUNABLES|PYTHONMALLOC|GLIBCXX_FORCE_NEW"
)
GRACE_S = 30  # for the launcher itself, beyond the command's time
REASON_LENGTH = 160
TAIL_BYTES = 1 << 22  # of standard output: the workload's line is the last


class LauncherError(BenchError):
    """Nothing can be measured here; the message says why."""


class Failure(BenchError):
    """A run does not count, and why."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class How:
    """The circumstances of a run."""

    timeout_s: float
    cpus: str | None = None  # to pin the command to, as in "0,2-3"
    sample_ms: int | None = None  # between two looks at its memory
    around: Sequence[
        str
    ] = ()  # a command that runs the launcher, such as a profiler's, and is silent


@dataclass(frozen=True)
class Run:
    """What a launched command left behind."""

    measured: dict[str, Any] = field(default_factory=dict)  # the launcher's report
    line: dict[str, Any] = field(default_factory=dict)  # the workload's own
    last_words: str = ""  # last line of standard error
    errors: str = ""  # all of it


def is_driver(cell: Cell) -> bool:
    """Whether the command measures its program itself."""
    named_so = any(Path(word).name.startswith("serve_") for word in cell.command[:2])
    return cell.family == "program" and named_so


def is_workload(cell: Cell) -> bool:
    """Whether the command is a program of ours that prints a line of JSON."""
    return cell.family not in ("program", "command")


def run(cell: Cell, allocator: Allocator, how: How) -> Run:
    """Run the command to its end, which must be a good one.

    Raises Failure if it did not end by itself, in time, with 0, and LauncherError.
    """
    # A server that was killed may still be writing while its folder is removed.
    with tempfile.TemporaryDirectory(prefix="brimful-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)  # a server that refuses to be root must get through as another user
        done = _call(cell, allocator, how, folder)
        try:
            measured = json.loads(done.stdout)
        except ValueError:
            said = last_line(done.stderr) or f"exit code {done.returncode}"
            raise Failure(Status.FAILED, f"cannot be launched: {said}") from None
        errors = (folder / "stderr").read_text(errors="replace")
        last_words = last_line(errors)
        reports = is_workload(cell) or is_driver(cell)
        line = find_line(folder / "stdout") if reports else {}
    _check_end(measured, last_words, how)
    if is_driver(cell):
        measured = line.get("measured")
        if not isinstance(measured, dict):
            raise Failure(Status.FAILED, "the driver printed no result")
        _check_end(measured, str(line.get("last_words", "")), how)
    return Run(measured, line, last_words, errors)


@functools.cache
def launcher() -> str:
    """Path of the static launcher, compiled if needed. Raises LauncherError."""
    root = Path(locate.project_root())
    source = root / "bench" / "micro" / "measure.c"
    compiler = ["gcc", "-O2", "-Wall", "-Wextra", "-static"]
    try:
        return str(building.built(root / "build" / "bench" / "measure", source, compiler))
    except building.BuildError as error:
        raise LauncherError(str(error)) from None


def clean_environment() -> dict[str, str]:
    """The caller's environment without what steers an allocator, the loader or this bench."""
    return {name: value for name, value in os.environ.items() if not STEERING.match(name)}


def environment(allocator: Allocator) -> dict[str, str]:
    """The environment of a program that is to run under `allocator` and tells its figures itself."""
    preload = {"LD_PRELOAD": locate.preloadable(allocator.library)} if allocator.library else {}
    return clean_environment() | preload | allocator.settings


def answer(allocator: Allocator, command: Sequence[object], timeout_s: float) -> dict[str, Any]:
    """The line of JSON that a program prints under `allocator`. Raises Failure."""
    words = [str(word) for word in command]
    name = Path(words[0]).name
    try:
        done = subprocess.run(
            words, env=environment(allocator), capture_output=True, text=True, timeout=timeout_s
        )
    except subprocess.TimeoutExpired:
        raise Failure(Status.TIMED_OUT, f"{name}: no end after {timeout_s:g} s") from None
    said = last_line(done.stderr)
    if done.returncode != 0:
        raise Failure(Status.FAILED, f"{name}: exit code {done.returncode}: {said}")
    if "cannot be preloaded" in done.stderr:
        raise Failure(Status.NOT_LOADED, said)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def measuring(
    allocator: Allocator,
    command: Sequence[str],
    output: Path,
    *,
    variables: Mapping[str, str] | None = None,
    timeout_s: float = 120,
) -> list[str]:
    """The command line that runs `command` under `allocator`, whose output goes to a file, and prints
    its costs as JSON."""
    output.parent.mkdir(parents=True, exist_ok=True)  # in a fresh clone nothing has made it yet
    preload = locate.preloadable(allocator.library) if allocator.library else ""
    line = [launcher(), "--timeout", str(timeout_s), "--stdout", str(output)]
    line += ["--preload", preload] if preload else []
    for name, value in {**allocator.settings, **(variables or {})}.items():
        line += ["--set", f"{name}={value}"]
    return [*line, "--", *command]


def _preload(cell: Cell, allocator: Allocator) -> str:
    """What LD_PRELOAD gets. A program that is not ours may bring an allocator: see proof."""
    if allocator.library:
        return locate.preloadable(allocator.library)
    return "" if is_workload(cell) else proof.c_library()


def _call(
    cell: Cell, allocator: Allocator, how: How, folder: Path
) -> subprocess.CompletedProcess[str]:
    timeout = ["--timeout", f"{how.timeout_s:g}"]
    outer = ["--cpus", how.cpus] if how.cpus else []
    inner = _inner_arguments(cell, allocator, how)
    environment = clean_environment()
    if is_driver(cell):
        environment["BENCH_MEASURE"] = "\n".join([*how.around, launcher(), *timeout, *inner])
        inner = []
    around = [] if is_driver(cell) else how.around
    line = [*around, launcher(), *timeout, *outer, *inner]
    line += ["--stdout", str(folder / "stdout"), "--stderr", str(folder / "stderr")]
    there = None
    if cell.family != "command":
        there = folder / "work"
        there.mkdir()
        environment["TMPDIR"] = str(there)
    try:
        done = subprocess.run(
            [*line, "--", *cell.command],
            env=environment,
            cwd=there,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=how.timeout_s + GRACE_S,
        )
    except subprocess.TimeoutExpired:
        raise Failure(Status.TIMED_OUT, f"no end after {how.timeout_s:g} s") from None
    if done.returncode == 130:
        raise KeyboardInterrupt
    return done


def _inner_arguments(cell: Cell, allocator: Allocator, how: How) -> list[str]:
    """What concerns the program under test, and not the driver around it."""
    preload = _preload(cell, allocator)
    arguments = ["--preload", preload] if preload else []
    for name, value in allocator.settings.items():
        arguments += ["--set", f"{name}={value}"]
    if how.sample_ms is not None:
        arguments += ["--sample-ms", str(how.sample_ms)]
    return arguments


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:REASON_LENGTH] if lines else ""


def find_line(output: Path) -> dict[str, Any]:
    """The last line of `output` that is a workload's JSON, or {}."""
    with output.open("rb") as file:
        file.seek(max(0, output.stat().st_size - TAIL_BYTES))
        tail = file.read().decode(errors="replace")
    for text in reversed(tail.splitlines()):
        if '"workload"' not in text:
            continue
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict) and "workload" in data:
            return data
    return {}


def _check_end(measured: dict[str, Any], last_words: str, how: How) -> None:
    """Raises Failure unless the program ended by itself, in time, with 0."""
    said = f": {last_words}" if last_words else ""
    if measured["timed_out"]:
        raise Failure(Status.TIMED_OUT, f"no end after {how.timeout_s:g} s{said}")
    number = measured["signal"]
    if number:
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        hint = " (out of memory?)" if number == signal.SIGKILL else ""
        raise Failure(Status.CRASHED, f"ended by {name}{hint}{said}")
    if measured["exit_code"] != 0:
        raise Failure(Status.FAILED, f"exit code {measured['exit_code']}{said}")
