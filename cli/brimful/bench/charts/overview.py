# SPDX-License-Identifier: MIT
"""Charts of the whole run: the league, every metric, the noise floor, use of memory.

All ratios are over the baseline, on a logarithmic axis: twice as fast and half as fast lie equally
far from 1. An interval that does not exist (too few rounds) is not drawn, and the tooltip says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt

from .. import summary as tables
from ..model import METRIC
from ..summary import FIGURE, MAIN, Standing
from . import scatter
from .look import FAINT, INK, SHADE
from .parts import (
    Drawing,
    Figure,
    Layered,
    Row,
    bars,
    data,
    ends,
    interval_text,
    percent,
    quiet_axis,
    ratio_axis,
    unity,
)

SECTION = "All rows together"
NOISE_SECTION = "Noise floor"


def figures(drawing: Drawing) -> list[Figure]:
    return [_league(drawing), scatter.figure(drawing, SECTION), _metrics(drawing)]


# --- league --------------------------------------------------------------------------------------


def _league(drawing: Drawing) -> Figure:
    title = "Who is fastest overall, and what does it cost in memory?"
    placed = [s for s in drawing.summary.league if set(MAIN) <= set(s.common)]
    if not placed:
        absent = "No row has results of all allocators, so no means can be put into an order."
        return Figure("league", SECTION, title, "", absent=absent)
    order = [standing.allocator.name for standing in placed]
    panels = [
        _league_panel(drawing, [_mean_row(s, metric) for s in placed], order, metric)
        for metric in MAIN
    ]
    note = (
        f"Geometric means over the {len(drawing.summary.common_rows)} rows in which all of these succeeded, "
        "each workload counted once; bars are 95 % intervals that also speak of other workloads. Where "
        "two overlap, the order between them is not sure."
    )
    return Figure("league", SECTION, title, note, alt.hconcat(*panels, spacing=26))


def _mean_row(standing: Standing, metric: str) -> Row:
    name, judged = standing.allocator.name, standing.common[metric]
    tip = (
        f"{name} · {tables.title(metric)} {judged.mean.mean:.3f}, {interval_text(judged.mean)}: "
        f"{tables.word(judged.verdict, metric)}"
    )
    value = judged.mean.mean
    return {"allocator": name, "value": value, "text": f"{value:.2f}", "tip": tip} | ends(
        judged.mean
    )


def _league_panel(drawing: Drawing, rows: Sequence[Row], order: list[str], metric: str) -> Layered:
    title = f"{tables.title(metric)}, ratio to {drawing.baseline}"
    x = alt.X(
        "value:Q",
        scale=alt.Scale(type="log", nice=False, padding=24),
        axis=ratio_axis(title, rows, "value", "low", "high"),
    )
    axis = alt.Axis(
        title=None, labels=metric == FIGURE, ticks=False, domain=False, labelFontSize=12
    )
    y = alt.Y("allocator:N", sort=order, axis=axis)
    base = alt.Chart(data(rows)).encode(y=y)
    whole = alt.Chart(data([row for row in rows if row["low"] is not None])).encode(y=y)
    rule = whole.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q"), x2="high:Q", color=drawing.colour(), description="tip:N"
    )
    point = base.mark_point(filled=True, size=95, opacity=1).encode(
        x=x,
        color=drawing.colour(),
        shape=drawing.shape(),
        description="tip:N",
    )
    text = base.mark_text(dy=-9, fontSize=9.5, color=FAINT, aria=False).encode(x=x, text="text:N")
    return alt.layer(unity("x"), rule, point, text).properties(width=340, height=alt.Step(28))


# --- every metric --------------------------------------------------------------------------------


def _metrics(drawing: Drawing) -> Figure:
    title = f"What does each allocator change in each metric, against {drawing.baseline}?"
    panels: list[Layered] = []
    same: list[str] = []
    for metric in _shown_metrics(drawing):
        rows = [
            _metric_row(s, metric)
            for s in drawing.summary.league
            if metric in s.means and s.allocator.name != drawing.baseline
        ]
        if not any(_differs(row) for row in rows):
            same += [tables.title(metric)] if rows else []
        else:
            panels.append(bars(drawing, rows, tables.title(metric), labels=len(panels) % 3 == 0))
    if not panels:
        absent = "No allocator has a figure that differs from the baseline's."
        return Figure("metrics", SECTION, title, "", absent=absent)
    note = (
        "Geometric means over all rows that have the metric for both; bars to the left are less. "
        "Lines are 95 % intervals; a bar whose line crosses 0 shows no difference."
    )
    if same:
        note += f" Nobody differs at all in: {', '.join(same)}."
    return Figure("metrics", SECTION, title, note, alt.concat(*panels, columns=3, spacing=20))


def _differs(row: Row) -> bool:
    return any(
        row[key] is not None and abs(row[key] - 1) > 1e-4 for key in ("value", "low", "high")
    )


def _shown_metrics(drawing: Drawing) -> list[str]:
    """All but those that say the same as the time, and those that have charts of their own."""
    figures = {row.cell.figure for row in drawing.summary.rows}
    same = figures if len(figures) == 1 else set()
    return [FIGURE, *(key for key in METRIC if key not in same | {"huge_share", "ullage"})]


def _metric_row(standing: Standing, metric: str) -> Row:
    name, judged = standing.allocator.name, standing.means[metric]
    tip = (
        f"{name} · {tables.title(metric)} {percent(judged.mean.mean)}, {interval_text(judged.mean)}, "
        f"over {judged.mean.rows} rows: {tables.word(judged.verdict, metric)}"
    )
    return {"allocator": name, "value": judged.mean.mean, "tip": tip} | ends(judged.mean)


# --- noise ---------------------------------------------------------------------------------------


def noise(drawing: Drawing) -> Figure:
    """The A/A pairs: each cell a tick for each of time and memory, the floor shaded."""
    title = "How much do two runs of the same allocator differ?"
    ticks, floors = [], []
    for metric in MAIN:
        floor = drawing.summary.noise[metric]
        name = tables.title(metric)
        for cell, one in floor.cells.items():
            tip = f"{cell}: {name} {percent(one.ratio.median)}, {interval_text(one.ratio)}"
            ticks.append({"metric": name, "value": one.ratio.median, "tip": tip})
        if floor.cells and math.isfinite(floor.default):
            low, high = 1 / (1 + floor.default), 1 + floor.default
            floors.append({"metric": name, "low": low, "high": high})
    if not ticks:
        absent = "No allocator ran twice in a round, so the noise floor is unknown."
        return Figure("noise", NOISE_SECTION, title, "", absent=absent)
    axis = ratio_axis(
        "second run over the first, median of the rounds",
        [*ticks, *floors],
        *("value", "low", "high"),
    )
    x = alt.X("value:Q", scale=alt.Scale(type="log", nice=False, padding=20), axis=axis)
    y = alt.Y("metric:N", axis=quiet_axis(None))
    layers = [
        alt.Chart(data(floors))
        .mark_bar(color=SHADE, size=34, aria=False)
        .encode(x="low:Q", x2="high:Q", y=y),
        unity("x"),
        alt.Chart(data(ticks))
        .mark_tick(thickness=2, size=26, color=FAINT, opacity=0.7)
        .encode(x=x, y=y, description="tip:N"),
    ]
    note = (
        "Each tick is one row. The shaded width holds what 95 % of rows stay within; a difference "
        "must exceed the floor of its own row before it is called one."
    )
    chart = alt.layer(*layers).properties(width=640, height=alt.Step(46))
    return Figure("noise", NOISE_SECTION, title, note, chart)


# --- memory in absolute terms --------------------------------------------------------------------


def footprint(drawing: Drawing) -> list[Figure]:
    """Huge pages and ullage: absolute figures, not ratios."""
    return [
        _absolute(drawing, "huge_share", "What share of memory lies in huge pages?", ".0%"),
        _absolute(
            drawing, "ullage", "How much is resident for each byte in use, at the peak?", ".1f"
        ),
    ]


def _absolute(drawing: Drawing, metric: str, title: str, form: str) -> Figure:
    rows = drawing.absolute(metric)
    section = "Use of memory"
    key = metric.replace("_", "-")
    if not rows:
        absent = f"No row has the figure “{METRIC[metric].title}” in this run."
        return Figure(key, section, title, "", absent=absent)
    middle = [row for row in rows if row["cell"] is None]
    y = alt.Y("allocator:N", sort=drawing.names, axis=quiet_axis(None))
    values = [row["value"] for row in rows]
    wide = min(values) > 0 and max(values) > 50 * min(values)
    scale = alt.Scale(type="log", nice=False, padding=12) if wide else alt.Scale(zero=True)
    axis = quiet_axis(METRIC[metric].title, format=",~g" if wide else form, tickCount=6)
    x = alt.X("value:Q", scale=scale, axis=axis)
    base = alt.Chart(data(middle))
    # bars need a zero, which a logarithmic scale has not
    shape = base.mark_tick(thickness=4, size=16) if wide else base.mark_bar(opacity=0.5)
    middles = shape.encode(x=x, y=y, color=drawing.colour(), description="tip:N")
    tick = (
        alt.Chart(data([row for row in rows if row["cell"] is not None]))
        .mark_tick(color=INK, thickness=1, size=9, opacity=0.55)
        .encode(x=x, y=y, description="tip:N")
    )
    note = "Thick ticks" if wide else "Bars"
    note += " are medians over the rows, thin ticks the rows themselves."
    if metric == "huge_share":
        note += " More huge pages mean fewer faults and often more memory: neither way is better."
    chart = alt.layer(tick, middles).properties(width=560, height=alt.Step(20))
    return Figure(key, section, title, note, chart)
