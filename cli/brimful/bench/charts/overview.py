# SPDX-License-Identifier: MIT
"""Charts of the whole run: the league, time against memory, every metric, the noise floor.

All ratios are over the baseline, on a logarithmic axis: twice as fast and half as fast lie equally
far from 1. An interval that does not exist (too few rounds) is not drawn, and the tooltip says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt

from .. import summary as tables
from ..model import MEMORY, METRIC
from ..statistics import Mean, Ratio
from ..summary import FIGURE, MAIN, Standing
from .look import FAINT, INK, PAPER, SHADE
from .parts import Drawing, Figure, Row, bars, data, percent, quiet_axis, ratio_axis, series, unity

SECTION = "All rows together"
NOISE_SECTION = "Noise floor"
SCATTER = (640, 440)


def figures(drawing: Drawing) -> list[Figure]:
    return [_league(drawing), _scatter(drawing), _metrics(drawing)]


def ends(interval: Ratio | Mean) -> dict[str, float | None]:
    """The ends of an interval for a chart; None where it is unbounded."""
    known = math.isfinite(interval.high) and interval.low > 0
    return {"low": interval.low if known else None, "high": interval.high if known else None}


def interval_text(interval: Ratio | Mean) -> str:
    """ "0.912 to 0.934", or that there is none."""
    if not (math.isfinite(interval.high) and interval.low > 0):
        return "too few rounds for an interval"
    return f"95 % interval {interval.low:.3f} to {interval.high:.3f}"


# --- league --------------------------------------------------------------------------------------


def _league(drawing: Drawing) -> Figure:
    title = f"Who is fastest overall, and what does it cost in memory? (geometric means over {drawing.baseline})"
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
        f"Over the {len(drawing.summary.common_rows)} rows in which all of these succeeded, each "
        "workload counted once; bars are 95 % intervals that also speak of other workloads. Where "
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


def _league_panel(
    drawing: Drawing, rows: Sequence[Row], order: list[str], metric: str
) -> alt.LayerChart:
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
        shape=series(drawing.names, drawing.styles, shapes=True, legend=False)["shape"],
        description="tip:N",
    )
    text = base.mark_text(dy=-9, fontSize=9.5, color=FAINT).encode(x=x, text="text:N")
    return alt.layer(unity("x"), rule, point, text).properties(width=340, height=alt.Step(28))


# --- time against memory -------------------------------------------------------------------------


def _scatter(drawing: Drawing) -> Figure:
    title = "Who needs neither more time nor more memory than all others?"
    rows = [_scatter_row(s) for s in drawing.summary.league if set(MAIN) <= set(s.common)]
    if len(rows) < 2:
        absent = "Fewer than two allocators have both figures over common rows."
        return Figure("frontier", SECTION, title, "", absent=absent)
    _place_labels(rows)
    scale = alt.Scale(type="log", nice=False, padding=30)
    over = f"ratio to {drawing.baseline}"
    x = alt.X("x:Q", scale=scale, axis=ratio_axis(f"time, {over}", rows, "x", "x_low", "x_high"))
    y = alt.Y(
        "y:Q",
        scale=scale,
        axis=ratio_axis(f"peak resident size, {over}", rows, "y", "y_low", "y_high"),
    )
    base = alt.Chart(data(rows))
    line = (
        alt.Chart(data(_stairs(rows, drawing.summary.frontier)))
        .mark_line(color=FAINT, strokeWidth=1.4, strokeDash=[5, 4])
        .encode(x=x, y=y, order="step:Q")
    )
    layers = [
        line,
        base.mark_rule(opacity=0.55).encode(
            x="x_low:Q", x2="x_high:Q", y=y, color=drawing.colour()
        ),
        base.mark_rule(opacity=0.55).encode(
            y="y_low:Q", y2="y_high:Q", x=x, color=drawing.colour()
        ),
        base.mark_point(filled=True, size=110, opacity=1).encode(
            x=x,
            y=y,
            color=drawing.colour(),
            shape=series(drawing.names, drawing.styles, shapes=True, legend=False)["shape"],
            description="tip:N",
        ),
        *(_labels(rows, side, x, y, halo) for halo in (True, False) for side in _SIDES),
    ]
    note = (
        "Lower left is better at both. The dashed line is the frontier: whoever lies on it is not "
        "beaten in both by anyone. Bars are 95 % intervals."
    )
    chart = alt.layer(*layers).properties(width=SCATTER[0], height=SCATTER[1])
    return Figure("frontier", SECTION, title, note, chart)


def _scatter_row(standing: Standing) -> Row:
    name = standing.allocator.name
    time, memory = (standing.common[metric].mean for metric in MAIN)
    row: Row = {"allocator": name, "x": time.mean, "y": memory.mean}
    row |= {f"x_{key}": value for key, value in ends(time).items()}
    row |= {f"y_{key}": value for key, value in ends(memory).items()}
    return row | {"tip": f"{name} · time {time.mean:.3f}, peak memory {memory.mean:.3f}"}


def _stairs(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """The border of what is dominated: from the top, right and down from point to point, right."""
    points = [(row["x"], row["y"]) for name in names for row in rows if row["allocator"] == name]
    corners = [(points[0][0], max(row["y"] for row in rows))]
    for place, (x, y) in enumerate(points):
        if place:
            corners.append((x, points[place - 1][1]))
        corners.append((x, y))
    corners.append((max(row["x"] for row in rows), points[-1][1]))
    return [{"x": x, "y": y, "step": step} for step, (x, y) in enumerate(corners)]


# side → horizontal and vertical offset of the text, and its alignment
_SIDES = {"right": (9, 0, "left"), "left": (-9, 0, "right"), "above": (0, -13, "center"),
          "below": (0, 13, "center")}  # fmt: skip


def _labels(rows: Sequence[Row], side: str, x: alt.X, y: alt.Y, halo: bool) -> alt.Chart:
    dx, dy, align = _SIDES[side]
    look = {"stroke": PAPER, "strokeWidth": 4} if halo else {"color": INK}
    mark = alt.Chart(data([row for row in rows if row["side"] == side])).mark_text(
        dx=dx, dy=dy, align=align, baseline="middle", fontSize=11, **look
    )
    return mark.encode(x=x, y=y, text="allocator:N")


def _place_labels(rows: list[Row]) -> None:
    """For each name the first side where it covers neither a point nor another name."""
    spots = dict(zip((row["allocator"] for row in rows), _pixels(rows), strict=True))
    boxes = [(px - 7, py - 7, px + 7, py + 7) for px, py in spots.values()]
    for row in rows:
        px, py = spots[row["allocator"]]
        options = {side: _box(px, py, row["allocator"], side) for side in _SIDES}
        crowd = {
            side: sum(_overlap(box, other) for other in boxes) for side, box in options.items()
        }
        row["side"] = min(_SIDES, key=crowd.__getitem__)
        boxes.append(options[row["side"]])


def _pixels(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """About where the points will lie."""
    spots = []
    for row in rows:
        spot = []
        for key, length in zip("xy", SCATTER, strict=True):
            values = [math.log(row[key]) for row in rows]
            span = max(values) - min(values) or 1.0
            spot.append(30 + (length - 60) * (math.log(row[key]) - min(values)) / span)
        spots.append((spot[0], SCATTER[1] - spot[1]))
    return spots


Box = tuple[float, float, float, float]


def _box(px: float, py: float, text: str, side: str) -> Box:
    dx, dy, align = _SIDES[side]
    width = 6.2 * len(text)
    left = px + dx - {"left": 0.0, "right": width, "center": width / 2}[align]
    return (left, py + dy - 7, left + width, py + dy + 7)


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)


# --- every metric --------------------------------------------------------------------------------


def _metrics(drawing: Drawing) -> Figure:
    title = f"What does each allocator change in each metric, against {drawing.baseline}?"
    panels = []
    for metric in _shown_metrics(drawing):
        rows = [
            _metric_row(s, metric)
            for s in drawing.summary.league
            if metric in s.means and s.allocator.name != drawing.baseline
        ]
        if rows:
            panels.append(bars(drawing, rows, tables.title(metric), labels=len(panels) % 3 == 0))
    if not panels:
        absent = "No allocator has figures together with the baseline."
        return Figure("metrics", SECTION, title, "", absent=absent)
    note = (
        "Geometric means over all rows that have the metric for both; bars to the left are less. "
        "Lines are 95 % intervals; a bar whose line crosses +0 % shows no difference."
    )
    return Figure("metrics", SECTION, title, note, alt.concat(*panels, columns=3, spacing=20))


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
    x = alt.X("value:Q", scale=alt.Scale(type="log", nice=False, padding=20),
              axis=ratio_axis("second run over the first, median of the rounds", [*ticks, *floors], "value", "low", "high"))  # fmt: skip
    y = alt.Y("metric:N", axis=quiet_axis(None))
    layers = [
        alt.Chart(data(floors)).mark_bar(color=SHADE, size=34).encode(x="low:Q", x2="high:Q", y=y),
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
    x = alt.X("value:Q", axis=quiet_axis(METRIC[metric].title, format=form))
    bar = (
        alt.Chart(data(middle))
        .mark_bar(opacity=0.5)
        .encode(x=x, y=y, color=drawing.colour(), description="tip:N")
    )
    tick = (
        alt.Chart(data([row for row in rows if row["cell"] is not None]))
        .mark_tick(color=INK, thickness=1, size=9, opacity=0.55)
        .encode(x=x, y=y, description="tip:N")
    )
    note = "Bars are medians over the rows, ticks the rows themselves."
    if metric == "huge_share":
        note += " More huge pages mean fewer faults and often more memory: neither way is better."
    chart = alt.layer(bar, tick).properties(width=560, height=alt.Step(20))
    return Figure(key, section, title, note, chart)
