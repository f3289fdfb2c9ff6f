# SPDX-License-Identifier: MIT
"""Time against memory: one point for each allocator, and the frontier.

Whoever lies on the frontier is not beaten in both by anybody; being on it is no claim about the
intervals, which are drawn as crosses. Names stand beside the points, each on the first side where
it covers nothing, with a rim in the colour of the paper so that lines do not run through them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import altair as alt

from ..summary import MAIN, Standing
from .look import FAINT, INK, PAPER
from .parts import Drawing, Figure, Row, data, ends, ratio_axis

SIZE = (640, 440)
Box = tuple[float, float, float, float]  # left, top, right, bottom


def figure(drawing: Drawing, section: str) -> Figure:
    """The scatter of all allocators that have a place in the league."""
    title = "Who needs neither more time nor more memory than all others?"
    rows = [_scatter_row(s) for s in drawing.summary.league if set(MAIN) <= set(s.common)]
    if len(rows) < 2:
        absent = "Fewer than two allocators have both figures over common rows."
        return Figure("frontier", section, title, "", absent=absent)
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
        .mark_line(aria=False, color=FAINT, strokeWidth=1.4, strokeDash=[5, 4])
        .encode(x=x, y=y, order="step:Q")
    )
    layers = [
        line,
        base.mark_rule(opacity=0.55, aria=False).encode(
            x="x_low:Q", x2="x_high:Q", y=y, color=drawing.colour()
        ),
        base.mark_rule(opacity=0.55, aria=False).encode(
            y="y_low:Q", y2="y_high:Q", x=x, color=drawing.colour()
        ),
        base.mark_point(filled=True, size=110, opacity=1).encode(
            x=x,
            y=y,
            color=drawing.colour(),
            shape=drawing.shape(),
            description="tip:N",
        ),
        *(_labels(rows, side, x, y, halo) for halo in (True, False) for side in _SIDES),
    ]
    note = (
        "Lower left is better at both. The dashed line is the frontier: whoever lies on it is not "
        "beaten in both by anyone. Bars are 95 % intervals."
    )
    chart = alt.layer(*layers).properties(width=SIZE[0], height=SIZE[1])
    return Figure("frontier", section, title, note, chart)


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
_SIDES: dict[str, tuple[int, int, Literal["left", "right", "center"]]] = {
    "right": (9, 0, "left"),
    "left": (-9, 0, "right"),
    "above": (0, -13, "center"),
    "below": (0, 13, "center"),
}


def _labels(rows: Sequence[Row], side: str, x: alt.X, y: alt.Y, halo: bool) -> alt.Chart:
    dx, dy, align = _SIDES[side]
    look = {"color": PAPER, "stroke": PAPER, "strokeWidth": 4} if halo else {"color": INK}
    mark = alt.Chart(data([row for row in rows if row["side"] == side])).mark_text(
        dx=dx, dy=dy, align=align, baseline="middle", fontSize=11, aria=False, **look
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
        for key, length in zip("xy", SIZE, strict=True):
            # The axes span the intervals, too.
            names = (key, f"{key}_low", f"{key}_high")
            values = [math.log(other[name]) for other in rows for name in names if other.get(name)]
            span = max(values) - min(values) or 1.0
            spot.append(30 + (length - 60) * (math.log(row[key]) - min(values)) / span)
        spots.append((spot[0], SIZE[1] - spot[1]))
    return spots


def _box(px: float, py: float, text: str, side: str) -> Box:
    dx, dy, align = _SIDES[side]
    width = 6.2 * len(text)
    left = px + dx - {"left": 0.0, "right": width, "center": width / 2}[align]
    return (left, py + dy - 7, left + width, py + dy + 7)


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)
