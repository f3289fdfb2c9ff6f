# SPDX-License-Identifier: MIT
"""One fresh process under one allocator, measured by bench/micro/measure.c, and what became of it.

A sample is OK only if everything that could be checked was as it should be: the program ended by
itself with 0 and in time, the allocator under test served it (see proof), and, if it is one of our
workloads, it printed its line of JSON (see bench/workloads/workload.h), with no failed allocation.
Everything else is a status with one line of reason, so that no failure becomes a number.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import locate
from . import contention, launch, proof
from .launch import Failure, Run
from .model import (
    METRIC,
    TIME,
    Allocator,
    Cell,
    Contention,
    Curve,
    Histogram,
    Phase,
    Sample,
    Status,
)

CALLGRIND_TIMEOUT_S = 1800
IDLE_END = "idle-end"  # the phase that a workload names when it has idled
NO_RSEQ = "valgrind has no rseq: brimful ran its front end per thread"


def run(
    cell: Cell,
    allocator: Allocator,
    number: int,
    *,
    timeout_s: float,
    cpus: str | None = None,
    again: bool = False,
    sample_ms: int | None = None,
    around: Sequence[str] = (),
) -> tuple[Sample, Curve | None, list[Histogram]]:
    """Run `cell` once under `allocator`; `number` is the round.

    With `sample_ms`, memory is looked at that often and a Curve comes back; the times of such a run
    are not for comparing. `cpus` pins the command, as in "0,2-3". `around` is a command that runs the
    launcher (of a driver, its server's). Raises LauncherError.
    """
    done = Run()
    status, reason = Status.OK, ""
    metrics: dict[str, float] = {}
    extra: dict[str, float] = {}
    try:
        if allocator.library and not os.path.exists(allocator.library):
            raise Failure(Status.MISSING, f"no library at {allocator.library}")
        done = launch.run(cell, allocator, launch.How(timeout_s, cpus, sample_ms, around))
        _check_allocator(cell, allocator, done)
        extra = _extra(done.line)
        metrics = _metrics(cell, done, extra)
    except Failure as failure:
        status, reason = failure.status, str(failure)
    sample = Sample(
        cell=cell.name,
        allocator=allocator.name,
        round=number,
        status=status,
        reason=reason,
        again=again,
        metrics=metrics,
        extra=extra,
        served_by=_served_by(done),
        instructions_by="perf" if "instructions" in metrics else "",
    )
    if status is not Status.OK:
        return sample, None, []
    curve = _curve(cell, allocator, done) if sample_ms is not None else None
    return sample, curve, _histograms(cell, allocator, done.line)


# --- what became of it ----------------------------------------------------------------------------


def _check_allocator(cell: Cell, allocator: Allocator, done: Run) -> None:
    """Raises Failure unless the allocator served the program."""
    if launch.is_workload(cell):
        by = done.line.get("malloc")
        if not isinstance(by, str) or not by:
            raise Failure(Status.FAILED, "printed no result")
        if not proof.is_served(by, allocator.library):
            raise Failure(Status.NOT_LOADED, f"malloc was served by {by}")
        return
    root = "" if launch.is_driver(cell) else shutil.which(cell.command[0]) or ""
    objection = proof.objection(done.measured["processes"], allocator.library, root)
    if objection:
        said = f": {done.last_words}" if done.last_words else ""
        raise Failure(Status.NOT_LOADED, f"{objection}{said}")


def _figure(value: Any, what: str) -> float:
    """A finite number of at least 0, or Failure."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Failure(Status.FAILED, f"reported no {what}")
    if not math.isfinite(value) or value < 0:
        raise Failure(Status.FAILED, f"reported {value} as {what}")
    return float(value)


def _extra(line: dict[str, Any]) -> dict[str, float]:
    found = line.get("extra", {})
    if not isinstance(found, dict):
        raise Failure(Status.FAILED, "reported malformed extra figures")
    extra = {str(name): _figure(value, str(name)) for name, value in found.items()}
    if "operations" in line:
        extra["operations"] = _figure(line["operations"], "operations")
    return extra


def _metrics(cell: Cell, done: Run, extra: dict[str, float]) -> dict[str, float]:
    """Every figure of model.METRICS that this run gave. Raises Failure for an impossible one."""
    every = done.measured | {k: v for k, v in done.measured["counters"].items() if v is not None}
    metrics = {key: float(every[key]) for key in METRIC if key in every}
    line = done.line
    if line:
        failed = _figure(line.get("failed_allocations", 0), "failed_allocations")
        if failed > 0:
            raise Failure(Status.FAILED, f"{failed:.0f} allocations failed")
        live = _figure(line.get("peak_live_bytes", 0), "peak_live_bytes")
        if live > 0:
            metrics["ullage"] = metrics["peak_rss_kib"] * 1024 / live
    metrics[TIME] = _time(cell, line, metrics, extra)
    return metrics | _memory_metrics(done)


def _time(
    cell: Cell, line: dict[str, Any], metrics: dict[str, float], extra: dict[str, float]
) -> float:
    """The figure that is compared as this cell's time."""
    if cell.figure == "wall_s" or (cell.figure == TIME and not line):
        return metrics["wall_s"]
    if cell.figure == TIME:
        value = _figure(line.get("seconds"), "seconds")
        if value == 0:
            raise Failure(Status.FAILED, "reported no time at all")
        return value
    return _figure(extra.get(cell.figure), cell.figure)


# --- memory over time -----------------------------------------------------------------------------


def _phases(line: dict[str, Any]) -> tuple[Phase, ...]:
    return tuple(Phase(str(item["name"]), float(item["at_s"])) for item in line.get("phases", []))


def _memory_metrics(done: Run) -> dict[str, float]:
    """What the series says in single figures; nothing if there is none."""
    series = done.measured.get("series")
    if not series or not series["t_s"]:
        return {}
    times, rss, huge = series["t_s"], series["rss_kib"], series["huge_kib"]
    # Each point stands for the time since the one before it.
    spans = [now - before for before, now in zip([0.0, *times], times, strict=False)]
    held = sum(span * kib for span, kib in zip(spans, rss, strict=True))
    found = {"mean_rss_kib": held / sum(spans), "peak_pss_kib": float(max(series["pss_kib"]))}
    in_huge = sum(span * kib for span, kib in zip(spans, huge, strict=True))
    found["huge_share"] = in_huge / held if held > 0 else 0.0
    idle_end = next((p.at_s for p in _phases(done.line) if p.name == IDLE_END), None)
    if idle_end is not None:
        until_then = [kib for at, kib in zip(times, rss, strict=True) if at <= idle_end]
        if until_then:
            found["idle_rss_kib"] = float(until_then[-1])
    return found


def _curve(cell: Cell, allocator: Allocator, done: Run) -> Curve | None:
    series = done.measured.get("series")
    if not series or not series["t_s"]:
        return None
    return Curve(
        cell=cell.name,
        allocator=allocator.name,
        seconds=tuple(series["t_s"]),
        rss_kib=tuple(series["rss_kib"]),
        pss_kib=tuple(series["pss_kib"]),
        huge_kib=tuple(series["huge_kib"]),
        phases=_phases(done.line),
    )


def _histograms(cell: Cell, allocator: Allocator, line: dict[str, Any]) -> list[Histogram]:
    return [
        Histogram(
            cell=cell.name,
            allocator=allocator.name,
            operation=item["operation"],
            band=item["band"],
            counts=tuple((float(value), int(count)) for value, count in item["counts"]),
            max_ns=float(item["max_ns"]),
        )
        for item in line.get("histograms", [])
    ]


def _served_by(done: Run) -> tuple[str, ...]:
    """Files that hold malloc, as far as seen: what the workload says, and what was mapped."""
    said = [os.path.realpath(done.line["malloc"])] if done.line.get("malloc") else []
    mapped = [path for one in done.measured.get("processes", []) for path in one["allocators"]]
    return tuple(dict.fromkeys([*said, *mapped]))


# --- lock counters --------------------------------------------------------------------------------


def lock_counters(cell: Cell, allocator: Allocator, *, timeout_s: float) -> Contention:
    """What the locks of `allocator`, which is ours, counted in one run of one of our workloads.

    Without counters it says why. Raises LauncherError.
    """
    settings = contention.asked_for(allocator.settings)
    try:
        done = launch.run(cell, replace(allocator, settings=settings), launch.How(timeout_s))
        _check_allocator(cell, allocator, done)
        operations = _figure(done.line.get("operations"), "operations")
        if operations == 0:
            raise Failure(Status.FAILED, "the row counts no operations")
        processes, locks = contention.parse(done.errors)
    except (Failure, contention.UnreadableError) as failure:
        return Contention(cell.name, allocator.name, missing=str(failure))
    return Contention(cell.name, allocator.name, operations, processes, locks)


# --- instructions by callgrind --------------------------------------------------------------------


def instructions_by_callgrind(cell: Cell, allocator: Allocator) -> Sample | None:
    """Instructions of a single-threaded cell, counted by valgrind; None if that cannot be had.

    The count is exact but of another machine: valgrind has no rseq and serialises threads. The
    sample's reason says so where that changes what the allocator does. Processes that the command
    starts or becomes are counted too. About fifty times slower than a run.
    """
    if shutil.which("valgrind") is None or cell.threads != 1:
        return None
    with tempfile.TemporaryDirectory(prefix="brimful-bench-") as name:
        if not profile(cell, allocator, Path(name)):
            return None
        profiles = [path.read_text(errors="replace") for path in Path(name).glob("profile.*")]
    wanted = os.path.realpath(allocator.library) if allocator.library else ""
    counts = [re.search(r"^totals: (\d+)", text, re.MULTILINE) for text in profiles]
    if not counts or (wanted and not all(wanted in _objects(text) for text in profiles)):
        return None
    return Sample(
        cell=cell.name,
        allocator=allocator.name,
        round=0,
        status=Status.OK,
        reason=NO_RSEQ if allocator.ours else "",
        metrics={"instructions": float(sum(int(count[1]) for count in counts if count))},
        served_by=(wanted or proof.c_library(),),
        instructions_by="callgrind",
    )


def profile(cell: Cell, allocator: Allocator, folder: Path, beside: Sequence[str] = ()) -> bool:
    """Run the command under callgrind, with the libraries `beside` preloaded, too; False if that failed.

    It leaves in `folder` a file `profile.PID` for each process, and in `stdout` what was printed.
    """
    tool = ["valgrind", "--tool=callgrind", "--trace-children=yes", "--fair-sched=yes"]
    tool.append(f"--callgrind-out-file={folder}/profile.%p")
    environment = launch.clean_environment() | allocator.settings | {"TMPDIR": str(folder)}
    libraries = [one for one in (allocator.library, *beside) if one]
    environment["LD_PRELOAD"] = ":".join(locate.preloadable(one) for one in libraries)
    try:
        with (folder / "stdout").open("w") as output:
            done = subprocess.run(
                [*tool, *cell.command],
                env=environment,
                cwd=None if cell.family == "command" else folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                timeout=CALLGRIND_TIMEOUT_S,
            )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _objects(profile: str) -> set[str]:
    """Files whose code ran, by a profile of callgrind."""
    return {
        os.path.realpath(at) for at in re.findall(r"^c?ob=\(\d+\) (/.*)$", profile, re.MULTILINE)
    }
