# SPDX-License-Identifier: MIT
"""Several runs of `brimful bench`, one after the other: what run_concurrency.py and run_memory.py share.

Each kind of run reports into a folder of its own. Raw data goes into bench/results/, from where
bench/report.py writes docs/evaluation.md; of a short run it stays in build/, because it shows that
everything works and proves nothing. A kind that cannot be measured on this machine is named with the
reason, and the others run.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import benchlib


class CannotMeasureError(Exception):
    """This machine or user does not allow this kind of run; the message says why."""


@dataclass(frozen=True)
class Kind:
    """One run: what `brimful bench` is told, always, in a full run and in a short one."""

    arguments: Sequence[str]
    budget: str
    short: Sequence[str]
    # What has to be so while it runs; raises CannotMeasureError.
    around: Callable[[], AbstractContextManager[None]] = nullcontext


def _run(preset: str, kind: Kind, folder: Path, more: Sequence[str]) -> int:
    bench = [str(benchlib.ROOT / "brimful"), "bench", preset]
    with kind.around():
        return subprocess.run([*bench, *kind.arguments, *more, "--out", str(folder)]).returncode


def run(preset: str, kinds: Mapping[str, Kind], *, short: bool, more: Sequence[str] = ()) -> int:
    """All of `kinds`; the exit code is the worst of theirs."""
    stamp = benchlib.stamp()
    worst = 0
    for name, kind in kinds.items():
        print(f"== {name}", flush=True)
        folder = benchlib.ROOT / "build" / "bench" / "results" / f"{name}-{stamp}"
        lengths = kind.short if short else ["--budget", kind.budget]
        try:
            code = _run(preset, kind, folder, [*lengths, *more])
        except CannotMeasureError as error:
            print(f"{name}: not measured: {error}", flush=True)
            continue
        if code not in (0, 1):  # 1: some cell failed, which the result says
            return code
        worst = max(worst, code)
        if not short:
            kept = benchlib.RESULTS / f"{name}-{stamp}.json"
            shutil.copy(folder / "results.json", kept)
            print(f"Raw data: {benchlib.path_for_record(kept)}")
    return worst


def main(description: str, preset: str, kinds: Mapping[str, Kind]) -> int:
    """The command line of such a script; further arguments go to each `brimful bench`."""
    parser = argparse.ArgumentParser(
        description=description,
        epilog="Arguments after -- go to every run of `brimful bench`, as in -- --rounds 5:5.",
    )
    parser.add_argument("--short", action="store_true", help="some minutes; nothing is kept")
    parser.add_argument("--only", choices=sorted(kinds), help="one of these runs")
    parser.add_argument("more", nargs="*", metavar="-- ARGUMENT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    chosen = {options.only: kinds[options.only]} if options.only else kinds
    # So that what a run has changed is put back when it is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(preset, chosen, short=options.short, more=options.more)
    except KeyboardInterrupt:
        return 130
