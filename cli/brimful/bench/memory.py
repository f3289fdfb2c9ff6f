# SPDX-License-Identifier: MIT
"""The figures about memory, as Markdown for docs/evaluation.md.

`page` is of one result: figures with a goal, the page faults of rows that need more than 64 MiB,
and what a trivial process holds. `means` is of several results together
(all workloads and the real programs): the geometric means that the project has promised, and the
rows that break a promise although the mean keeps it. A figure that is missing has its reason in its
place, and a goal that is missed says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from . import lean, markdown, statistics
from .allocators import BACKGROUND, OURS, SYSTEM
from .model import MEMORY
from .statistics import Mean
from .tables import FIGURE, Row, Summary, own_key
from .wording import SHORT, interval, number, value

SECOND = "snmalloc"  # the fastest rival when the goals were set, against which memory is promised
MEMORY_GOALS = {SYSTEM: 1.0, SECOND: 0.90}
TIME_GOAL = 0.92  # of the best rival's mean
ROW_GOAL = 1.03  # of the best rival of a row, in time
LEAN_GOAL = 1.05  # of the leanest rival that is nearly as fast, on real programs
FEW_KIB = 64 << 10  # rows below it have no fault figures: start-up decides there
FAULTS = "minor_faults"
TRIVIAL = "trivial-process"
WORST = 5  # rows that are named one by one


def page(summary: Summary) -> str:
    """All of it: whatever the result has the rows for."""
    parts = (markdown.goals, _background, _trivial, _times, _faults, _failures)
    return "\n".join(line for part in parts for line in part(summary))


def _failures(summary: Summary) -> list[str]:
    lines = [
        f"- Failed: {standing.allocator.name} in {cell}: {reason}."
        for standing in summary.league
        for cell, reason in standing.failed
    ]
    lines += [f"- Not measured: {one.name}: {one.missing}." for one in summary.missing]
    if not summary.result.finished:
        lines.append("- The run did not reach its end: some rows have few samples.")
    return [*lines, ""] if lines else []


def _median(row: Row, name: str, metric: str) -> float | None:
    entry = row.entries.get(name)
    found = entry.estimates.get(metric) if entry is not None else None
    return found.median if found is not None else None


def _rivals(summary: Summary) -> list[str]:
    return [a.name for a in summary.result.allocators if not a.ours and not a.missing]


# --- one result ----------------------------------------------------------------------------------


def _background(summary: Summary) -> list[str]:
    """The goals again for brimful with its background thread, if it took part."""
    lines = []
    for row in summary.rows_with_figures():
        for metric in row.cell.figures:
            median = _median(row, BACKGROUND, metric.key)
            if metric.goal is None or median is None:
                continue
            verdict = "met" if median < metric.goal else "**missed**"
            figure = f"{median:.3g}, goal: below {metric.goal:g}"
            lines.append(f"- {BACKGROUND}, {row.cell.name}: {metric.title}: {figure}, {verdict}.")
    return [*lines, ""] if lines else []


def _trivial(summary: Summary) -> list[str]:
    """What a trivial process holds, and by how much that is more than under the system's malloc."""
    rows = [row for row in summary.rows if row.cell.workload == TRIVIAL]
    lines = []
    for row in rows:
        base = _median(row, SYSTEM, row.cell.figure)
        if base is None:
            continue
        more = {name: _median(row, name, row.cell.figure) for name in summary.present}
        said = ", ".join(
            f"{name} {kib - base:+,.0f} KiB"
            for name, kib in sorted(more.items(), key=lambda item: item[1] or 0)
            if kib is not None and name != SYSTEM
        )
        lines += [f"A trivial process over {SYSTEM}'s {base:,.0f} KiB: {said}.", ""]
    return lines


def _times(summary: Summary) -> list[str]:
    """Time of brimful against the best rival of each row, where the row's figure is a time."""
    lines = []
    for row in summary.rows:
        against = row.ours.get(OURS, {}).get(FIGURE)
        if own_key(row.cell) != FIGURE or against is None:
            continue
        ours, other = (value(row, row.entries[name]) for name in (OURS, against.other))
        ratio = f"{interval(against.ratio)} × {against.other}'s {other}, the best rival's"
        lines.append(f"- {row.cell.name}: {OURS} {ours}: {ratio}.".replace("*", ""))
    return ["Time:", "", *lines, ""] if lines else []


def _faults(summary: Summary) -> list[str]:
    """Page faults of each row that needs more than FEW_KIB under the leanest allocator."""
    if OURS not in summary.present or not _rivals(summary):
        return []
    rows, fewest = [], 0
    for row in summary.rows:
        sizes = [_median(row, name, MEMORY) for name in summary.present]
        ours = _median(row, OURS, FAULTS)
        counts = {name: _median(row, name, FAULTS) for name in _rivals(summary)}
        known = {name: count for name, count in counts.items() if count is not None}
        if min((size for size in sizes if size is not None), default=0) < FEW_KIB:
            continue
        if ours is None or not known:
            entry = row.entries.get(OURS)
            said = f"{SHORT[entry.status]}: {entry.reason}" if entry and entry.reason else "—"
            rows.append([row.cell.name, said, "", "", ""])
            continue
        best = min(known, key=lambda name: known[name])
        fewest += ours <= known[best]
        verdict = "fewest" if ours <= known[best] else "**more**"
        ratio = number(ours / known[best]) if known[best] > 0 else "—"
        rows.append([row.cell.name, f"{ours:,.0f}", f"{best} {known[best]:,.0f}", ratio, verdict])
    if not rows:
        return []
    about = (
        f"Page faults (minor) of rows that need more than {FEW_KIB >> 10} MiB: {OURS} has the fewest"
        f" in {fewest} of {len(rows)}."
    )
    head = ["row", OURS, "fewest of the rivals", f"{OURS} ÷ fewest", "verdict"]
    return [about, "", *markdown.table(head, rows)]


