# SPDX-License-Identifier: MIT
"""`bench compare A.json B.json`: what `gate` has found, in the terminal, and its exit code.

One line for each row with the change of its own figure and of its peak memory, each with the 95 %
interval, the floor that it has to exceed, and the outcome; whatever is not fine stands in capitals.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import model, statistics
from .gate import (
    FINE,
    REGRESSED,
    TOO_NOISY,
    USAGE,
    Change,
    CompareError,
    Comparison,
    Outcome,
    Overall,
    compare,
)
from .model import MEMORY, Result
from .statistics import Mean, Ratio
from .tables import FIGURE, OTHER

NARROWEST = 100  # columns: below it (pipes have 80) lines may wrap, but no figure is cut off
# What the lines of geometric means are called.
MEANS = {FIGURE: "mean of times", OTHER: "mean of others", MEMORY: "mean of memory"}


def main_compare(
    a: Path, b: Path, fail_over: float, allocators: Sequence[str] = (), absolute: bool = False
) -> int:
    """Compare two files, print what was found, return the exit code."""
    try:
        results = model.load(a), model.load(b)
        found = compare(*results, fail_over, allocators=allocators, absolute=absolute)
    except (model.ResultError, CompareError) as error:
        print(f"brimful bench compare: {error}", file=sys.stderr)
        return USAGE
    console = Console()
    console.width = max(console.width, NARROWEST)
    _print_head(console, found, (a, b), results)
    for name in found.allocators:
        _print_rows(console, found, name)
    _print_end(console, found)
    return found.exit_code


def _print_head(
    console: Console, found: Comparison, paths: tuple[Path, Path], results: tuple[Result, Result]
) -> None:
    for label, path, result in zip("AB", paths, results, strict=True):
        facts = (result.environment.get(key) for key in ("date", "commit"))
        details = ", ".join(str(fact) for fact in facts if fact)
        console.print(f"{label}  {path}  {details}", markup=False, highlight=False)
    if found.counted:
        how = "as they are: they were counted, and have neither noise nor a machine in them"
    elif found.absolute:
        how = "as they are (--absolute): drift of the machine counts as change"
    else:
        how = "relative to " + ", ".join(found.references)
    console.print(f"Figures are compared {how}.", markup=False, highlight=False)
    for line in found.warnings:
        console.print(f"Warning: {line}", markup=False, highlight=False)


def _print_rows(console: Console, found: Comparison, name: str) -> None:
    """One table: a line for each row, and the means below."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("row", no_wrap=True)
    for head in ("time, or own figure", "peak memory"):
        table.add_column(head, no_wrap=True)
        table.add_column("floor", justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
    changes = [change for change in found.changes if change.allocator == name]
    for cell in dict.fromkeys(change.cell for change in changes):
        here = [change for change in changes if change.cell == cell]
        own = next((change for change in here if change.metric in ("", FIGURE, OTHER)), None)
        others = [change for change in here if change is not own]
        table.add_row(escape(cell), *_columns(own), *_columns(others[0] if others else None))
        for further in others[1:]:
            table.add_row("", *_columns(None), *_columns(further))
    table.add_section()
    for overall in (o for o in found.overall if o.allocator == name):
        table.add_row(MEANS.get(overall.metric, overall.metric), *_columns(overall))
    console.print(f"\n{name}, B over A", style="bold", markup=False, highlight=False)
    console.print(table, highlight=False)
    for change in changes:
        if change.reason and change.outcome is not Outcome.FINE:
            line = f"{change.outcome.upper()} {change.cell}: {change.reason}"
            console.print(line, markup=False, highlight=False)


def _columns(change: Change | Overall | None) -> tuple[str, str, str]:
    """Change with interval, floor, outcome (what is not fine in capitals)."""
    if change is None:
        return "", "", ""
    outcome = str(change.outcome)
    outcome = outcome if change.outcome is Outcome.FINE else f"[bold]{outcome.upper()}[/bold]"
    if isinstance(change, Overall):
        return _interval(change.mean.mean, change.mean), _share(change.floor), outcome
    if change.ratio is None:
        return "—", "", outcome
    return _interval(change.ratio.median, change.ratio), _share(change.floor), outcome


def _share(floor: float) -> str:
    return f"{floor:.1%}" if floor < 0.1 else f"{floor:.0%}"


def _interval(centre: float, ends: Ratio | Mean) -> str:
    if ends.low == ends.high:
        return f"{centre - 1:+.2%}"
    if math.isinf(ends.high):
        return f"{centre - 1:+.1%} (too few samples)"
    if ends.high >= 2:
        return f"×{centre:.2f} ({ends.low:.2f} to {ends.high:.2f})"
    low, high = 100 * (ends.low - 1), 100 * (ends.high - 1)
    return f"{centre - 1:+.1%} ({low:+.1f} to {high:+.1f})"


def _print_end(console: Console, found: Comparison) -> None:
    """What was left out, how to read the table, and the answer."""
    for cell, name, reason in found.left_out:
        whose = f", {name}" if name else ""
        console.print(f"Left out: {cell}{whose}: {reason}", markup=False, highlight=False)
    if not found.counted:
        stated = sum(change.ratio is not None and change.ratio.claims for change in found.changes)
        misses = statistics.expected_misses(stated)
        console.print(
            f"95 % intervals; of these {stated}, about {misses:.0f} will not hold the truth. The"
            " floor is the largest change of an allocator that did not change.",
            highlight=False,
        )
    answers = {
        FINE: f"FINE: nothing is shown to be worse by more than {found.fail_over:.1%}",
        REGRESSED: f"REGRESSION: worse by more than {found.fail_over:.1%}, or broken; see above",
        TOO_NOISY: f"TOO NOISY to say whether anything is worse by more than {found.fail_over:.1%}",
    }
    outcomes = [change.outcome for change in found.changes]
    counts = ", ".join(f"{outcomes.count(o)} {o}" for o in Outcome if outcomes.count(o))
    console.print(f"{answers[found.exit_code]} ({counts}).", style="bold", highlight=False)
