# SPDX-License-Identifier: MIT
"""What all charts are built from: the figure with its texts, the series of allocators, numbers.

A figure always exists, even without a chart: then it says in one sentence what is missing, because
a chart that silently isn't there looks like one that nobody thought of.

Text from a result (names, reasons) goes into the data of a chart and nowhere else, never into an
expression, a field's name or a title's markup; vega escapes it there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from .. import statistics
from ..statistics import Mean, Ratio
from ..summary import Summary
from ..tables import seconds_per_unit
from .look import FAILED, FAINT, GRID, INK, Style

Row = dict[str, Any]
_SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
ROUND_RATIOS = (
    *(0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99),
    *(0.995, 1.005, 1.01, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 1.7, 2, 2.5, 3, 4, 5, 7, 10, 20, 50),
    *(100, 200, 500, 1000, 10000),
)
Encodings = dict[str, Any]
Layered = alt.LayerChart | alt.FacetChart  # what altair says that a layer is


@dataclass(frozen=True)
class Figure:
    """One picture of the report."""

    key: str  # file name and anchor
    section: str
    title: str  # the question that it answers
    note: str  # how to read it
    chart: alt.TopLevelMixin | None = None
    absent: str = ""  # why there is no chart


@dataclass(frozen=True)
class Drawing:
    """What every chart needs to know."""

    summary: Summary
    names: list[str]  # who could run: ours first, then the baseline, then by their place
    styles: Mapping[str, Style]

    @property
    def baseline(self) -> str:
        return self.summary.baseline

    def colour(self) -> alt.Color:
        """Colour alone, for marks that are labelled otherwise."""
        scale = alt.Scale(
            domain=self.names, range=[self.styles[name].colour for name in self.names]
        )
        return alt.Color("allocator:N", scale=scale, legend=None)

    def shape(self) -> alt.Shape:
        scale = alt.Scale(domain=self.names, range=[self.styles[name].shape for name in self.names])
        return alt.Shape("allocator:N", scale=scale, legend=None)

    def absolute(self, metric: str) -> list[Row]:
        """The median of each cell, and of those the median (with cell None), by allocator."""
        rows: list[Row] = []
        for name in self.names:
            found = {
                row.cell.name: row.entries[name].estimates[metric].median
                for row in self.summary.rows
                if metric in row.entries[name].estimates
            }
            if not found:
                continue
            middle = statistics.median(list(found.values()))
            tip = f"{name} · {middle:.3g}, median of {len(found)} rows"
            rows.append({"allocator": name, "cell": None, "value": middle, "tip": tip})
            rows += [
                {
                    "allocator": name,
                    "cell": cell,
                    "value": value,
                    "tip": f"{name} · {cell}: {value:.3g}",
                }
                for cell, value in found.items()
            ]
        return rows


def data(rows: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Rows as a chart's data; a tuple, because altair copies lists whenever charts are combined."""
    return alt.InlineData(values=tuple(rows))


def series(names: Sequence[str], styles: Mapping[str, Style]) -> Encodings:
    """Colour and dash of lines by allocator, with one legend for both."""
    key = alt.Legend(
        title="allocator", symbolSize=420, symbolType="stroke"
    )  # wide enough to show a dash
    chosen = [styles[name] for name in names]
    colours = alt.Scale(domain=list(names), range=[style.colour for style in chosen])
    dashes = alt.Scale(domain=list(names), range=[list(style.dash) for style in chosen])
    return {
        "color": alt.Color("allocator:N", scale=colours, sort=list(names), legend=key),
        "strokeDash": alt.StrokeDash("allocator:N", scale=dashes, sort=list(names), legend=key),
    }


def drawn(style: Style) -> Row:
    """The fields that `plain_colour`, `plain_shape` and `width` read."""
    return {"colour": style.colour, "shape": style.shape, "width": style.width}


def plain_colour() -> alt.Color:
    """The row's own colour, without a scale: in a chart with lines it leaves their legend alone."""
    return alt.Color("colour:N", scale=None)


def plain_shape() -> alt.Shape:
    return alt.Shape("shape:N", scale=None)


def width() -> alt.StrokeWidth:
    """As thick as the row's field `width` says: brimful's line is the thick one."""
    return alt.StrokeWidth("width:Q", scale=None, legend=None)


def ends(interval: Ratio | Mean) -> dict[str, float | None]:
    """The ends of an interval for a chart; None where it is unbounded."""
    known = math.isfinite(interval.high) and interval.low > 0
    return {"low": interval.low if known else None, "high": interval.high if known else None}


def interval_text(interval: Ratio | Mean) -> str:
    """ "0.912 to 0.934", or that there is none."""
    if not (math.isfinite(interval.high) and interval.low > 0):
        return "too few rounds for an interval"
    return f"95 % interval {interval.low:.3f} to {interval.high:.3f}"