# --- several results together --------------------------------------------------------------------


def means(summaries: Sequence[Summary]) -> str:
    """The geometric means over the rows of all these results, and what single rows say."""
    names = _in_all(summaries)
    if OURS not in names or SYSTEM not in names:
        return f"No means: {OURS} or {SYSTEM} is not in all results.\n"
    table = []
    for name in names:
        pair = (_mean(summaries, name, SYSTEM, metric) for metric in (FIGURE, MEMORY))
        table.append([name, *("1" if name == SYSTEM else _shown(mean) for mean in pair)])
    table.sort(key=lambda cells: cells[2])
    count = sum(len(summary.common_rows) for summary in summaries)
    about = (
        f"Geometric means over {SYSTEM} of the {count} rows (workloads and real programs; a sweep"
        " counts as one) in which all succeeded:"
    )
    lines = [*_promises(summaries, names), *_single_rows(summaries), *_lean_rows(summaries)]
    return "\n".join(
        [*lines, "", about, "", *markdown.table(["allocator", "time", "peak memory"], table)]
    )


def _in_all(summaries: Sequence[Summary]) -> list[str]:
    """Allocators that are in the common rows of every result, in the first's order."""
    out = {name for summary in summaries for name, _ in summary.not_common}
    return [
        name
        for name in summaries[0].present
        if name not in out and all(name in summary.present for summary in summaries)
    ]


def _mean(summaries: Iterable[Summary], one: str, other: str, metric: str) -> Mean | None:
    """one / other over the common rows of all, each workload counted once."""
    groups: dict[str, list[Sequence[float]]] = defaultdict(list)
    for summary in summaries:
        cells = {cell.name: cell for cell in summary.result.cells}
        for name in summary.common_rows:
            logs = summary.samples.logs(name, one, other, metric)
            if logs:
                groups[cells[name].workload].append(logs)
    return statistics.geometric_mean(groups) if groups else None


def _shown(mean: Mean | None) -> str:
    return "no figure" if mean is None else interval(mean)


def _line(what: str, mean: Mean | None, goal: float) -> str:
    if mean is None:
        return f"- {what}: no figure."
    verdict = "met" if mean.mean <= goal else "**missed**"
    return f"- {what}: {interval(mean)} (goal: at most {goal:.2f}), {verdict}."


def _promises(summaries: Sequence[Summary], names: Sequence[str]) -> list[str]:
    ours = {a.name for summary in summaries for a in summary.result.allocators if a.ours}
    lines = [
        _line(f"Peak memory over {name}'s", _mean(summaries, OURS, name, MEMORY), goal)
        if name in names
        else f"- Peak memory over {name}'s: it is not in all results."
        for name, goal in MEMORY_GOALS.items()
    ]
    speeds = {
        name: mean.mean
        for name in names
        if name not in ours and (mean := _mean(summaries, name, SYSTEM, FIGURE)) is not None
    }
    if not speeds:
        return [*lines, "- Time: no rival has figures."]
    best = min(speeds, key=lambda name: speeds[name])
    over = _mean(summaries, OURS, best, FIGURE)
    return [*lines, _line(f"Time over {best}'s, the best rival's", over, TIME_GOAL)]


def _single_rows(summaries: Sequence[Summary]) -> list[str]:
    """Rows whose time is above ROW_GOAL of the best rival on them."""
    over = {
        row.cell.name: (against.ratio.median, against.other)
        for summary in summaries
        for row in summary.rows
        if (against := row.ours.get(OURS, {}).get(FIGURE)) is not None
    }
    return [_worst("Time over the best rival of each row", over, ROW_GOAL)]


def _lean_rows(summaries: Sequence[Summary]) -> list[str]:
    """Real programs whose peak memory is above LEAN_GOAL of the leanest rival nearly as fast."""
    over = {}
    for summary in summaries:
        for row in summary.rows:
            name = lean.leanest(summary, row) if row.cell.family == "program" else None
            ratio = name and summary.samples.ratio(row.cell.name, OURS, name, MEMORY)
            if name and ratio:
                over[row.cell.name] = (ratio.median, name)
    what = "Real programs: peak memory over the leanest rival within 10 % of the best time"
    return [_worst(what, over, LEAN_GOAL)]


def _worst(what: str, over: dict[str, tuple[float, str]], goal: float) -> str:
    """A line with the rows that break the goal, the worst first; else with the worst."""
    if not over:
        return f"- {what}: no such row."
    order = sorted(over, key=lambda name: -over[name][0])
    broken = [name for name in order if over[name][0] > goal]
    named = [f"{name} {number(over[name][0])} ({over[name][1]})" for name in order]
    if not broken:
        return f"- {what} (goal: at most {goal:.2f} in each of {len(over)}): worst {named[0]}, met."
    rest = f" and {len(broken) - WORST} more" if len(broken) > WORST else ""
    shown = ", ".join(named[: min(len(broken), WORST)])
    return (
        f"- {what} (goal: at most {goal:.2f} in each of {len(over)}): **missed** in {len(broken)}:"
        f" {shown}{rest}."
    )
