# SPDX-License-Identifier: MIT
"""A stack of calls as a reader sees it, and what was found for stacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Line:
    """A function, and where in it the call stands."""

    function: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Location:
    """An address in code: one line, or several where the compiler inlined calls (innermost first)."""

    lines: tuple[Line, ...]
    address: int = 0  # as in the file of the module
    module: str = ""  # path; empty for code of no file


Stack = tuple[Location, ...]  # innermost first


def functions(stack: Stack) -> Iterator[str]:
    """The names along a stack, innermost first."""
    for location in stack:
        for line in location.lines:
            yield line.function


def plain(stack: Stack) -> Stack:
    """The same with nothing but the names: addresses and lines differ from build to build."""
    return tuple(Location((Line(name),)) for name in functions(stack))


@dataclass(slots=True)
class Amount:
    """How many objects, how many bytes."""

    objects: float = 0.0
    bytes: float = 0.0

    def add(self, other: Amount, sign: int = 1) -> None:
        self.objects += sign * other.objects
        self.bytes += sign * other.bytes


@dataclass(slots=True)
class Found:
    """What a view shows: an amount for each stack."""

    name: str
    meaning: str  # one line for the head of a table
    amounts: dict[Stack, Amount] = field(default_factory=dict)

    def total(self) -> Amount:
        return total(self.amounts.values())


def total(amounts: Iterable[Amount]) -> Amount:
    result = Amount()
    for amount in amounts:
        result.add(amount)
    return result


def by_names(amounts: Mapping[Stack, Amount]) -> dict[Stack, Amount]:
    """The same for stacks of the same names."""
    result: dict[Stack, Amount] = {}
    for stack, amount in amounts.items():
        result.setdefault(plain(stack), Amount()).add(amount)
    return result


def subtract(later: Mapping[Stack, Amount], earlier: Mapping[Stack, Amount]) -> dict[Stack, Amount]:
    """`later` minus `earlier`, stacks compared by their names; those that are equal are left out."""
    result = by_names(later)
    for stack, amount in by_names(earlier).items():
        result.setdefault(stack, Amount()).add(amount, -1)
    return {stack: amount for stack, amount in result.items() if abs(amount.bytes) >= 0.5}


def flat_and_cumulative(amounts: Mapping[Stack, Amount]) -> dict[str, tuple[Amount, Amount]]:
    """For each function what it allocated itself, and what it or anything that it called did.

    A function that stands in a stack several times (recursion) counts once.
    """
    result: dict[str, tuple[Amount, Amount]] = {}
    for stack, amount in amounts.items():
        names = list(functions(stack))
        for name in set(names):
            result.setdefault(name, (Amount(), Amount()))[1].add(amount)
        if names:
            result[names[0]][0].add(amount)
    return result
