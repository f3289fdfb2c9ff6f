# SPDX-License-Identifier: MIT
"""What one sees of a league: its plan, how far it is, and what is left when it stops.

Each row that got its rounds is one line, so that a log says what a terminal does; on a terminal the
line below them says what runs at this moment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.status import Status as Spinner
from rich.table import Table

from .engine import Progress
from .model import Result
from .passes import Done, League, Row
from .progress import clock
from .summary import Summary, summarize
from .wording import counted

NAMED = 12  # rows that are left are named up to so many


def say(console: Console, text: str) -> None:
    """Text as it is, without markup."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


class Display:
    """A context manager whose two methods are what a League tells."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._spinner: Spinner | None = None
        self._where = "first row"

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._spinner = self._console.status("")
            self._spinner.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._spinner is not None:
            self._spinner.stop()

    def step(self, step: Progress) -> None:
        if self._spinner is not None:
            text = f"{step.cell}, {step.what}, {step.allocator} ({self._where})"
            self._spinner.update(escape(text[: self._console.width - 4]))

    def done(self, done: Done) -> None:
        self._where = f"after row {done.place} of {done.rows}, pass {done.number}"
        row = done.row
        widest = f"widest ± {share(done.widest)}"
        slow = f"; too slow for more: {', '.join(row.kept.sat_out)}" if row.kept.sat_out else ""
        say(
            self._console,
            f"pass {done.number}, row {done.place} of {done.rows}: {row.name}: {row.kept.rounds}"
            f" rounds, {widest}{slow}; elapsed {clock(done.elapsed_s)}, at most"
            f" {clock(done.left_s)} to the end",
        )


def share(width: float) -> str:
    return "∞" if math.isinf(width) else f"{width:.1%}"


def show_start(console: Console, league: League, budget_s: float) -> None:
    open_rows = [row for row in league.rows if not league.is_known(row)]
    first, later = league.left_s()
    until = "" if math.isinf(budget_s) else f"; this piece ends after {clock(budget_s)}"
    say(
        console,
        f"{len(league.rows)} rows, {len(league.rows) - len(open_rows)} of them done. Left: about"
        f" {clock(first)} for the first pass, at most {clock(later)} for the later ones{until}.",
    )


def show_plan(console: Console, league: League) -> None:
    """Every row, how far it is, and what it still takes."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for head in ("row", "rounds", "widest", "a round", "left", "state"):
        table.add_column(
            head, no_wrap=True, justify="left" if head in ("row", "state") else "right"
        )
    for row in league.rows:
        first, later = league.row_left_s(row)
        table.add_row(
            escape(row.name),
            str(row.kept.rounds),
            f"± {share(league.widest(row))}" if row.kept.rounds else "",
            f"{league.round_s(row):.1f} s" + ("" if row.kept.rounds else " ?"),
            clock(first + later) if first + later else "",
            escape(_state(league, row)),
        )
    console.print(table, highlight=False)
    show_start(console, league, math.inf)
    say(console, "?: not measured yet; the usual time of such a row.")


def _state(league: League, row: Row) -> str:
    if row.work.cell.missing:
        return f"missing: {row.work.cell.missing}"
    if league.is_known(row):
        return "done"
    if not row.kept.rounds:
        return "not begun"
    return "first pass" if row.kept.rounds < league.targets[0] else "needs more rounds"


def show_end(console: Console, league: League, results: Mapping[str, Result], folder: Path) -> None:
    """The verdicts so far, what is left by name, and how to see all."""
    for kind, result in results.items():
        if result.samples:
            say(console, "")
            for line in _verdicts(summarize(result)):
                say(console, line)
            say(console, f"All figures: ./brimful bench report {folder / kind}.json")
    left = [row for row in league.rows if not league.is_known(row)]
    if left:
        begun = [row.name for row in left if row.kept.rounds]
        not_begun = [row.name for row in left if not row.kept.rounds]
        first, later = league.left_s()
        say(console, "")
        _name(console, "Rows that need more rounds", begun)
        _name(console, "Rows not begun", not_begun)
        say(console, f"Left: about {clock(first)}, and at most {clock(later)} for later passes.")
    else:
        say(console, "\nEvery row is known. Publish: ./brimful bench league --publish")


def _name(console: Console, what: str, names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        say(console, f"{what} ({len(names)}): {', '.join(names[:NAMED])}{more}.")


def _verdicts(summary: Summary) -> list[str]:
    names = [s.allocator.name for s in summary.league if s.allocator.ours]
    return [line for name in names for line in counted(summary, name)]
