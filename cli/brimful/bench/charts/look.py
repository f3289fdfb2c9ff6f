# SPDX-License-Identifier: MIT
"""How the charts look: colours, shapes and dashes, and one allocator always the same.

Every chart is drawn once, in the light colours. The dark ones are a mapping from each light colour
to one dark colour (DARK): the page applies it as style rules that match the attribute, the exported
files by replacing text. Hence two roles that differ in the dark must differ in the light as well,
if only by one step.

Colour says what kind of allocator, so that two versions of one allocator look related; shape says
the same without colour; the dash tells the versions apart. brimful alone has the accent, a thick
line and a circle, glibc is grey. Colour and shape hang on the name alone, so an allocator has the
same in every report, whoever else takes part. The hues are from Okabe and Ito's and from Paul
Tol's sets, which stay apart for colour-blind readers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..model import Allocator

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"  # all three have the same widths

PAPER, INK, FAINT, GRID = "#ffffff", "#1b222c", "#5a6472", "#e2e5e9"
ACCENT, NEUTRAL, OTHER = "#d1410c", "#7b838e", "#2f9c8d"
SHADE = "#edf0f3"  # areas behind marks: the noise floor

# better … worse than the baseline, with the text that can be read on each
HEAT = ("#1f64a8", "#64a5cd", "#cfe3ef", "#f6f6f5", "#fcdcc6", "#ee8b60", "#b21f2d")
ON_STRONG, ON_WEAK = "#fffffe", "#1b222d"
FAILED = "#a3123a"

DARK = {
    PAPER: "#14181e",
    INK: "#e7eaef",
    FAINT: "#a2acb9",
    GRID: "#323a45",
    SHADE: "#222932",
    ACCENT: "#ff7a42",
    NEUTRAL: "#969faa",
    OTHER: "#57c7b8",
    ON_STRONG: "#0c1016",
    ON_WEAK: "#e7eaee",
    FAILED: "#ff8aa8",
    HEAT[0]: "#6bb8f2",
    HEAT[1]: "#3a7fb0",
    HEAT[2]: "#1f4259",
    HEAT[3]: "#242a32",
    HEAT[4]: "#56341f",
    HEAT[5]: "#a9602f",
    HEAT[6]: "#ff9d6b",
    "#0072b2": "#4ba9e9",
    "#00875f": "#2fc596",
    "#a8458f": "#e08ac6",
    "#3b2c94": "#a396f5",
    "#3f9bd0": "#8ed0f4",
    "#7d7d1c": "#cccb5e",
    "#86234f": "#e07ba8",
    "#7a5a36": "#c7a57b",
}

_STAR = "M0,-1L.23,-.32L.95,-.31L.37,.12L.59,.81L0,.4L-.59,.81L-.37,.12L-.95,-.31L-.23,-.32Z"

# part of a name → colour and shape; the first that fits counts
_FAMILIES: tuple[tuple[str, str, str], ...] = (
    ("mimalloc", "#0072b2", "triangle-up"),
    ("jemalloc", "#00875f", "diamond"),
    ("tcmalloc", "#a8458f", "triangle-down"),
    ("gperftools", "#a8458f", "triangle-down"),
    ("snmalloc", "#3b2c94", "cross"),
    ("rpmalloc", "#3f9bd0", "triangle-right"),
    ("tbb", "#7d7d1c", "triangle-left"),
    ("scudo", "#86234f", _STAR),
    ("hardened", "#7a5a36", "M-1,-.3H1V.3H-1Z"),
)
_DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 3), (2, 2), (9, 3, 2, 3), (4, 1), (12, 4))


@dataclass(frozen=True)
class Style:
    """How one allocator is drawn."""

    colour: str
    shape: str
    dash: tuple[int, ...]
    width: float


def styles(allocators: Iterable[Allocator]) -> dict[str, Style]:
    """A style for each name; relatives take the dashes in the order of their names."""
    result: dict[str, Style] = {}
    relatives: dict[str, int] = {}
    for allocator in sorted(allocators, key=lambda one: one.name):
        colour, shape = _family(allocator)
        place = relatives.get(colour, 0)
        relatives[colour] = place + 1
        dash = _DASHES[place % len(_DASHES)]
        result[allocator.name] = Style(colour, shape, dash, 3.0 if allocator.ours else 1.6)
    return result


def _family(allocator: Allocator) -> tuple[str, str]:
    if allocator.ours:
        return ACCENT, "circle"
    if allocator.name == "glibc":
        return NEUTRAL, "square"
    fitting = (row[1:] for row in _FAMILIES if row[0] in allocator.name.lower())
    return next(fitting, (OTHER, "square"))


def config() -> dict[str, Any]:
    """Settings of every chart, in vega-lite's terms."""
    text = {"labelColor": FAINT, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 12}
    return {
        "background": PAPER,
        "font": FONT,
        "padding": 6,
        "view": {"stroke": None},
        "axis": {
            **text,
            "titleFontWeight": "normal",
            "gridColor": GRID,
            "domainColor": GRID,
            "tickColor": GRID,
            "labelLimit": 260,
            "labelOverlap": "greedy",
        },
        "legend": {
            **text,
            "symbolSize": 70,
            "labelLimit": 220,
            "symbolStrokeWidth": 1.6,
            "symbolOpacity": 1,
        },
        "title": {
            "color": INK,
            "subtitleColor": FAINT,
            "anchor": "start",
            "fontSize": 14,
            "subtitleFontSize": 11.5,
            "subtitlePadding": 4,
            "offset": 10,
        },
        "header": {**text, "labelFontSize": 12, "labelColor": INK, "labelLimit": 400},
    }
