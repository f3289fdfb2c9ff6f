# SPDX-License-Identifier: MIT
"""The tables of the report: allocators, league, rows, losses, failures, environment."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import summary as tables
from ..charts.parts import kib, own, percent
from ..model import MEMORY, Allocator, Cell, Status
from ..statistics import Estimate
from ..summary import MAIN, Against, Entry, Judged, Row, Shown, Summary, Tally
from ..tables import figures_of, seconds_per_unit
from ..wording import LOCK_HEADS, MISSED, absolute, lock_row, other_unit, with_goal
from .markup import Markup, element, join, table
from .words import change_class, interval


def allocators(everyone: Iterable[Allocator]) -> Markup:
    """Who took part, in exactly which version, and who could not."""
    rows = []
    for one in everyone:
        settings = " ".join(f"{key}={value}" for key, value in one.settings.items())
        state: object = element("span", f"missing: {one.missing}", class_="failed")
        if not one.missing:
            state = join(filter(None, [one.mode, settings]), "; ") or "–"
        digest = element("span", one.sha256 or "–", class_="hash")
        title = element("small", one.title) if one.title and one.title != one.name else ""
        name = join([one.name, title])
        rows.append(([name, one.version or "–", one.origin or "–", state, digest], _kind(one.ours)))
    heads = ("allocator", "version", "origin", "mode, settings", "SHA-256 of the library")
    return table("Allocators", heads, rows)


def league(summary: Summary) -> Markup:
    """Everybody over the baseline, best mean time first."""
    rows = []
    for place, one in enumerate(summary.league, 1):
        common = set(MAIN) <= set(one.common)
        means = one.common if common else one.means
        fields = [
            one.allocator.name,
            str(place) if common else "–",
            *(_mean(metric, means.get(metric)) for metric in MAIN),
            *(_tally(one.tally[metric]) for metric in MAIN),
            str(len(one.failed)) if one.failed else "–",
        ]
        rows.append((fields, _kind(one.allocator.ours)))
    heads = (
        *("allocator", "place", "time", "peak memory"),
        *("rows by time: better / worse / not shown / too few rounds?", "by memory", "failed"),
    )
    caption = (
        f"Geometric means over {summary.baseline}, less is better; over the "
        f"{len(summary.common_rows)} rows in which everyone with a place succeeded"
    )
    return table(caption, heads, rows, numbers=(1, 2, 3, 4, 5, 6))


def _mean(metric: str, one: Judged | None) -> object:
    if one is None:
        return "–"
    verdict = element("small", tables.word(one.verdict, metric), class_=change_class(one.verdict))
    ends = element("small", interval(one.mean, change=False))
    return join([element("b", f"{one.mean.mean:.3f}"), ends, verdict])


def _tally(one: Tally) -> str:
    few = f" / {one.too_few}?" if one.too_few else ""
    return f"{one.better} / {one.worse} / {one.same}{few}"


def left_out(summary: Summary) -> list[str]:
    """Who has no place, or whose means lack rows, and why."""
    found = [f"{name} has no place: {why}." for name, why in summary.not_common]
    lost = [row.cell.name for row in summary.rows if row.cell.name not in summary.common_rows]
    if lost:
        found.append(
            f"{len(lost)} of {len(summary.rows)} rows are not among the common ones: {', '.join(lost)}."
        )
    return found


def rows(summary: Summary, ours: str) -> Markup:
    """Each row: one of ours against the best rival there, in time and in memory."""
    lines = []
    for row in summary.rows:
        fields: list[object] = [_name(row)]
        for metric in (tables.own_key(row.cell), MEMORY):
            fields += _duel(row, row.entries[ours], metric)
        lines.append((fields, ""))
    heads = ["row"]
    for what in ("time or own figure", "peak memory"):
        heads += [f"{what}, {ours}", "best rival", "change"]
    caption = f"{ours} against the best rival of each row; medians with 95 % intervals"
    return table(caption, heads, lines, numbers=(1, 2, 3, 4, 5, 6))


def _name(row: Row) -> Markup:
    title = row.cell.title if row.cell.title != row.cell.name else ""
    return join([row.cell.name, element("small", title) if title else ""])


def _duel(row: Row, entry: Entry, metric: str) -> list[object]:
    """Ours, the best rival, and the change with its verdict."""
    rival = row.best_rival.get(metric)
    theirs = row.entries[rival].estimates.get(metric) if rival else None
    best = (
        join([_median(row, metric, theirs), element("small", rival)]) if rival and theirs else "–"
    )
    if not entry.ok:
        status = element("b", f"✕ {entry.status}", class_="failed")
        return [join([status, element("small", entry.reason, class_="reason")]), best, "–"]
    own = entry.estimates.get(metric)
    mine = _median(row, metric, own) if own else "–"
    return [mine, best, _change(metric, row.ours.get(entry.allocator, {}).get(metric))]


def _change(metric: str, against: Against | None) -> object:
    if against is None:
        return element("small", "nothing to compare with")
    word = tables.word(against.verdict, metric)
    return join(
        [
            element("b", percent(against.ratio.median)),
            element("small", interval(against.ratio)) if against.ratio.claims else "",
            element("small", word, class_=change_class(against.verdict)),
        ]
    )


def _median(row: Row, metric: str, estimate: Estimate) -> Markup:
    """The median, and its interval in small print."""
    ends = [_show(row, metric, end) for end in (estimate.low, estimate.high)]
    known = math.isfinite(estimate.high)
    span = " to ".join(ends) if known else f"{estimate.count} rounds"
    return join([element("b", _show(row, metric, estimate.median)), element("small", span)])


def _show(row: Row, metric: str, value: float) -> str:
    if metric == MEMORY:
        return kib(value)
    if seconds_per_unit(row.cell.figure) is not None:
        return own(row.cell.figure, value)
    name = row.cell.figure.replace("_", " ")
    return own(row.cell.figure, value) + (other_unit(row) or f" {name}")


def figures(summary: Summary) -> list[Markup]:
    """A table for each row that has further figures of its own, which are absolute."""
    found = []
    for row in summary.rows_with_figures():
        lines = []
        for name in summary.present:
            entry = row.entries[name]
            have = dict(figures_of(row, entry))
            fields: list[object] = [name]
            for metric in row.cell.figures:
                text = absolute(metric, have[metric].median) if metric in have else "–"
                missed = text.endswith(MISSED)
                fields.append(element("span", text, class_="worse") if missed else text)
            lines.append((fields, _kind(summary.result.allocator(name).ours)))
        heads = ("allocator", *map(with_goal, row.cell.figures))
        caption = f"{row.cell.name}: {row.cell.title}"
        found.append(table(caption, heads, lines, numbers=range(1, len(heads))))
    return found


def locks(summary: Summary) -> Markup | None:
    """Lock counters of everybody in each row, or why there are none."""
    if not summary.contention:
        return None
    lines = [
        (lock_row(one), _kind(summary.result.allocator(one.allocator).ours))
        for one in summary.contention
    ]
    caption = "Locks, counted in runs of their own; an operation is a malloc and its free"
    return table(caption, LOCK_HEADS, lines, numbers=(4, 5, 6, 7))


def losses(summary: Summary, ours: str) -> Markup | None:
    """Every row in which ours is shown to be worse than the best rival, worst first."""
    lines: list[tuple[list[object], str]] = [
        (
            [
                one.cell,
                _figure_name(summary, one),
                one.against.other,
                percent(one.against.ratio.median),
                interval(one.against.ratio),
                str(one.against.ratio.pairs),
            ],
            "",
        )
        for one in summary.losses
        if one.ours == ours
    ]
    if not lines:
        return None
    heads = ("row", "metric", "best rival", "change", "95 % interval", "rounds")
    return table(f"Where {ours} loses, worst first", heads, lines, numbers=(3, 4, 5))


def _figure_name(summary: Summary, loss: Shown) -> str:
    if loss.metric == tables.OTHER:
        return summary.row(loss.cell).cell.figure.replace("_", " ")
    return tables.title(loss.metric)


def failures(summary: Summary) -> Markup | None:
    """Each cell in which somebody ran and failed."""
    lines = [
        ([row.cell.name, name, element("b", str(entry.status), class_="failed"), entry.reason], "")
        for row in summary.rows
        for name, entry in row.entries.items()
        if entry.status not in (Status.OK, Status.MISSING)
    ]
    if not lines:
        return None
    return table("Failed cells", ("row", "allocator", "how", "reason"), lines)


def missing(summary: Summary) -> Markup | None:
    """What was not run at all: whole rows, and single cells without their turn."""
    absent = {one.name for one in summary.missing}
    lines: list[tuple[Sequence[object], str]] = []
    for row in summary.rows:
        if row.cell.missing:
            lines.append(([row.cell.name, "everybody", row.cell.missing], ""))
            continue
        lines += [
            ([row.cell.name, name, entry.reason], "")
            for name, entry in row.entries.items()
            if entry.status is Status.MISSING and name not in absent
        ]
    if not lines:
        return None
    return table("Not run", ("row", "allocator", "reason"), lines)


def workloads(summary: Summary) -> Markup:
    """What each row is, what it imitates and what it shows."""
    lines = [
        (
            [
                row.cell.name,
                row.cell.family,
                row.cell.title or "–",
                row.cell.shows or "–",
                row.cell.source or "–",
                element("code", _command(row.cell)) if row.cell.command else "–",
            ],
            "",
        )
        for row in summary.rows
    ]
    heads = ("row", "family", "what it is", "what it shows", "after", "command")
    return table("Rows", heads, lines)


def _command(cell: Cell) -> str:
    """Without the folder that the program was built in."""
    return shlex.join([os.path.basename(cell.command[0]), *cell.command[1:]])


def facts(values: Mapping[str, Any]) -> Markup:
    """The environment as a list of terms."""
    pairs = list(_flat(values, ""))
    parts = [part for key, value in pairs for part in (element("dt", key), element("dd", value))]
    return element("dl", *parts)


def _flat(values: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, str]]:
    for key, value in values.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}: ")
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            yield name, "none" if value is None or text == "" else text


def _kind(ours: bool) -> str:
    return "ours" if ours else ""
