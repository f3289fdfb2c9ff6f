# SPDX-License-Identifier: MIT
"""Sweeps: the same workload at several numbers of threads or sizes of objects, one line each.

Both axes are logarithmic, so a line that rises at the same slope everywhere grows by the same
factor for each doubling. Bands are the intervals of the medians. A point where an allocator failed
is missing from its line and has a cross at the top of the chart.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import altair as alt

from .. import summary as tables
from ..model import MEMORY, Status
from ..summary import Row as TableRow
from .look import FAILED
from .parts import (
    Drawing,
    Figure,
    Layered,
    Row,
    data,
    drawn,
    kib,
    own,
    plain_colour,
    plain_shape,
    quiet_axis,
    series,
    slug,
    unit_of,
    width,
)

SECTION = "Threads and sizes"
AXES = {"threads": "threads", "size": "size of an object, bytes (Ki: 1024, Mi: 1024²)"}
SIZE_LABEL = (
    "datum.value >= 1048576 ? datum.value / 1048576 + ' Mi' : "
    "datum.value >= 1024 ? datum.value / 1024 + ' Ki' : datum.value"
)
QUESTIONS = {
    "threads": "what happens with more threads?",
    "size": "what does the size of the objects change?",
}


def figures(drawing: Drawing) -> list[Figure]:
    """One figure for each swept workload; one that says so for an axis that nobody swept."""
    groups: dict[tuple[str, str], list[TableRow]] = {}
    for row in drawing.summary.rows:
        if row.cell.axis:
            groups.setdefault((row.cell.axis, row.cell.workload), []).append(row)
    found = []
    for axis, question in QUESTIONS.items():
        charts = [
            _figure(drawing, axis, work, rows)
            for (its, work), rows in groups.items()
            if its == axis
        ]
        absent = f"No workload was run at several values of “{AXES[axis]}”."
        found += charts or [
            Figure(f"sweep-{axis}", SECTION, question.capitalize(), "", absent=absent)
        ]
    others = {key: rows for key, rows in groups.items() if key[0] not in QUESTIONS}
    return found + [_figure(drawing, axis, work, rows) for (axis, work), rows in others.items()]


def _figure(drawing: Drawing, axis: str, workload: str, rows: Sequence[TableRow]) -> Figure:
    title = f"{workload}: {QUESTIONS.get(axis, f'what does {axis} change?')}"
    key = f"sweep-{slug(workload)}"
    ordered = sorted(rows, key=lambda row: row.cell.at)
    panels = [
        panel
        for metric in (tables.own_key(ordered[0].cell), MEMORY)
        for panel in [_panel(drawing, axis, ordered, metric)]
        if panel
    ]
    if not panels:
        return Figure(key, SECTION, title, "", absent="No point of this sweep has a result.")
    note = "Medians with their 95 % intervals as bands (or bars). ✕: an allocator failed there."
    shown = ordered[0].cell.shows
    return Figure(
        key, SECTION, title, f"{shown}. {note}" if shown else note, alt.vconcat(*panels, spacing=14)
    )


def _panel(drawing: Drawing, axis: str, rows: Sequence[TableRow], metric: str) -> Layered | None:
    points = [
        point
        for name in reversed(drawing.names)  # ours last, on top
        for row in rows
        for point in _point(drawing, row, name, metric)
    ]
    if not points:
        return None
    figure = rows[0].cell.figure
    largest = max(point["value"] for point in points)
    unit, factor = ("MiB", 1 / 1024) if metric == MEMORY else unit_of(figure, largest)
    for point in points:
        point |= {key: point[key] and point[key] * factor for key in ("value", "low", "high")}
    stops = [row.cell.at for row in rows]
    scale = alt.Scale(type="log", base=2, nice=False) if min(stops) > 0 else alt.Scale(nice=False)
    x = alt.X(
        "at:Q",
        scale=scale,
        axis=quiet_axis(
            AXES.get(axis, axis),
            values=stops,
            labelExpr=SIZE_LABEL if axis == "size" else "format(datum.value, ',d')",
        ),
    )
    y = alt.Y("value:Q", scale=alt.Scale(type="log", nice=False),
              axis=quiet_axis(f"{tables.title(metric)}, {unit}", tickCount=6))  # fmt: skip
    base = alt.Chart(data(points))
    names, styles = drawing.names, drawing.styles
    layers = [
        base.mark_area(opacity=0.14, aria=False).encode(
            x=x, y="low:Q", y2="high:Q", color=plain_colour(), detail="allocator:N"
        ),
        base.mark_line(aria=False).encode(x=x, y=y, strokeWidth=width(), **series(names, styles)),
        base.mark_point(filled=True, size=30, opacity=1).encode(
            x=x,
            y=y,
            color=plain_colour(),
            shape=plain_shape(),
            description="tip:N",
        ),
    ]
    whole = [point for point in points if point["low"] is not None]
    if len(whole) < len(points):  # a band needs neighbours that have intervals too
        whiskers = alt.Chart(data(whole)).mark_rule(opacity=0.6, aria=False)
        layers.append(whiskers.encode(x=x, y="low:Q", y2="high:Q", color=plain_colour()))
    failed = _failures(drawing, rows)
    if failed:
        layers.append(
            alt.Chart(data(failed))
            .mark_text(color=FAILED, fontSize=13, fontWeight="bold", dy=-2, baseline="bottom")
            .encode(x=x, y=alt.value(0), text=alt.value("✕"), description="tip:N")
        )
    return alt.layer(*layers).properties(width=620, height=220 if metric == MEMORY else 300)


def _point(drawing: Drawing, row: TableRow, name: str, metric: str) -> list[Row]:
    estimate = row.entries[name].estimates.get(metric)
    if estimate is None or estimate.median <= 0:
        return []
    known = math.isfinite(estimate.high) and estimate.low > 0
    show = kib if metric == MEMORY else functools.partial(own, row.cell.figure)
    span = f", 95 % interval {show(estimate.low)} to {show(estimate.high)}" if known else ""
    return [
        {
            "allocator": name,
            "at": row.cell.at,
            "value": estimate.median,
            "low": estimate.low if known else None,
            "high": estimate.high if known else None,
            "tip": f"{name} · {row.cell.name}: {show(estimate.median)}{span}",
            **drawn(drawing.styles[name]),
        }
    ]


def _failures(drawing: Drawing, rows: Sequence[TableRow]) -> list[Row]:
    """One cross for each point where somebody failed, with all of their reasons."""
    marks = []
    for row in rows:
        reasons = [
            f"{name} {entry.status}: {entry.reason}"
            for name in drawing.names
            for entry in [row.entries[name]]
            if entry.status not in (Status.OK, Status.MISSING)
        ]
        if reasons:
            marks.append({"at": row.cell.at, "tip": f"{row.cell.name}: " + "; ".join(reasons)})
    return marks
