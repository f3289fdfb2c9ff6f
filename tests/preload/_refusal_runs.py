# SPDX-License-Identifier: MIT
"""Many runs of the programs of `_refused_programs.py`, each with another call refused, on all processors, and their tally.

Of each program and each kind of call the k-th is refused, for every k; of every fourth, in another run, all behind it as well.
Counts differ a little from run to run: one in which the k-th never came is not counted.
"""

from __future__ import annotations

import dataclasses
import errno
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator

from _refusals import ALWAYS, ANY, MEMORY, NAMES, Outcome, Plan, Program, Refuser, run_and_judge

# What the library does besides: other ways to the system, by options.
OPTIONS = (
    "",
    "front_end:thread",
    "tier:hardened",
    "background_thread:1",
    "prof:4096",
    "guards:100",
    "soft_limit:4M",
    "thp:always",
)
# Programs that take too long for all options.
SLOW = ("g++", "postgres")
MEMORY_CALLS = ("mmap", "mprotect", "madvise", "mremap")
# What the system answers where it forbids, or does not know, a call; shortness of memory else.
ERRORS = {"membarrier": errno.EPERM, "prctl": errno.EINVAL, "openat": errno.EACCES, "mincore": errno.ENOSYS}


@dataclasses.dataclass(frozen=True)
class Run:
    """One run in which the call came."""

    program: str
    options: str
    call: str
    k: int
    is_once: bool  # not: all behind it, too
    status: int | None
    fault: str | None

    def line(self) -> str:
        then = "" if self.is_once else " and all behind it"
        return f"{self.program} ({self.options}), {self.call} number {self.k}{then}: {self.fault}"


@dataclasses.dataclass(frozen=True)
class Task:
    program: Program
    call: str
    plan: Plan
    expected: bytes


def all_programs(made: Iterable[Program]) -> list[Program]:
    """The programs under all options; the slow ones as they are."""
    return [
        dataclasses.replace(program, conf=f"{program.conf},{more}" if more else program.conf)
        for program in made
        for more in (OPTIONS if program.name not in SLOW else OPTIONS[:1])
    ]


def plans_of(outcome: Outcome) -> Iterator[tuple[str, Plan]]:
    """Every call of a run in which none was refused; and of every fourth on, all of its kind."""
    by_name = {number: NAMES.get(number, str(number)) for number, n in enumerate(outcome.counts) if n}
    for number, name in by_name.items():
        error = ERRORS.get(name, errno.ENOMEM)
        for k in range(1, outcome.counts[number] + 1):
            yield name, Plan(number, k, k, error)
            if k % 4 == 1:
                yield name, Plan(number, k, ALWAYS, error)
    memory = sum(outcome.counts[n] for n, name in by_name.items() if name in MEMORY_CALLS)
    for k in range(1, memory + 1, 4):
        yield "memory", Plan(MEMORY, k, ALWAYS)


def tasks_of(refuser: Refuser, program: Program) -> list[Task]:
    """Runs the program without a refusal, and says what there is to refuse."""
    outcome = refuser.run(program, Plan(ANY))
    if outcome.status != 0:
        sys.exit(f"{program.name} fails by itself ({outcome.status}): {outcome.errors.decode()[-500:]}")
    return [Task(program, name, plan, outcome.output) for name, plan in plans_of(outcome)]


class Worker:
    """Called in a process of its own, with a copy of what can't be shared: data, and a socket's name."""

    refuser: Refuser

    @classmethod
    def begin(cls, refuser: Refuser) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        cls.refuser = refuser.copy(f"worker-{os.getpid()}")

    @classmethod
    def run(cls, task: Task) -> Run | None:
        program = cls.refuser.adopt(task.program)
        outcome, fault = run_and_judge(cls.refuser, program, task.plan, task.expected)
        if outcome.refused == 0:
            return None
        once = task.plan.first == task.plan.last
        return Run(program.name, program.conf, task.call, task.plan.first, once, outcome.status, fault)


def run_all(refuser: Refuser, tasks: list[Task], workers: int, *, is_shown: bool) -> Iterator[Run]:
    """The runs as they end, in no order; a line of progress once in ten seconds."""
    began = said = time.monotonic()
    with multiprocessing.Pool(workers, Worker.begin, (refuser,)) as pool:
        for done, run in enumerate(pool.imap_unordered(Worker.run, tasks, chunksize=8), 1):
            if run is not None:
                yield run
            if is_shown and time.monotonic() - said > 10:
                said = time.monotonic()
                left = (said - began) / done * (len(tasks) - done)
                print(f"     {done} of {len(tasks)} runs, {left / 60:.0f} min to go", flush=True)
