# SPDX-License-Identifier: MIT
"""The programs of workloads/, and how one sample of one of them is taken.

A sample is one fresh process of a program with one contender. What it prints is one line of JSON,
which says whose malloc it ran with; another than the one that was meant is a failure, and a failure
is never a figure.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from brimful.bench import building, launch, proof
from brimful.bench.model import Status
from brimful.bench.study.model import ROOT, Data, Run, StudyError
from brimful.bench.study.records import Record, shown
from studies.pools.contenders import BUILT, POOLS_LIBRARY, Contender

SOURCES = Path(__file__).parent / "workloads"
WORKLOADS = sorted(path.stem for path in SOURCES.glob("*.cpp"))
STEPS = ROOT / "tests" / "golden" / "tlsf_steps.cpp"  # a test's own, which counts instructions
TIMEOUT_S = 300


def build() -> None:
    """Compiles what is run, against the pools' library. Raises BenchError."""
    if not POOLS_LIBRARY.exists():
        raise StudyError(f"{shown(POOLS_LIBRARY)} is missing: run `make lib`")
    flags = ["-std=c++20", "-O2", "-Wall", "-Wextra", f"-I{ROOT / 'include'}"]
    inputs = [*SOURCES.glob("*.h"), *(ROOT / "bench" / "workloads").glob("*.h"), POOLS_LIBRARY]
    newest = max(path.stat().st_mtime for path in inputs)
    for source in (*SOURCES.glob("*.cpp"), STEPS):
        binary = BUILT / source.stem
        if binary.exists() and binary.stat().st_mtime < newest:
            binary.unlink()
        building.built(binary, source, ["g++", *flags], [str(POOLS_LIBRARY), "-ldl"])


def in_turns(contenders: Sequence[Contender], seed: int) -> list[Contender]:
    """The contenders in an order drawn anew for each round."""
    order = list(contenders)
    random.Random(seed).shuffle(order)
    return order


class Sampler:
    """Takes samples, keeps why there is none, and says how far it is."""

    def __init__(self, run: Run) -> None:
        self.record: Record = run.record
        self.options = run.options
        self.short: bool = run.options.short
        self.part = ""
        self.began = time.monotonic()

    def progress(self, text: str = "") -> None:
        parts = self.options.only
        at = f"{parts.index(self.part) + 1}/{len(parts)} {self.part}"
        seconds = time.monotonic() - self.began
        print(f"[{seconds:4.0f} s] {at}{text and f': {text}'}", file=sys.stderr, flush=True)

    def sample(self, program: str, who: Contender, *arguments: str | int) -> Data | None:
        """What a workload says of itself, or None; the reason is in the record then."""
        return self.run(BUILT / program, who, *arguments)

    def run(self, program: Path, who: Contender, *arguments: str | int) -> Data | None:
        """The same of any program that prints its figures and its `malloc`."""
        if who.who.missing:
            return None  # as the record's list of allocators says
        try:
            command = [program, *who.arguments, *arguments]
            result = launch.answer(who.malloc, command, TIMEOUT_S)
            served = str(result.get("malloc", ""))
            if not proof.is_served(served, who.malloc.library):
                raise launch.Failure(Status.NOT_LOADED, f"malloc was served by {served!r}")
        except (launch.Failure, OSError, ValueError) as error:
            told = " ".join(map(str, arguments))
            self.record.fail(f"{program.name} {told} with {who.name}", error)
            return None
        return result | {"malloc": Path(served).name}  # no path of this machine in the record
