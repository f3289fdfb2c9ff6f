# SPDX-License-Identifier: MIT
"""How a figure is written in a table of text: with its unit, its interval, its marks.

Every mark is a character, because output is piped, copied into mails, and read by people who do not
see colours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .contention import METRICS, Contended
from .model import MEMORY, Metric, Status
from .statistics import ENOUGH_PAIRS, FEWEST_PAIRS, NARROW, Mean, Ratio, Verdict
from .tables import (
    ROW,
    Entry,
    Judged,
    Row,
    Shown,
    Standing,
    Summary,
    own_key,
    seconds_per_unit,
    title,
)

SHORT = {
    Status.FAILED: "failed",
    Status.CRASHED: "crashed",
    Status.TIMED_OUT: "timeout",
    Status.NOT_LOADED: "foreign",
    Status.MISSING: "—",
}
NO_DIFFERENCE = "≈"
BEST = "*"
LEVEL = "+"
UNDECIDED = {Verdict.SAME: NO_DIFFERENCE, Verdict.TOO_FEW: "?"}
SIGN = {Verdict.BETTER: "+", Verdict.WORSE: "−"} | UNDECIDED


def ratio_or_value(row: Row, entry: Entry) -> str:
    """The ratio to the baseline, the time where there is none, or how it failed; with marks."""
    if not entry.ok:
        return SHORT[entry.status]
    key = own_key(row.cell)
    over = entry.to_baseline.get(key)
    if over is None:
        return value(row, entry)
    same = UNDECIDED.get(over.verdict, " ")
    return f"{number(over.ratio.median)}{_mark(row, entry)}{same}"


def _mark(row: Row, entry: Entry) -> str:
    key = own_key(row.cell)
    if entry.allocator == row.best.get(key):
        return BEST
    return LEVEL if entry.allocator in row.level.get(key, ()) else " "


def value(row: Row, entry: Entry) -> str:
    """A median figure with its unit, or how it failed. The baseline may be the best, too."""
    if not entry.ok:
        return SHORT[entry.status]
    key = own_key(row.cell)
    if key not in entry.estimates:
        return "no figure"
    mark = BEST if row.best.get(key) == entry.allocator else ""
    median = entry.estimates[key].median
    scale = seconds_per_unit(row.cell.figure)
    if scale is None:
        return f"{median:.3g}{other_unit(row)}{mark}"
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if median * scale >= size:
            return f"{median * scale / size:.3g} {unit}{mark}"
    return f"{median * scale * 1e9:.3g} ns{mark}"


UNITS = {"percent": " %", "mib": " MiB", "kib": " KiB", "bytes": " B"}


def other_unit(row: Row) -> str:
    """ " MiB" of "resident_idle_end_mib", " %" of "growth_percent"; "" where the name says none."""
    declared = {one.key: one.unit.lower() for one in row.cell.figures}
    figure = row.cell.figure
    return UNITS.get(declared.get(figure, figure.rpartition("_")[2]), "")


def absolute(metric: Metric, value: float) -> str:
    """A row's further figure, with its unit and, if it has a goal, whether it is met."""
    figure = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{figure}{UNITS.get(metric.unit.lower(), '')}{goal_mark(metric, value)}"


MET, MISSED = "✓", "✗"


def goal_mark(metric: Metric, value: float) -> str:
    if metric.goal is None:
        return ""
    return f" {MET}" if value < metric.goal else f" {MISSED}"


def with_goal(metric: Metric) -> str:
    """The head of a column of figures."""
    unit = UNITS.get(metric.unit.lower(), f" {metric.unit}")
    return metric.title + (f" (goal: below {metric.goal:g}{unit})" if metric.goal else "")


LOCK_HEADS = (
    "row",
    "allocator",
    "contended per million operations",
    "of that, by kind of lock",
    "found busy, per million",
    "acquired, per million",
    "waited per operation",
    "million operations per second",
)


def lock_row(one: Contended) -> Sequence[str]:
    """The fields below LOCK_HEADS. Without counters the first figure says why."""
    speed = "—" if one.throughput is None else f"{one.throughput / 1e6:.3g}"
    if one.missing:
        return (one.cell, one.allocator, one.missing, "", "", "", "", speed)
    contended, busy, acquired, waited = (one.figures[metric.key] for metric in METRICS)
    kinds = ", ".join(
        f"{kind} {rate(value)}" for kind, value in one.contended_by_kind.items() if value > 0
    )
    waiting = f"{waited:.3g} ns"
    return (
        one.cell,
        one.allocator,
        rate(contended),
        kinds,
        rate(busy),
        rate(acquired),
        waiting,
        speed,
    )


def rate(value: float) -> str:
    """Events per million operations."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def number(ratio: float) -> str:
    """A ratio with as many digits as mean something."""
    return f"{ratio:.3f}" if ratio < 10 else f"{ratio:.3g}"


def interval(ratio: Ratio | Mean) -> str:
    """The centre and, if it has one, the interval."""
    centre = ratio.median if isinstance(ratio, Ratio) else ratio.mean
    if math.isinf(ratio.high):
        return number(centre)
    digits = 3 if "1.00" in (f"{ratio.low:.2f}", f"{ratio.high:.2f}") else 2
    return f"{number(centre)} ({ratio.low:.{digits}f}–{ratio.high:.{digits}f})"


def against(row: Row, name: str, metric: str) -> tuple[str, str]:
    """One of ours over the best rival of the row: the ratio with its verdict's sign, and who that is."""
    over = row.ours.get(name, {}).get(metric)
    if over is None:
        return "no rival", ""
    return f"{SIGN[over.verdict]} {interval(over.ratio)}", over.other


def judged(summary: Summary, standing: Standing, of: Judged | None, short: bool = False) -> str:
    """A mean with its interval, or without if it has to be short."""
    if of is None:
        return "—"
    if standing.allocator.name == summary.baseline:
        return "1"
    same = UNDECIDED.get(of.verdict, "")
    text = number(of.mean.mean) if short else interval(of.mean)
    return f"{text}{same}"


# The rule of statistics.enough_rounds, for whoever reads a count of verdicts.
ENOUGH = (
    f"Enough rounds are {ENOUGH_PAIRS}, or {FEWEST_PAIRS}"
    f" where the interval is within ± {NARROW:.0%}"
)


def counted(summary: Summary, ours: str) -> list[str]:
    """For each metric a sentence: rows won, lost, level, and those with too few rounds to say."""
    lines = []
    for metric in ROW:
        found = summary.verdicts(ours, metric)
        if found.rows:
            lines.append(
                f"{ours}, {title(metric)}, against the best rival of each of {found.rows} rows:"
                f" shown to win in {len(found.wins)}, to lose in {len(found.losses)}; no difference"
                f" shown in {len(found.level)}; not enough rounds to say in {len(found.open)}."
            )
    return lines


def named(rows: Sequence[Shown]) -> str:
    """Rows with their ratio and the rival: "xmalloc 1.25 (snmalloc)", of memory said so."""
    told = (
        f"{one.cell} {'memory ' if one.metric == MEMORY else ''}{one.against.ratio.median:.2f}"
        f" ({one.against.other})"
        for one in rows
    )
    return "; ".join(told) or "none"


def sat_out(summary: Summary) -> str:
    """Who was too slow for the later rounds of a league's rows; "" if nobody was."""
    rows = summary.result.options.get("sat_out", {})
    told = "; ".join(f"{row}: {', '.join(names)}" for row, names in rows.items())
    return (
        f"Far slower than the others, so not in the later rounds of the row: {told}."
        if told
        else ""
    )
