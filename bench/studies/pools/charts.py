# SPDX-License-Identifier: MIT
"""The charts of the pools' page, in the bench's colours.

A point at which requests were refused has no place on a line: it is a cross at the top of its
chart, in its line's colour. A pool that refuses is quick, and that must not look like speed.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

import altair as alt

from brimful.bench.charts import look
from brimful.bench.charts.parts import Layered, quiet_axis
from brimful.bench.charts.parts import data as inline
from brimful.bench.study.model import Data
from brimful.bench.study.pages import Place
from studies.pools.experiments import QUANTILES

Points = list[Data]  # series, at, value (None: refused)

SOLID, DASHED, DOTTED = (1, 0), (6, 3), (2, 2)
HALF_A_PAGE = 2048
SIZE_LABEL = "datum.value >= 1024 ? datum.value / 1024 + ' Ki' : datum.value"

# name → colour and dash; the thick lines are ours.
STYLES: Mapping[str, tuple[str, tuple[int, int]]] = {
    "brimful": (look.ACCENT, SOLID),
    "brimful, growable": (look.ACCENT, DASHED),
    "brimful, 100 MiB": ("#86234f", DOTTED),
    "page pool, pages from a list": ("#7d7d1c", SOLID),
    "page pool, pages from the kernel": ("#7d7d1c", DASHED),
    "handle pool, pages from a list": ("#3b2c94", SOLID),
    "handle pool, pages from the kernel": ("#3b2c94", DASHED),
    "brimful malloc": ("#86234f", SOLID),
    "rlsf": ("#a8458f", SOLID),
    "rlsf, growable": ("#a8458f", DASHED),
    "talc": ("#7a5a36", SOLID),
    "talc, growable": ("#7a5a36", DASHED),
    "glibc": (look.NEUTRAL, SOLID),
    "jemalloc": ("#00875f", SOLID),
    "mimalloc2": ("#0072b2", DASHED),
    "mimalloc3": ("#0072b2", SOLID),
}


TLSF = (
    *("brimful", "brimful, growable", "brimful, 100 MiB", "rlsf", "rlsf, growable", "talc"),
    *("glibc", "mimalloc3"),
)
OF_PAGES = (
    *("page pool, pages from a list", "page pool, pages from the kernel"),
    *("handle pool, pages from a list", "handle pool, pages from the kernel"),
)


def thickness(name: str) -> float:
    return 2.6 if name.startswith(("brimful", "page pool", "handle pool")) else 1.4


def panel(
    points: Points,
    x: alt.X,
    y: alt.Y,
    *,
    title: str = "",
    width: int = 620,
    height: int = 240,
    rules: Iterable[float] = (),
) -> Layered:
    """Lines by series, crosses where requests were refused, and rules at marked places of x."""
    names = [name for name in STYLES if any(point["series"] == name for point in points)]
    legend = alt.Legend(title=None, symbolType="stroke", symbolSize=420)
    domain = alt.Scale(domain=names, range=[STYLES[name][0] for name in names])
    dashes = alt.Scale(domain=names, range=[list(STYLES[name][1]) for name in names])
    served = [
        point | {"width": thickness(point["series"])}
        for point in points
        if point["value"] is not None
    ]
    refused = [point for point in points if point["value"] is None]
    layers: list[alt.Chart] = [
        alt.Chart(inline([{"rule": at}])).mark_rule(color=look.FAINT, strokeDash=[3, 3])
        .encode(x=alt.X("rule:Q"))
        for at in rules
    ]  # fmt: skip
    layers.append(
        alt.Chart(inline(served), title=title)
        .mark_line(aria=False)
        .encode(
            x=x,
            y=y,
            color=alt.Color("series:N", scale=domain, sort=names, legend=legend),
            strokeDash=alt.StrokeDash("series:N", scale=dashes, sort=names, legend=legend),
            strokeWidth=alt.StrokeWidth("width:Q", scale=None, legend=None),
        )
    )
    if refused:
        layers.append(
            alt.Chart(inline(refused))
            .mark_text(fontSize=9, fontWeight="bold", baseline="top", dy=2)
            .encode(
                x=x,
                y=alt.value(0),
                text=alt.value("✕"),
                color=alt.Color("series:N", scale=domain, sort=names, legend=legend),
            )
        )
    return alt.layer(*layers).properties(width=width, height=height)


def column(panels: Sequence[Layered | alt.Chart]) -> alt.TopLevelMixin:
    return alt.vconcat(*panels, spacing=18).configure(**look.config())


def linear_x(title: str) -> alt.X:
    return alt.X("at:Q", scale=alt.Scale(nice=False), axis=quiet_axis(title))


def log_y(title: str) -> alt.Y:
    return alt.Y(
        "value:Q", scale=alt.Scale(type="log", nice=False), axis=quiet_axis(title, tickCount=6)
    )


def size_x(stops: Sequence[int]) -> alt.X:
    axis = quiet_axis("size of a block, bytes", values=list(stops), labelExpr=SIZE_LABEL)
    return alt.X("at:Q", scale=alt.Scale(type="log", base=2, nice=False), axis=axis)


# --- one function for each figure -----------------------------------------------------------------


def swept(sweep: Data, names: Sequence[str], key: str) -> Points:
    """Points of a sweep in µs; None where a request was refused."""
    return [
        {
            "series": name,
            "at": point["at"],
            "value": None if point["failed"] else max(point[key], 1) / 1000,
        }
        for name in names
        for point in sweep.get(name) or []
    ]


def sizes(sweep: Data, names: Sequence[str], *, pages: bool = False) -> alt.TopLevelMixin:
    """Mean and slowest operation by size."""
    x = linear_x("least size of a block, bytes (64 sizes from there)")
    rules = (HALF_A_PAGE, 2 * HALF_A_PAGE) if pages else ()
    return column(
        [
            panel(swept(sweep, names, key), x, log_y(title), rules=rules)
            for key, title in (("mean_ns", "mean, µs"), ("max_ns", "slowest, µs"))
        ]
    )


def runs(ranges: Data) -> alt.TopLevelMixin:
    """The mean of each run, one panel for each range of sizes."""
    panels = [
        panel(
            swept(sweep, list(sweep), "mean_ns"),
            linear_x("run"),
            alt.Y("value:Q", scale=alt.Scale(zero=True), axis=quiet_axis("mean, µs", tickCount=5)),
            title=f"sizes {name} bytes",
            height=130,
        )
        for name, sweep in ranges.items()
    ]
    return column(panels)


def latency(scene: Data, quantiles: Sequence[float]) -> alt.TopLevelMixin:
    """Time of single calls by quantile: in single runs, and in the best of them all."""
    labels = [f"{q * 100:.5g} %" if q < 1 else "slowest" for q in quantiles]
    x = alt.X("at:N", sort=labels, axis=quiet_axis("calls that take at most", labelAngle=0))
    panels = []
    for key, title in (("best", "best of all runs, call by call"), ("single", "a single run")):
        points = [
            {"series": name, "at": label, "value": max(value, 1.0)}
            for name, found in scene.items()
            if found and "bounded" in found
            for label, value in zip(labels, found["bounded"][key], strict=True)
        ]
        panels.append(panel(points, x, log_y("ns"), title=title))
    return column(panels)


def band_points(bands: Data, key: str) -> Points:
    """The median of the rounds; None where the size is refused."""
    points = []
    for name, by_size in bands.items():
        for size, samples in by_size.items():
            found = [one for one in samples if one]
            if not found:
                continue
            refused = any(one["refused"] for one in found)
            value = None if refused else statistics.median(one[key] for one in found)
            points.append({"series": name, "at": int(size), "value": value})
    return points


def held(title: str, most: float) -> alt.Y:
    return alt.Y(
        "value:Q",
        scale=alt.Scale(type="log", domain=[1, most], clamp=True, nice=False),
        axis=quiet_axis(title, values=[1, 1.1, 1.2, 1.4, 1.6, 2, 2.5, 3, 4, 5]),
    )


def bands(result: Data) -> alt.TopLevelMixin:
    """Time and memory by size of the blocks."""
    to_kernel = {name: by for name, by in result.items() if not name.endswith("a list")}
    x = size_x([16, 32, 64, 128, 256, 512, 1024, 2048, 4096])
    rules = [HALF_A_PAGE]
    return column(
        [
            panel(band_points(result, "ns"), x, log_y("ns, free + malloc + write"), rules=rules),
            panel(
                band_points(result, "resident_per_live"),
                x,
                held("resident over live, full", 2.6),
                rules=rules,
            ),
            panel(
                band_points(to_kernel, "thinned_per_live"),
                x,
                held("resident over live, thinned to 30 %", 5),
                rules=rules,
            ),
        ]
    )


CALL_COLOURS = {
    "malloc": look.ACCENT,
    "free": "#0072b2",
    "shrink": "#00875f",
    "grow": "#a8458f",
}


def instructions(rows: Sequence[Data]) -> alt.TopLevelMixin:
    """Instructions of the slowest call against the fill; a thin line for each size of the pool."""
    points = [
        {"call": call, "size": row["bytes"], "at": row["fill"], "value": row[call]}
        for row in rows
        for call in CALL_COLOURS
    ]
    scale = alt.Scale(domain=list(CALL_COLOURS), range=list(CALL_COLOURS.values()))
    lines = (
        alt.Chart(inline(points))
        .mark_line(strokeWidth=1.2, opacity=0.8)
        .encode(
            x=linear_x("live, % of the pool"),
            y=alt.Y(
                "value:Q", scale=alt.Scale(zero=True), axis=quiet_axis("instructions, slowest call")
            ),
            color=alt.Color("call:N", scale=scale, legend=alt.Legend(title=None)),
            detail="size:N",
        )
    )
    return column([lines.properties(width=620, height=240)])


# --- the page -------------------------------------------------------------------------------------


def drawn(place: Place, results: Data) -> dict[str, list[str]]:
    """By the name of their place in the page, the charts of what was measured."""
    made: dict[str, list[str]] = {}

    def draw(key: str, chart: alt.TopLevelMixin, meaning: str) -> None:
        made[key] = place.chart(f"pools-{key.replace('_', '-')}", chart, meaning)

    if scenes := results.get("latency", {}).get("scenes"):
        first = next(iter(scenes.values()))
        draw("latency", latency(first, QUANTILES), "Time of single calls by quantile")
    if found := results.get("instructions"):
        meaning = "Instructions of the slowest call by fill and size of the pool"
        draw("instructions", instructions(found["rows"]), meaning)
    if sweep := results.get("sizes"):
        draw("sizes", sizes(sweep, TLSF), "Mean and slowest operation by size, TLSF")
        meaning = "Mean and slowest operation by size, pools of pages"
        draw("pages", sizes(sweep, OF_PAGES, pages=True), meaning)
    for key, kind in (("runs", "tlsf"), ("page_runs", "pages")):
        if ranges := results.get("runs", {}).get(kind):
            draw(key, runs(ranges), "Mean of each of 50 runs")
    if found := results.get("bands"):
        draw("bands", bands(found), "Time and memory by size of the blocks")
    return made
