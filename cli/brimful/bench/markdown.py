# SPDX-License-Identifier: MIT
"""The tables as Markdown, for pages such as docs/evaluation.md: league, rows, failures, losses.

Only formats what `summary` has computed, with the marks of `wording`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .allocators import OURS
from .contention import NOT_COUNTED
from .model import MEMORY
from .summary import word
from .tables import FIGURE, MAIN, OTHER, Summary, figures_of, own_key
from .wording import (
    ENOUGH,
    LOCK_HEADS,
    SHORT,
    absolute,
    against,
    counted,
    interval,
    judged,
    lock_row,
    named,
    ratio_or_value,
    sat_out,
    value,
    with_goal,
)


def page(summary: Summary) -> str:
    """All of it."""
    parts = (_head, _league, _ratios, figures, locks, _ours, _verdicts, _failures, _missing)
    return "\n".join(line for part in parts for line in part(summary))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    rule = "|---|" + "---:|" * (len(head) - 1)
    lines = (f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows)
    return [f"| {' | '.join(head)} |", rule, *lines, ""]


def _head(summary: Summary) -> list[str]:
    lines = []
    for one in summary.headlines:
        what = "peak memory" if one.metric == MEMORY else "time"
        over, each = one.over_rival, one.over_best_of_each
        lines.append(
            f"- **{one.ours}, {what}**: {interval(over.mean)} of {one.rival}, the best rival overall "
            f"({word(over.verdict, one.metric)}); {interval(each.mean)} of the best rival of each row "
            f"({word(each.verdict, one.metric)})."
        )
    floor = summary.noise[FIGURE]
    if floor.cells:
        lines.append(
            f"- Noise floor: two runs of the same allocator differ by {floor.typical:.1%} in time"
            f" (median over {len(floor.cells)} rows). ≈ means that no difference is shown."
        )
    if summary.frontier:
        lines.append(f"- Nobody is better in both means than: {', '.join(summary.frontier)}.")
    if not summary.result.finished:
        lines.append("- The run did not reach its end: some rows have few samples.")
    return [*lines, ""]


def _league(summary: Summary) -> list[str]:
    head = ["allocator", "version", "time", "peak memory", "rows", "time +/−/≈", "memory +/−/≈"]
    rows = []
    for standing in summary.league:
        tallies = (standing.tally[metric] for metric in MAIN)
        rows.append(
            [
                standing.allocator.name,
                standing.allocator.version,
                *(judged(summary, standing, standing.common.get(metric)) for metric in MAIN),
                str(len(summary.common_rows)) if standing.common else "—",
                *(f"{t.better}/{t.worse}/{t.same + t.too_few}" for t in tallies),
            ]
        )
    about = (
        f"Geometric means of ratios to {summary.baseline} over the {len(summary.common_rows)} rows in"
        " which all succeeded (a sweep counts as one), with 95 % intervals; +/−/≈ count rows that are"
        " better, worse, not shown to differ."
    )
    return [about, "", *table(head, rows)]


def _ratios(summary: Summary) -> list[str]:
    names = [s.allocator.name for s in summary.league if s.allocator.name != summary.baseline]
    rows = []
    for row in summary.rows:
        if not row.cell.missing:
            base = value(row, row.entries[summary.baseline])
            ratios = (ratio_or_value(row, row.entries[name]).strip() for name in names)
            rows.append([row.cell.name, base, *ratios])
    others = [f"{r.cell.name} ({r.cell.figure})" for r in summary.rows if own_key(r.cell) == OTHER]
    about = (
        f"Own figure of each row (a time unless said below) over {summary.baseline}'s. * best, + not"
        " shown to be worse than the best."
    )
    not_times = f" Not times: {', '.join(others)}." if others else ""
    return [about + not_times, "", *table(["row", summary.baseline, *names], rows)]


def goals(summary: Summary) -> list[str]:
    """A line for each figure of brimful with a goal, then the tables with everybody's."""
    lines = []
    for row in summary.rows_with_figures():
        for metric in row.cell.figures:
            if metric.goal is None or OURS not in row.entries:
                continue
            entry = row.entries[OURS]
            have = dict(figures_of(row, entry))
            said = f"{SHORT[entry.status]}: {entry.reason}" if not entry.ok else "no figure"
            if metric in have:
                median = have[metric].median
                verdict = "met" if median < metric.goal else "**missed**"
                said = f"{absolute(metric, median)[:-2]}, {verdict}"
            lines.append(f"- {row.cell.name}: {with_goal(metric)}: {said}.")
    return [*lines, "", *figures(summary)] if lines else figures(summary)