def unity(dimension: str) -> alt.Chart:
    """The line at ratio 1: no difference from the baseline."""
    rule = alt.Chart(data([{"one": 1}])).mark_rule(color=FAINT, strokeWidth=1.2, aria=False)
    return rule.encode(x="one:Q") if dimension == "x" else rule.encode(y="one:Q")


def quiet_axis(title: str | None, **more: Any) -> alt.Axis:
    return alt.Axis(title=title, **({"gridColor": GRID} | more))


def ratio_axis(title: str, rows: Iterable[Row], *keys: str, change: bool = False) -> alt.Axis:
    """An axis of ratios with round stops; `keys` are the fields of `rows` that it has to span."""
    values = [row[key] for row in rows for key in keys if row.get(key) is not None]
    label = (
        "datum.value == 1 ? '0' : format(datum.value - 1, '+.0%')"
        if change
        else "format(datum.value, '.4~f')"
    )
    return quiet_axis(title, values=_stops([*values, 1.0]), labelExpr=label)


def _stops(values: Sequence[float]) -> list[float]:
    """Round ratios between the lowest and the highest value, 1 among them, not too dense."""
    low, high = math.log(min(values)), math.log(max(values))
    nearest = max((high - low) / 7, 0.002)
    kept = [0.0]
    candidates = sorted((abs(math.log(one)), math.log(one)) for one in ROUND_RATIOS)
    for step in (True, False):  # coarse stops first, finer ones where there is room
        for distance, place in candidates:
            fits = low <= place <= high and all(abs(place - one) >= nearest for one in kept)
            if fits and (distance >= math.log(1.4)) is step:
                kept.append(place)
    return sorted(round(math.exp(place), 4) for place in kept)


def bars(drawing: Drawing, rows: Sequence[Row], title: str, *, labels: bool = True) -> Layered:
    """One bar for each allocator, from no change to its change; a row without a value has failed.

    Rows have allocator, value, low, high (None: no interval), tip, and `failed` where value is None.
    """
    order = [name for name in drawing.names if any(row["allocator"] == name for row in rows)]
    axis = quiet_axis(None, labels=labels, ticks=False, domain=False, labelFontSize=10)
    y = alt.Y("allocator:N", sort=order, axis=axis)
    x = alt.X(
        "value:Q",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=ratio_axis(
            f"change against {drawing.baseline}", rows, "value", "low", "high", change=True
        ),
    )
    done = [row | {"one": 1} for row in rows if row["value"] is not None]
    whole = [row for row in done if row["low"] is not None]
    failed = [row | {"one": 1} for row in rows if row["value"] is None]
    layers = [
        alt.Chart(data(done), title=title)
        .mark_bar(height=9)
        .encode(x=x, x2="one:Q", y=y, color=drawing.colour(), description="tip:N"),
        alt.Chart(data(whole))
        .mark_rule(color=INK, strokeWidth=1.1)
        .encode(x=alt.X("low:Q"), x2="high:Q", y=y, description="tip:N"),
        unity("x"),
    ]
    if failed:
        layers.append(
            alt.Chart(data(failed))
            .mark_text(align="left", dx=3, fontSize=10, fontWeight="bold", color=FAILED)
            .encode(x=alt.X("one:Q"), y=y, text="failed:N", description="tip:N")
        )
    return alt.layer(*layers).properties(width=230, height=alt.Step(13))


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if abs(value) * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def kib(value: float) -> str:
    """A size in the unit that suits it."""
    for unit, factor in (("GiB", 1 << 20), ("MiB", 1 << 10)):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.3g} KiB"


def measured(value: float, unit: str) -> str:
    """A figure with its unit, as the tables and tooltips show it."""
    if unit == "s":
        return seconds(value)
    if unit == "ns":
        return seconds(value / 1e9)
    if unit == "KiB":
        return kib(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(ratio: float) -> str:
    """A ratio as a change: 0.93 is −7.0 %."""
    change = (ratio - 1) * 100
    digits = 0 if abs(change) >= 99.5 else 1
    return f"{change:+.{digits}f}\u00a0%".replace("-", "−")


def unit_of(figure: str, largest: float) -> tuple[str, float]:
    """The unit in which an axis shows a cell's own figure, and what to multiply it by."""
    per_unit = seconds_per_unit(figure)
    if per_unit is None:
        return figure.replace("_", " "), 1.0
    unit = next(
        (one for one in ("s", "ms", "µs") if largest * per_unit >= 10 * _SECONDS[one]), "ns"
    )
    _, per, what = figure.partition("_per_")
    return f"{unit} per {what.replace('_', ' ')}" if per else unit, per_unit / _SECONDS[unit]


def own(figure: str, value: float) -> str:
    """A cell's own figure, as the tables and tooltips show it."""
    per_unit = seconds_per_unit(figure)
    return measured(value, "") if per_unit is None else seconds(value * per_unit)


def slug(text: str) -> str:
    """A part of a file name and of an anchor, from any text."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "unnamed"
