# SPDX-License-Identifier: MIT
"""Cases of the misuse suite: compiled, run under an allocator, and what became of each.

The program (suite/) commits one fault in a process and says how far it came; suite.h describes its
lines. From these and from how the process ended follows the outcome:

    AT        stopped at the fault: by a signal before the faulty access or call was over
    LATER     stopped, but after it: when the object was freed, or memory was used again
    HARMLESS  nobody was harmed: the bytes were nobody's, or the call was refused
    SILENT    a live object was changed, given out twice, or read, and nothing was said
    HUNG      it never ended
    BROKEN    the case could not be made under this allocator

Only the standard library is used: the test of the library runs it, too.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SUITE = Path(__file__).resolve().parent / "suite"
COMPILE = ["gcc", "-std=gnu11", "-O1", "-g", "-fno-builtin", "-Wall", "-Wextra", "-Werror"]
COMPILE += ["-Wno-use-after-free", "-Wno-free-nonheap-object", "-pthread"]
AT, LATER, HARMLESS, SILENT = "at the fault", "later", "harmless", "silent"
HUNG, BROKEN = "hung", "broken"
WORDS = ("fault", "passed", SILENT, HARMLESS, BROKEN)  # how the program's own lines begin
TIME_LIMIT_S = 10  # of what takes milliseconds, on a machine with other work
CONTROL = "no-fault"  # the kind of those cases that are right programs


@dataclass(frozen=True)
class Case:
    """One fault with objects of one size, by one thread or two."""

    kind: str
    fault: str
    size: int
    threads: str  # one, two

    def words(self) -> list[str]:
        """As the program wants it."""
        return [self.kind, self.fault, str(self.size), self.threads]

    def __str__(self) -> str:
        return " ".join(self.words())


@dataclass(frozen=True)
class Ending:
    """What became of a case."""

    outcome: str
    pointer: str  # of the faulty access or call; "" if it was not reached
    verdict: str  # in the program's own words, if it came to its end
    signal: int  # that ended it, or 0
    said: str  # standard error


def compile_suite(program: Path) -> None:
    """Raises subprocess.CalledProcessError."""
    program.parent.mkdir(parents=True, exist_ok=True)
    fresh = program.with_name(f"{program.name}.{os.getpid()}")
    subprocess.run([*COMPILE, "-o", str(fresh), *map(str, sorted(SUITE.glob("*.c")))], check=True)
    fresh.replace(program)


def cases(program: Path) -> list[Case]:
    """All that the program has, in its order."""
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    found = []
    for line in done.stdout.splitlines():
        kind, fault, size, threads = line.split()
        found.append(Case(kind, fault, int(size), threads))
    return found


def commit(
    program: Path, case: Case, environment: Mapping[str, str], limit_s: float = TIME_LIMIT_S
) -> Ending:
    """Runs a case in a process of its own."""
    try:
        done = subprocess.run(
            [str(program), *case.words()],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        return Ending(HUNG, "", "", 0, f"no end after {limit_s} s")
    return read(done.stdout.decode(), done.stderr.decode(errors="replace"), done.returncode)


def read(lines: str, said: str, code: int) -> Ending:
    """The outcome of a process from what it printed and its exit code, as subprocess has it."""
    told: dict[str, str] = {}
    for line in lines.splitlines():
        word, _, rest = line.partition(" ")
        if word in WORDS:
            told[word] = rest
        else:
            said += line + "\n"  # some allocators report there
    pointer = told.get("fault", "")
    for outcome in (SILENT, HARMLESS, BROKEN):
        if outcome in told and code == 0:
            return Ending(outcome, pointer, told[outcome], 0, said)
    if "fault" not in told:
        return Ending(BROKEN, "", f"ended with {code} before the fault", max(-code, 0), said)
    return Ending(LATER if "passed" in told else AT, pointer, "", max(-code, 0), said)


def forbid_cores() -> None:
    """For this process and those it starts: hundreds end by a signal."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
