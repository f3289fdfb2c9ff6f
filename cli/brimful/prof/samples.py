# SPDX-License-Identifier: MIT
"""What brimful-observer saw: samples, each with its stacks, and how many objects each stands for.

An object of u usable bytes is sampled with the probability 1 - exp(-u / interval), so a sample stands
for the inverse of that many objects of its size. The sum over samples is then an unbiased estimate of
the exact total, and `error` is its standard error (Horvitz and Thompson: each sample contributes
(1 - p) / p² times the square of its value).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .stacks import Amount, Line, Location, Stack

SCHEMA = "brimful-samples"
VERSION = 1

# How a stack that could not be followed to its end is closed.
ENDS = {"truncated": "[deeper than the copy of the stack]", "unknown": "[unknown]"}

# What stands between a program's call and the sample: our own functions. In a static program they have no
# file of their own to tell them by.
_OURS = re.compile(
    r"(brimful(_|::)\w*.*|(__libc_)?(malloc|calloc|realloc|reallocarray|memalign|valloc|pvalloc)"
    r"|aligned_alloc|posix_memalign|free|cfree|free_sized|free_aligned_sized"
    r"|operator (new|delete)(\[\])?(\(.*\))?)$"
)

_DEEPEST = 12  # calls of ours in a row


class FormatError(Exception):
    """The observer's answer is not what this version reads."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sampled object."""

    number: int
    address: int
    requested: int
    usable: int
    interval: int
    allocated_ns: int
    freed_ns: int  # 0: it lives
    thread: int
    freed_by: int
    flags: int
    stack: Stack
    release: Stack
    stands_for: float = 1.0  # samples: more than itself where others of its kind were missed

    @property
    def weight(self) -> float:
        """How many objects of this size it stands for."""
        return -self.stands_for / math.expm1(-self.usable / self.interval)

    @property
    def amount(self) -> Amount:
        return Amount(self.weight, self.weight * self.usable)


def standard_error(samples: Iterable[Sample]) -> float:
    """Of the sum of bytes."""
    return math.sqrt(sum(s.weight * (s.weight - 1.0) * float(s.usable) ** 2 for s in samples))


@dataclass(slots=True)
class Recording:
    """All that was seen of a process between two moments (CLOCK_MONOTONIC, nanoseconds)."""

    pid: int
    program: str  # path
    name: str  # what ps shows; empty for a file
    began_ns: int
    ended_ns: int
    began_unix: float
    interval: int
    complete: bool  # sampling was on since the process started: "in use" is all that is in use
    ended: str  # "time", "interrupt", "exit" (of the process) or "file"
    missed: int  # samples that the library took and that were gone before they were read
    lost: int  # samples that the library had no room for
    allocated_bytes: int  # what the library estimates itself, samples that were missed included
    samples: list[Sample]
    build_ids: dict[str, str]

    @property
    def seconds(self) -> float:
        return (self.ended_ns - self.began_ns) / 1e9


def _location(entry: dict[str, Any], modules: list[dict[str, Any]]) -> Location:
    lines = tuple(Line(function, file, line) for function, file, line in entry["lines"])
    module = entry["module"]
    return Location(lines, entry["address"], modules[module]["path"] if module >= 0 else "")


def _is_ours(location: Location) -> bool:
    # The last line is the function that the code belongs to; those before it were inlined.
    return bool(location.lines and _OURS.match(location.lines[-1].function))


def without_allocator(stack: Stack, program: str) -> Stack:
    """The stack from the program's own call on.

    A sample is taken inside the allocator: where that has a file of its own, whatever its name, the calls
    before the first one from elsewhere are its. In the program's own file they are known by their
    names.
    """
    inside = stack[0].module if stack else ""
    begin = 0
    for at, location in enumerate(stack):
        in_library = inside not in ("", program) and location.module == inside
        # Helpers between two of its functions have names like any.
        within_reach = inside != program or at < _DEEPEST
        if in_library or (within_reach and _is_ours(location)):
            begin = at + 1
        elif inside != program or at >= _DEEPEST:
            break
    return stack[begin:] or stack[-1:]


def _standing_in(samples: list[Sample], since_ns: int, allocated_bytes: int) -> list[Sample]:
    """The same samples, those of freed objects standing for the ones that were missed as well.

    Only records of freed objects are used again before anybody has read them, so those of live ones are
    all here. The library's own sum, to which each sample is added when it is taken, says how much the
    freed ones have to come to.
    """
    new = [s for s in samples if s.allocated_ns >= since_ns]
    live = sum(s.amount.bytes for s in new if s.freed_ns == 0)
    freed = sum(s.amount.bytes for s in new if s.freed_ns)
    if freed <= 0 or allocated_bytes <= live + freed:
        return samples
    factor = (allocated_bytes - live) / freed
    return [
        dataclasses.replace(s, stands_for=factor)
        if s.freed_ns and s.allocated_ns >= since_ns
        else s
        for s in samples
    ]


def recording(answer: dict[str, Any]) -> Recording:
    """Reads what `brimful-observer samples` prints. Raises FormatError."""
    if answer.get("schema") != SCHEMA or answer.get("version") != VERSION:
        raise FormatError("the observer is of another version than the command: build both anew")
    locations = [_location(entry, answer["modules"]) for entry in answer["locations"]]
    stacks: list[Stack] = []
    for entry in answer["stacks"]:
        found = tuple(locations[index] for index in entry["locations"])
        last = ENDS.get(entry["end"])
        stacks.append(
            without_allocator(found, answer["program"])
            + ((Location((Line(last),)),) if last else ())
        )
    samples = []
    for *numbers, allocation, release in answer["samples"]:
        cells: list[Any] = [*numbers, stacks[allocation], stacks[release] if release >= 0 else ()]
        samples.append(Sample(*cells))
    if answer["missed"]:
        samples = _standing_in(
            samples, answer["began_ns"] * (not answer["complete"]), answer["allocated_bytes"]
        )
    return Recording(
        pid=answer["pid"],
        program=answer["program"],
        name=answer["name"],
        began_ns=answer["began_ns"],
        ended_ns=answer["ended_ns"],
        began_unix=answer["began_unix"],
        interval=answer["interval"],
        complete=answer["complete"],
        ended=answer["ended"],
        missed=answer["missed"],
        lost=answer["lost"],
        allocated_bytes=answer["allocated_bytes"],
        samples=samples,
        build_ids={m["path"]: m["build_id"] for m in answer["modules"] if m["build_id"]},
    )
