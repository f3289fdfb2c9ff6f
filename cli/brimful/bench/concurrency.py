# SPDX-License-Identifier: MIT
"""The figures about threads that meet, as Markdown for docs/evaluation.md.

Made from a result of `brimful bench --concurrency`, and from one of the designs side by side. The
goals are those the project has set itself; where one is missed the line says so, in the same words
for everybody. Nothing is left out because it looks bad: a row, an allocator or a counter without a
figure has its reason in its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import lean, markdown
from .allocators import FRONT_ENDS, OURS
from .contention import BUSY, CONTENDED
from .model import MEMORY
from .statistics import Verdict
from .summary import Row, Summary
from .tables import FIGURE, Against, own_key
from .wording import SHORT, SIGN, interval, number, rate, value

LEAN = "jemalloc"  # whose resident size is the measure of leanness
AUTO_GOAL = 1.05  # front_end:auto over the better of the two front ends
CONTENDED_GOAL, CONTENDED_THREADS = 10.0, 64  # per million operations, on sweeps up to so many


def page(summary: Summary) -> str:
    """All of it: whatever the result has the rows for."""
    parts = (_times, markdown.goals, _front_ends, _contention, markdown.locks)
    return "\n".join(line for part in parts for line in part(summary))


def _has_ours(summary: Summary) -> bool:
    return any(a.name == OURS and not a.missing for a in summary.result.allocators)


# --- time and memory -----------------------------------------------------------------------------


def _times(summary: Summary) -> list[str]:
    """brimful against the best rival of each row, and its memory against the leanest's."""
    timed = [row for row in summary.rows if own_key(row.cell) == FIGURE and not row.cell.missing]
    if not timed or not _has_ours(summary) or not any(row.best_rival for row in timed):
        return []
    head = [
        *("row", f"{OURS}", "best rival", f"{OURS} ÷ best rival", "verdict"),
        *(f"peak memory ÷ {LEAN}", "peak memory ÷ leanest rival within 10 % of the best time"),
    ]
    rows = [_time_row(summary, row) for row in timed]
    verdicts = [row.ours[OURS][FIGURE].verdict for row in timed if FIGURE in row.ours.get(OURS, {})]
    count = (
        f"Time of {OURS} against the best rival of each row: faster in"
        f" {verdicts.count(Verdict.BETTER)}, slower in {verdicts.count(Verdict.WORSE)}, no difference"
        f" shown or too few rounds in"
        f" {len(verdicts) - verdicts.count(Verdict.BETTER) - verdicts.count(Verdict.WORSE)}."
    )
    return [count, "", *markdown.table(head, rows)]


def _time_row(summary: Summary, row: Row) -> list[str]:
    entry = row.entries[OURS]
    if not entry.ok:
        return [row.cell.name, f"{SHORT[entry.status]}: {entry.reason}", "", "", "", "", ""]
    against = row.ours.get(OURS, {}).get(FIGURE)
    if against is None:
        return [row.cell.name, _plain(row, OURS), "no rival", "", "", "", ""]
    lean = summary.samples.ratio(row.cell.name, OURS, LEAN, MEMORY)
    return [
        row.cell.name,
        _plain(row, OURS),
        f"{against.other} {_plain(row, against.other)}",
        interval(against.ratio),
        _verdict(against),
        f"{number(lean.median)}{_over(lean.median, 1.0)}" if lean else "no figure",
        _over_leanest(summary, row),
    ]


def _plain(row: Row, name: str) -> str:
    """A median without the mark of the best, which a column of its own says."""
    return value(row, row.entries[name]).removesuffix("*")


def _verdict(against: Against) -> str:
    word = {Verdict.BETTER: "faster", Verdict.WORSE: "**slower**"}
    return word.get(against.verdict, f"{SIGN[against.verdict]} {against.verdict}")


def _over(ratio: float, most: float) -> str:
    return " **more**" if ratio > most else ""


def _over_leanest(summary: Summary, row: Row) -> str:
    """Peak memory over the leanest rival's among those that are nearly as fast as the fastest."""
    name = lean.leanest(summary, row)
    if name is None:
        return "no rival is as fast" if FIGURE in row.best else "no figure"
    ratio = summary.samples.ratio(row.cell.name, OURS, name, MEMORY)
    if ratio is None:
        return "no figure"
    return f"{number(ratio.median)}{_over(ratio.median, lean.NEAR)} ({name})"


# --- front ends ----------------------------------------------------------------------------------


def _front_ends(summary: Summary) -> list[str]:
    """front_end:auto against the better of the two, at each point of each sweep over threads."""
    names = list(FRONT_ENDS)
    rows = [
        _front_end_row(summary, row, names)
        for row in summary.rows
        if row.cell.axis == "threads" and {OURS, *names} <= row.entries.keys()
    ]
    if not rows:
        return []
    head = ["row", f"{OURS} (auto)", *names, "auto ÷ the better", "within 5 %"]
    return ["`front_end:auto` against each front end by order:", "", *markdown.table(head, rows)]


def _front_end_row(summary: Summary, row: Row, names: Sequence[str]) -> list[str]:
    times = [_plain(row, name) for name in (OURS, *names)]
    medians = {n: row.entries[n].estimates[FIGURE].median for n in names if row.entries[n].ok}
    if not medians or not row.entries[OURS].ok:
        return [row.cell.name, *times, "no figure", ""]
    better = min(medians, key=lambda name: medians[name])
    ratio = summary.samples.ratio(row.cell.name, OURS, better, FIGURE)
    if ratio is None:
        return [row.cell.name, *times, "no figure", ""]
    within = "yes" if ratio.median <= AUTO_GOAL else "**no**"
    if ratio.claims and ratio.low <= AUTO_GOAL < ratio.high:
        within += " (not sure)"
    return [row.cell.name, *times, f"{interval(ratio)} ({better})", within]


# --- contention ----------------------------------------------------------------------------------


def _contention(summary: Summary) -> list[str]:
    """The goal of contention, on the sweeps that it is about; the counters follow in a table."""
    rows = {row.cell.name: row for row in summary.rows if row.cell.axis == "threads"}
    lines: list[str] = []
    for one in summary.contention:
        row = rows.get(one.cell)
        if one.allocator != OURS or row is None or row.cell.at > CONTENDED_THREADS:
            continue
        if one.missing:
            lines.append(f"- {one.cell}: {one.missing}.")
            continue
        waited, busy = one.figures[CONTENDED.key], one.figures[BUSY.key]
        verdict = "met" if waited <= CONTENDED_GOAL else "**missed**"
        lines.append(
            f"- {one.cell}: {rate(waited)}, {verdict} (found taken and left: {rate(busy)})."
        )
    if not lines:
        return []
    about = (
        f"Contended lock acquisitions of {OURS} per million operations, on sweeps up to"
        f" {CONTENDED_THREADS} threads (goal: at most {CONTENDED_GOAL:g}):"
    )
    return [about, "", *lines, ""]
