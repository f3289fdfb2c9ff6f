# SPDX-License-Identifier: MIT
"""Charts of single rows: the heat tables, and bars with the change against the baseline.

A heat table colours only what is shown to differ: a field without colour is "no difference shown",
however far from 1 its figure lies. Whoever failed has a cross there, and the reason in its tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt

from .. import summary as tables
from ..model import MEMORY, Status
from ..statistics import Verdict
from ..summary import FIGURE, MAIN, Entry
from ..summary import Row as TableRow
from .look import FAILED, FAINT, HEAT, ON_STRONG, ON_WEAK, PAPER
from .parts import Drawing, Figure, Layered, Row, bars, data, ends, interval_text, percent, slug

SECTION, BARS = "Row by row", "Row by row, as bars"
STEPS = (0.7, 0.85, 1.0)  # of the ratio; beyond 1 their reciprocals
BINS = (
    "below 0.70",
    "0.70–0.85",
    "0.85–1",
    "no difference shown",
    "1–1.18",
    "1.18–1.43",
    "above 1.43",
)
SIGNS = {
    Status.FAILED: "✕ failed",
    Status.CRASHED: "✕ crashed",
    Status.TIMED_OUT: "✕ timed out",
    Status.NOT_LOADED: "✕ not loaded",
    Status.MISSING: "– missing",
}


def heat(drawing: Drawing) -> list[Figure]:
    """One table for each row's own figure, one for memory."""
    return [_heat(drawing, metric) for metric in MAIN]


def _heat(drawing: Drawing, metric: str) -> Figure:
    names = [name for name in drawing.names if name != drawing.baseline]
    what = tables.title(metric)
    key = "heat-time" if metric == MAIN[0] else "heat-memory"
    if metric == FIGURE:
        what = "time, or the row's own figure"
    title = f"{what.capitalize()}: who is better than {drawing.baseline}, and where?"
    fields = [
        _field(drawing, row, name, tables.own_key(row.cell) if metric == FIGURE else metric)
        for row in drawing.summary.rows
        for name in names
    ]
    if not fields:
        absent = "There is nothing to compare: the run has one allocator, or no row."
        return Figure(key, SECTION, title, "", absent=absent)
    note = (
        f"Ratio to {drawing.baseline}; coloured only where a difference is shown, bold where nobody "
        "is shown to be better in the row and somebody to be worse. ✕ failed, "
        "– no result; rest on it for the reason."
    )
    return Figure(key, SECTION, title, note, _heat_chart(drawing, fields, names))


def _heat_chart(drawing: Drawing, fields: Sequence[Row], names: Sequence[str]) -> Layered:
    cells = [row.cell.name for row in drawing.summary.rows]
    axis = alt.Axis(
        title=None,
        orient="top",
        labelAngle=-40,
        labelOverlap=False,
        ticks=False,
        domain=False,
        grid=False,
    )
    x = alt.X("allocator:N", sort=list(names), axis=axis)
    side = alt.Axis(title=None, labelOverlap=False, ticks=False, domain=False, grid=False)
    y = alt.Y("cell:N", sort=cells, axis=side)
    legend = alt.Legend(
        title="ratio",
        orient="bottom",
        direction="horizontal",
        columns=7,
        symbolType="square",
        symbolStrokeColor=FAINT,
        symbolStrokeWidth=0.6,
    )
    colour = alt.Color("bin:N", scale=alt.Scale(domain=list(BINS), range=list(HEAT)), legend=legend)
    base = alt.Chart(data(fields)).encode(x=x, y=y)
    boxes = base.mark_rect(stroke=PAPER, strokeWidth=1.5).encode(color=colour, description="tip:N")
    layers: list[alt.Chart] = [boxes]
    for bold in (False, True):
        for ink in (ON_STRONG, ON_WEAK, FAILED):
            chosen = [row for row in fields if row["bold"] is bold and row["ink"] == ink]
            if chosen:
                text = alt.Chart(data(chosen)).mark_text(
                    color=ink, fontSize=10.5, fontWeight="bold" if bold else "normal"
                )
                layers.append(text.encode(x=x, y=y, text="text:N", description="tip:N"))
    return alt.layer(*layers).properties(width=alt.Step(52), height=alt.Step(19))


