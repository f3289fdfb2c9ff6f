# SPDX-License-Identifier: MIT
"""Charts along time: memory during one run, and the samples of one cell from round to round.

Memory: RSS counts a page shared with another process fully, PSS its share; for a single process
that shares nothing the two agree, and where they part, RSS alone misleads. A run has thousands of
readings; each line is thinned to the extremes within short spans, so no peak is lost.

Rounds: every allocator has one sample in each. If all lines slope, the machine drifts; if all have
a spike, something disturbed them; if one has, it is an outlier of that allocator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from ..model import Cell, Curve, Result, Sample, Status
from .look import FAINT, INK, Style
from .parts import (
    Figure,
    Layered,
    Row,
    data,
    drawn,
    kib,
    own,
    plain_colour,
    quiet_axis,
    series,
    slug,
    unit_of,
    width,
)

MEMORY_SECTION, RUN_SECTION = "Memory over time", "From run to run"
SPANS = 120  # of a line; each keeps its lowest and its highest reading
PANELS = 3  # side by side
Styles = Mapping[str, Style]


def memory(result: Result, names: Sequence[str], styles: Styles) -> list[Figure]:
    """One figure for each cell that has curves."""
    cells = list(dict.fromkeys(curve.cell for curve in result.curves))
    if not cells:
        return [
            Figure(
                "memory-over-time",
                MEMORY_SECTION,
                "How much memory is held, and when does it come back?",
                "",
                absent="No memory curve was recorded in this run.",
            )
        ]
    return [_memory(result, cell, names, styles) for cell in cells]


def _memory(result: Result, cell: str, names: Sequence[str], styles: Styles) -> Figure:
    curves = {curve.allocator: curve for curve in result.curves if curve.cell == cell}
    present = [name for name in names if name in curves]
    lines = [row for name in reversed(present) for row in _memory_rows(curves[name], styles[name])]
    marks = [
        row | {"label": phase.name} | drawn(styles[name])
        for name in present
        for phase in curves[name].phases
        for row in _at(curves[name], phase.at_s)
    ]
    reference = next((name for name in present if curves[name].phases), "")
    panels = [
        _memory_panel(kind, lines, marks, reference, (present, styles)) for kind in ("RSS", "PSS")
    ]
    return Figure(
        f"memory-{slug(cell)}",
        MEMORY_SECTION,
        f"{cell}: how much memory is held, and when does it come back?",
        "Dots and names mark the phases of the program; the names stand where "
        f"{reference or 'nobody'} reaches them. This run's time is not compared.",
        alt.vconcat(*panels, spacing=14),
    )


def _memory_panel(
    kind: str,
    lines: list[Row],
    marks: list[Row],
    reference: str,
    who: tuple[Sequence[str], Styles],
) -> Layered:
    of_kind = [row for row in lines if row["kind"] == kind]
    x = alt.X("t:Q", axis=quiet_axis("seconds since the start", tickCount=10))
    y = alt.Y("mib:Q", axis=quiet_axis(f"{kind}, MiB"), scale=alt.Scale(zero=True))
    line = (
        alt.Chart(data(of_kind))
        .mark_line()
        .encode(x=x, y=y, description="tip:N", strokeWidth=width(), **series(*who))
    )
    dots = (
        alt.Chart(data([row for row in marks if row["kind"] == kind]))
        .mark_point(filled=True, size=26, opacity=1)
        .encode(x=x, y=y, description="tip:N", color=plain_colour())
    )
    named = [row for row in marks if row["kind"] == kind and row["allocator"] == reference]
    longest = max((row["t"] for row in of_kind), default=0.0)
    rule = alt.Chart(data(named)).mark_rule(color=FAINT, strokeDash=[2, 3], aria=False).encode(x=x)
    texts = [
        alt.Chart(data(rows))
        .mark_text(align="left", baseline="bottom", dx=2, fontSize=10.5, color=INK, aria=False)
        .encode(x=x, y=alt.value(-1 - 12 * level), text="label:N")
        for level, rows in enumerate(_staggered(named, longest / 12))
    ]
    return alt.layer(rule, line, dots, *texts).properties(width=620, height=200)


def _staggered(named: Sequence[Row], nearest: float) -> list[list[Row]]:
    """The labels in lines, so that none covers the one before it."""
    lines: list[list[Row]] = []
    for row in sorted(named, key=lambda one: one["t"]):
        free = (line for line in lines if row["t"] - line[-1]["t"] >= nearest)
        line = next(free, None)
        if line is None:
            lines.append([row])
        else:
            line.append(row)
    return lines


def _memory_rows(curve: Curve, style: Style) -> list[Row]:
    rows = []
    for kind, values in (("RSS", curve.rss_kib), ("PSS", curve.pss_kib)):
        if not values:
            continue
        tip = f"{curve.allocator} · {kind} at most {kib(max(values))}, at the end {kib(values[-1])}"
        for place in _extremes(values):
            row = {"allocator": curve.allocator, "kind": kind, "tip": tip}
            rows.append(
                row | {"t": curve.seconds[place], "mib": values[place] / 1024, **drawn(style)}
            )
    return rows


def _extremes(values: Sequence[float]) -> list[int]:
    """The places to draw: ends, and the lowest and highest of each span."""
    step = max(1, len(values) // SPANS)
    places = {0, len(values) - 1}
    for start in range(0, len(values), step):
        span = range(start, min(start + step, len(values)))
        places |= {min(span, key=values.__getitem__), max(span, key=values.__getitem__)}
    return sorted(places)


def _at(curve: Curve, moment: float) -> list[Row]:
    """The reading at a moment, once for RSS and once for PSS."""
    if not curve.seconds:
        return []
    place = min(range(len(curve.seconds)), key=lambda k: abs(curve.seconds[k] - moment))
    rows = []
    for kind, values in (("RSS", curve.rss_kib), ("PSS", curve.pss_kib)):
        if place < len(values):
            tip = f"{curve.allocator} · {moment:.2f} s, {kind} {kib(values[place])}"
            row = {"allocator": curve.allocator, "kind": kind, "tip": tip}
            rows.append(row | {"t": moment, "mib": values[place] / 1024})
    return rows


def rounds(result: Result, names: Sequence[str], styles: Styles) -> list[Figure]:
    """One figure for each family, a panel for each of its cells."""
    families = list(dict.fromkeys(cell.family for cell in result.cells))
    figures = [_rounds(result, family, names, styles) for family in families]
    drawn = [figure for figure in figures if figure is not None]
    if drawn:
        return drawn
    return [
        Figure(
            "runs",
            RUN_SECTION,
            "Did the machine drift, and are there outliers?",
            "",
            absent="No cell has two or more successful rounds.",
        )
    ]


def _rounds(result: Result, family: str, names: Sequence[str], styles: Styles) -> Figure | None:
    panels = []
    for cell in (one for one in result.cells if one.family == family):
        rows = _round_rows(result, cell, names, styles)
        if len({row["round"] for row in rows}) > 1:
            panels.append(_round_panel(cell, rows, names, styles))
    if not panels:
        return None
    return Figure(
        f"runs-{slug(family)}",
        RUN_SECTION,
        f"{family}: did the machine drift, and are there outliers?",
        "Each round's sample of each allocator; a gap is a failed sample.",
        alt.concat(*panels, columns=PANELS, spacing=18),
    )


def _round_rows(result: Result, cell: Cell, names: Sequence[str], styles: Styles) -> list[Row]:
    samples = [one for one in result.samples if one.cell == cell.name and not one.again]
    rows: list[Row] = []
    for name in reversed(names):
        turns = {one.round: _own_figure(cell, one) for one in samples if one.allocator == name}
        values = [value for value in turns.values() if value is not None]
        if not values:
            continue
        low, high = (own(cell.figure, end) for end in (min(values), max(values)))
        tip = f"{name} · {cell.name}: {low} to {high} in {len(values)} rounds"
        fields = {"allocator": name, "tip": tip, **drawn(styles[name])}
        rows += [fields | {"round": turn + 1, "value": turns[turn]} for turn in sorted(turns)]
    return rows


def _own_figure(cell: Cell, sample: Sample) -> float | None:
    """None where the line has a gap."""
    value = sample.metrics.get(cell.figure, sample.extra.get(cell.figure))
    return value if sample.status is Status.OK and value else None


def _round_panel(cell: Cell, rows: list[Row], names: Sequence[str], styles: Styles) -> alt.Chart:
    unit, factor = unit_of(cell.figure, max(row["value"] or 0 for row in rows))
    rows = [row | {"value": row["value"] and row["value"] * factor} for row in rows]
    y = alt.Y(
        "value:Q", scale=alt.Scale(type="log", nice=False), axis=quiet_axis(unit, tickCount=4)
    )
    return (
        alt.Chart(data(rows), title=cell.name)
        .mark_line()
        .encode(
            x=alt.X("round:Q", axis=quiet_axis("round", tickMinStep=1, tickCount=5)),
            y=y,
            description="tip:N",
            strokeWidth=width(),
            **series(names, styles),
        )
        .properties(width=230, height=150)
    )
