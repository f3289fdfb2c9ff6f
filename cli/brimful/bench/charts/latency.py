# SPDX-License-Identifier: MIT
"""Latency curves: how slow the slowest calls are, for each operation and band of sizes.

The axis of percentiles is logarithmic in the share of calls that are slower, as HdrHistogram draws
it: each step to the right is ten times rarer, so the tail has as much room as the body. The
largest value stands at the right end, at no particular percentile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from .. import statistics
from ..model import Histogram, Result
from .look import Style
from .parts import (
    Figure,
    Layered,
    Row,
    data,
    drawn,
    plain_colour,
    plain_shape,
    quiet_axis,
    seconds,
    series,
    slug,
    width,
)

SECTION = "Latency"
PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99)
POWERS = [10.0**k for k in range(10)]
AT_MAX = 100_000.0  # where the largest value stands: one step past 99.99
QUESTION = "how long do calls take, and how slow are the slowest?"


def figures(result: Result, names: Sequence[str], styles: Mapping[str, Style]) -> list[Figure]:
    """One figure for each cell and operation, a panel for each band of sizes."""
    groups: dict[tuple[str, str], list[Histogram]] = {}
    for one in result.histograms:
        groups.setdefault((one.cell, one.operation), []).append(one)
    if not groups:
        absent = "No latency histogram was recorded in this run."
        return [Figure("latency", SECTION, QUESTION.capitalize(), "", absent=absent)]
    return [
        Figure(
            f"latency-{slug(cell)}-{slug(operation)}",
            SECTION,
            f"{operation} in {cell}: {QUESTION}",
            "Each step to the right is ten times rarer; “max” is the slowest call of the run. "
            "Panels are bands of sizes in bytes.",
            _panels(found, names, styles),
        )
        for (cell, operation), found in groups.items()
    ]


def _panels(
    found: Sequence[Histogram], names: Sequence[str], styles: Mapping[str, Style]
) -> alt.ConcatChart:
    bands = sorted({one.band for one in found}, key=_band_order)
    present = [name for name in names if any(one.allocator == name for one in found)]
    panels = [
        _panel(band, [one for one in found if one.band == band], present, styles) for band in bands
    ]
    return alt.concat(*panels, columns=3, spacing=18).resolve_scale(y="shared")


def _band_order(band: str) -> tuple[int, str]:
    first = "".join(character if character.isdigit() else " " for character in band).split()
    return (int(first[0]) if first else 0, band)


def _panel(
    band: str, found: Sequence[Histogram], names: Sequence[str], styles: Mapping[str, Style]
) -> Layered:
    by_name = {one.allocator: one for one in found}
    rows = [
        row
        for name in reversed(names)
        if name in by_name
        for row in _rows(by_name[name], styles[name])
    ]
    stops = [1 / (1 - share / 100) for share in PERCENTILES] + [AT_MAX]
    label = (
        f"datum.value >= {AT_MAX} ? 'max' : datum.value <= 2 ? '50' : "
        "format(100 - 100 / datum.value, '.4~f')"
    )
    x = alt.X(
        "rarity:Q",
        scale=alt.Scale(type="log", domain=[2, AT_MAX], nice=False),
        axis=quiet_axis("percentile of calls", values=stops, labelExpr=label, labelFlush=False),
    )
    y = alt.Y(
        "ns:Q",
        scale=alt.Scale(type="log"),
        axis=quiet_axis("ns (log scale)", values=POWERS, format=",d"),
    )
    base = alt.Chart(data(rows), title=f"{band} bytes").encode(x=x, y=y)
    line = base.mark_line().encode(
        description="tip:N", strokeWidth=width(), **series(names, styles)
    )
    points = base.mark_point(filled=True, size=24, opacity=1).encode(
        description="tip:N",
        color=plain_colour(),
        shape=plain_shape(),
    )
    return alt.layer(line, points).properties(width=240, height=230)


def _rows(one: Histogram, style: Style) -> list[Row]:
    values = statistics.percentiles(one.counts, PERCENTILES)
    rows = []
    for share, value in [*zip(PERCENTILES, values, strict=True), (100.0, one.max_ns)]:
        if not value > 0:  # an empty histogram, or a clock too coarse for a logarithm
            continue
        what = "slowest call" if share == 100 else f"p{share:g}"
        rows.append(
            {
                "allocator": one.allocator,
                "rarity": AT_MAX if share == 100 else 1 / (1 - share / 100),
                "ns": value,
                "tip": f"{one.allocator} · {what} {seconds(value / 1e9)}",
                **drawn(style),
            }
        )
    return rows