def _field(drawing: Drawing, row: TableRow, name: str, metric: str) -> Row:
    entry = row.entries[name]
    against = entry.to_baseline.get(metric)
    field: Row = {"allocator": name, "cell": row.cell.name, "bin": BINS[3], "bold": False}
    head = f"{name} · {row.cell.name}: "
    if not entry.ok:
        sign = SIGNS[entry.status][0]
        return field | {
            "text": sign,
            "ink": FAILED,
            "tip": head + f"{entry.status}: {entry.reason}",
        }
    if against is None:
        why = _why_no_ratio(drawing, row, metric)
        return field | {"text": "∅", "ink": ON_WEAK, "tip": head + why}
    level = row.level.get(metric, ())
    place = _bin(against.ratio.median, against.verdict)
    said = (
        f"{percent(against.ratio.median)} {tables.title(metric)}, {interval_text(against.ratio)}, "
        f"{against.ratio.pairs} rounds: {tables.word(against.verdict, metric)}"
    )
    return field | {
        "bin": BINS[place],
        "text": f"{against.ratio.median:.2f}",
        "ink": ON_STRONG if place in (0, 1, 5, 6) else ON_WEAK,
        "bold": name in level and len(level) < sum(one.ok for one in row.entries.values()),
        "tip": head + said,
    }


def _why_no_ratio(drawing: Drawing, row: TableRow, metric: str) -> str:
    base = row.entries[drawing.baseline]
    if not base.ok:
        return f"no ratio, because {drawing.baseline} is “{base.status}” here"
    return f"no ratio: no round has {tables.title(metric)} above 0 for both"


def _bin(ratio: float, verdict: Verdict) -> int:
    if verdict not in (Verdict.BETTER, Verdict.WORSE):
        return 3
    distance = math.exp(-abs(math.log(ratio)))
    step = next(place for place, limit in enumerate(STEPS) if distance <= limit)
    return step if ratio < 1 else 6 - step


# --- bars ----------------------------------------------------------------------------------------


def changes(drawing: Drawing) -> list[Figure]:
    """One figure for each family, time and memory beside each other; sweeps have charts of their own."""
    rows = [row for row in drawing.summary.rows if not row.cell.axis and not row.cell.missing]
    families = list(dict.fromkeys(row.cell.family for row in rows))
    found = [
        figure
        for family in families
        for figure in [_changes(drawing, family, [r for r in rows if r.cell.family == family])]
        if figure is not None
    ]
    if found:
        return found
    absent = "No row has figures of two allocators."
    title = f"By how much does each allocator differ from {drawing.baseline}?"
    return [Figure("changes", BARS, title, "", absent=absent)]


def _changes(drawing: Drawing, family: str, rows: Sequence[TableRow]) -> Figure | None:
    panels = []
    names = [name for name in drawing.names if name != drawing.baseline]
    for row in rows:
        for metric in (tables.own_key(row.cell), MEMORY):
            drawn = [_bar(row.entries[name], metric) for name in names
                     if _is_drawn(row.entries[name], metric)]  # fmt: skip
            what = tables.title(metric)
            if metric == tables.OTHER:
                what = row.cell.figure.replace("_", " ")
            if any(one["value"] is not None for one in drawn):
                panels.append(bars(drawing, drawn, f"{row.cell.name}: {what}"))
    if not panels:
        return None
    return Figure(
        f"changes-{slug(family)}",
        BARS,
        f"{family}: by how much does each allocator differ from {drawing.baseline}?",
        "Bars to the left are less time or memory; lines are 95 % intervals. The axes differ from "
        "panel to panel and are logarithmic.",
        alt.concat(*panels, columns=2, spacing=16),
    )


def _is_drawn(entry: Entry, metric: str) -> bool:
    return metric in entry.to_baseline or entry.status not in (Status.OK, Status.MISSING)


def _bar(entry: Entry, metric: str) -> Row:
    name = entry.allocator
    if not entry.ok:
        tip = f"{name} · {entry.status}: {entry.reason}"
        return {"allocator": name, "value": None, "tip": tip, "failed": SIGNS[entry.status]}
    against = entry.to_baseline[metric]
    tip = (
        f"{name} · {percent(against.ratio.median)}, {interval_text(against.ratio)}: "
        f"{tables.word(against.verdict, metric)}"
    )
    return {"allocator": name, "value": against.ratio.median, "tip": tip} | ends(against.ratio)
