# SPDX-License-Identifier: MIT
"""Which kinds of faults an allocator stops: always, with what probability, or never.

Raw data is one letter for each run of a case under an allocator (LETTERS). A run is *quiet* when the
fault did harm and nobody stopped it; a harmless one says nothing for or against, because the bytes
were nobody's. So of a kind the share is that of the stopped among the stopped and the quiet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from brimful.bench.study.model import Data, StudyError
from studies.misuse.runs import AT, BROKEN, CONTROL, HARMLESS, HUNG, LATER, SILENT, Ending

# With a message; the same in small where a signal was all.
LETTERS = {AT: "A", LATER: "L", HARMLESS: "H", SILENT: "S", HUNG: "X", BROKEN: "B"}
STOPPED, QUIET = frozenset("AaLl"), frozenset("SX")

KINDS = {
    "double-free": "second free",
    "double-free-used-again": "second free, the address serves another by then",
    "use-after-free-read": "read after free",
    "use-after-free-write": "write after free",
    "overflow-1": "write 1 byte behind the end",
    "overflow-8": "write 8 bytes behind the end",
    "overflow-16": "write 16 bytes behind the end",
    "overflow-page": "write a page behind the end",
    "overflow-mib": "write a MiB behind the end",
    "overflow-far": "write beyond the neighbour",
    "overflow-read": "read behind the end",
    "underflow": "write or read before the start",
    "zero-size": "use of an object of size 0",
    "uninitialised-read": "read of old contents",
    "invalid-free": "free of what is no object",
    "realloc-misuse": "realloc of what is no object",
    "type-confusion-by-size": "wrong size, memory of another size",
    "size-overflow": "size that can't be",
    "metadata": "forged links and headers",
}


def letter(ending: Ending) -> str:
    found = LETTERS[ending.outcome]
    return found if ending.said else {"A": "a", "L": "l"}.get(found, found)


def kind_of(case: str) -> str:
    return case.split()[0]


@dataclass(frozen=True)
class Share:
    """The runs of some cases under one allocator."""

    stopped: int
    harmless: int
    quiet: int

    def share(self) -> float | None:
        """Of the stopped among those that were not harmless; None if all were."""
        counted = self.stopped + self.quiet
        return self.stopped / counted if counted else None

    def text(self) -> str:
        share = self.share()
        if share is None:
            return "no harm"
        if share in (0, 1):
            return "always" if share else "never"
        # Never rounded to one of the ends.
        return f"{min(max(100 * share, 1), 99):.0f} %"


def share(outcomes: Iterable[str]) -> Share:
    counts = Counter("".join(outcomes))
    stopped, quiet = (sum(counts[one] for one in group) for group in (STOPPED, QUIET))
    return Share(stopped, counts["H"], quiet)


class Matrix:
    """The outcomes of a record: a row for each case, in it a string of letters for each allocator.

    Raises StudyError for a kind without a title.
    """

    def __init__(self, rows: Sequence[Data], names: Sequence[str]) -> None:
        self.outcomes: dict[str, dict[str, str]] = {row["case"]: row["outcomes"] for row in rows}
        unknown = {kind_of(case) for case in self.outcomes} - {CONTROL, *KINDS}
        if unknown:
            raise StudyError(f"no title for faults of the kind {', '.join(sorted(unknown))}")
        self.names = [name for name in names if any(name in row["outcomes"] for row in rows)]

    def cases(self, kind: str = "") -> list[str]:
        """Of this kind, or of all kinds that are faults."""
        return [
            case
            for case in self.outcomes
            if kind_of(case) == kind or (not kind and kind_of(case) != CONTROL)
        ]

    def cell(self, kind: str, name: str) -> Share:
        return share(self.outcomes[case].get(name, "") for case in self.cases(kind))

    def stoppable(self) -> list[str]:
        """Cases that some allocator stopped in each of its runs."""
        return [
            case
            for case in self.cases()
            if any(runs and set(runs) <= STOPPED for runs in self.outcomes[case].values())
        ]

    def never_quiet(self, name: str, cases: Sequence[str]) -> int:
        """How many of the cases ended well in every run: stopped, or without harm."""
        found = (self.outcomes[case].get(name, "S") for case in cases)
        return sum(not QUIET & set(runs) for runs in found)

    def with_message(self, name: str) -> Share:
        """Of the stopped runs those that said why (as `stopped`), and those that did not (`quiet`)."""
        counts = Counter("".join(self.outcomes[case].get(name, "") for case in self.cases()))
        return Share(counts["A"] + counts["L"], 0, counts["a"] + counts["l"])

    def false_alarms(self, name: str) -> int:
        """Right programs that did not come to their end."""
        found = (self.outcomes[case].get(name, "") for case in self.cases(CONTROL))
        return sum(bool(runs) and set(runs) != {"H"} for runs in found)


def scores(matrix: Matrix, names: Sequence[str]) -> Mapping[str, list[str]]:
    """The rows below the kinds: title → a cell for each allocator."""
    every, some = matrix.cases(), matrix.stoppable()

    def of(cases: Sequence[str]) -> list[str]:
        return [f"{matrix.never_quiet(name, cases)}" for name in names]

    return {
        f"**never quiet, of {len(every)}**": of(every),
        f"never quiet, of the {len(some)} that somebody always stops": of(some),
        "stopped with a message": [matrix.with_message(name).text() for name in names],
        f"right programs stopped, of {len(matrix.cases(CONTROL))}": [
            str(matrix.false_alarms(name)) for name in names
        ],
    }


def rows(matrix: Matrix, names: Sequence[str]) -> list[list[str]]:
    """The table without its head: kinds, scores."""
    found = [
        [title, *(matrix.cell(kind, name).text() for name in names)]
        for kind, title in KINDS.items()
        if matrix.cases(kind)
    ]
    return found + [[title, *cells] for title, cells in scores(matrix, names).items()]
