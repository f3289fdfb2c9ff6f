# SPDX-License-Identifier: MIT
"""Contended locks, row by row and design by design, with the throughput beside them.

On the left a bar says how often a lock was waited for, a tick how often one was found taken and left
(which costs a detour, not a wait). The scale is linear up to 1 and logarithmic above, because the
designs lie orders of magnitude apart and 0 is a figure, too. On the right is what the design
achieves: there, and only there, more is better.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from ..contention import BUSY, CONTENDED, Contended
from ..wording import rate
from .look import INK
from .parts import Drawing, Figure, Layered, Row, data, quiet_axis, slug

SECTION = "Locks"
TITLE = "how often does a lock make a thread wait, and what is achieved?"
NOTE = (
    "Left: contended acquisitions per million operations (bars; linear up to 1, then logarithmic) and "
    "locks found taken and left (ticks). Right: million operations per second, more is better. "
    "Allocators without such counters are not shown."
)
WIDTH = 270


def figures(drawing: Drawing) -> list[Figure]:
    """One figure for each family of rows, or one that says that nothing was counted."""
    counted = [one for one in drawing.summary.contention if not one.missing]
    families: dict[str, list[Contended]] = {}
    for one in counted:
        families.setdefault(drawing.summary.row(one.cell).cell.family, []).append(one)
    if not families:
        absent = "No run of this result counted the locks of an allocator."
        return [Figure("locks", SECTION, TITLE.capitalize(), "", absent=absent)]
    return [
        Figure(f"locks-{slug(family)}", SECTION, f"{family}: {TITLE}", NOTE, _chart(drawing, found))
        for family, found in families.items()
    ]


def _chart(drawing: Drawing, counted: Sequence[Contended]) -> alt.VConcatChart:
    cells = dict.fromkeys(one.cell for one in counted)
    lines = []
    for cell in cells:
        here = [one for one in counted if one.cell == cell]
        order = [name for name in drawing.names if any(one.allocator == name for one in here)]
        pair = [_contended(drawing, cell, here, order), _throughput(drawing, here, order)]
        lines.append(alt.hconcat(*pair, spacing=14))
    return alt.vconcat(*lines, spacing=10)


def _contended(
    drawing: Drawing, cell: str, here: Sequence[Contended], order: Sequence[str]
) -> Layered:
    rows: list[Row] = []
    for one in here:
        waited, left = one.figures[CONTENDED.key], one.figures[BUSY.key]
        tip = f"{one.allocator} · {cell}: {rate(waited)} waited for, {rate(left)} found taken"
        rows.append({"allocator": one.allocator, "value": waited, "busy": left, "tip": tip})
    y = alt.Y("allocator:N", sort=list(order), axis=quiet_axis(None, ticks=False, domain=False))
    scale = alt.Scale(type="symlog", constant=1, zero=True, nice=False, padding=6)
    axis = quiet_axis("per million operations", values=[0, 1, 10, 100, 1000, 10**4, 10**5, 10**6])
    base = alt.Chart(data(rows), title=cell)
    bars = base.mark_bar(height=9).encode(
        x=alt.X("value:Q", scale=scale, axis=axis),
        y=y,
        color=drawing.colour(),
        description="tip:N",
    )
    ticks = base.mark_tick(color=INK, thickness=2, size=11).encode(
        x=alt.X("busy:Q", scale=scale, axis=axis), y=y, description="tip:N"
    )
    return alt.layer(bars, ticks).properties(width=WIDTH, height=alt.Step(13))


def _throughput(drawing: Drawing, here: Sequence[Contended], order: Sequence[str]) -> alt.Chart:
    rows = [
        {
            "allocator": one.allocator,
            "value": one.throughput / 1e6,
            "tip": f"{one.allocator} · {one.cell}: {one.throughput / 1e6:.3g} million a second",
        }
        for one in here
        if one.throughput is not None
    ]
    y = alt.Y("allocator:N", sort=list(order), axis=None)
    axis = quiet_axis("million operations per second", tickCount=5)
    chart = alt.Chart(data(rows)).mark_bar(height=9)
    return chart.encode(
        x=alt.X("value:Q", scale=alt.Scale(zero=True), axis=axis),
        y=y,
        color=drawing.colour(),
        description="tip:N",
    ).properties(width=WIDTH, height=alt.Step(13))