def figures(summary: Summary) -> list[str]:
    """The rows' further figures, which are absolute: a table for each such row."""
    lines = []
    for row in summary.rows_with_figures():
        rows = []
        for name in summary.present:
            entry = row.entries[name]
            have = dict(figures_of(row, entry))
            cells = (
                absolute(metric, have[metric].median)
                if metric in have
                else SHORT.get(entry.status, "—")
                for metric in row.cell.figures
            )
            rows.append([name, *cells])
        lines += [f"{row.cell.name}: {row.cell.title}.", ""]
        lines += table(["allocator", *map(with_goal, row.cell.figures)], rows)
    return lines


def locks(summary: Summary) -> list[str]:
    """Lock counters of ours; the others have none, which one line says."""
    ours = {allocator.name for allocator in summary.result.allocators if allocator.ours}
    rows = [lock_row(one) for one in summary.contention if one.allocator in ours]
    if not rows:
        return []
    about = (
        "Locks, counted in runs of their own; an operation is a malloc and its free. Everybody else:"
        f" {NOT_COUNTED}."
    )
    return [about, "", *table(LOCK_HEADS, rows)]


def _ours(summary: Summary) -> list[str]:
    """Each of ours over the best rival of each row."""
    lines = []
    for name in (s.allocator.name for s in summary.league if s.allocator.ours):
        rows = []
        for row in summary.rows:
            if row.cell.missing:
                continue
            entry = row.entries[name]
            cells = [text for m in (own_key(row.cell), MEMORY) for text in against(row, name, m)]
            rows.append(
                [row.cell.name, *(cells if entry.ok else [SHORT[entry.status], "", "", ""])]
            )
        head = ["row", "time or own figure", "best rival", "peak memory", "best rival"]
        lines += [f"{name} over the best rival of each row (below 1 is better):", ""]
        lines += table(head, rows)
    return lines


def _verdicts(summary: Summary) -> list[str]:
    lines = []
    for name in (s.allocator.name for s in summary.league if s.allocator.ours):
        lines += [f"- {line}" for line in counted(summary, name)]
        for what, shown in (
            (f"Rows in which {name} is shown to lose", summary.losses),
            (f"Rows in which {name} is shown to win", summary.wins),
            (f"Rows without enough rounds to say of {name}", summary.open),
        ):
            lines += ["", f"{what}: {named([one for one in shown if one.ours == name])}."]
        lines.append("")
    slow = sat_out(summary)
    return [*lines, f"{ENOUGH}.", "", *([slow, ""] if slow else [])] if lines else []


def _failures(summary: Summary) -> list[str]:
    failed = [
        [cell, standing.allocator.name, reason]
        for standing in summary.league
        for cell, reason in standing.failed
    ]
    if not failed:
        return ["Failed cells: none.", ""]
    return ["Failed cells:", "", *table(["row", "allocator", "reason"], sorted(failed))]


def _missing(summary: Summary) -> list[str]:
    lines = [f"- {one.name}: {one.missing}" for one in summary.missing]
    lines += [f"- row {r.cell.name}: {r.cell.missing}" for r in summary.rows if r.cell.missing]
    return ["Not to be had:", "", *lines, ""] if lines else []
