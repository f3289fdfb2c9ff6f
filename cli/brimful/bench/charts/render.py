# SPDX-License-Identifier: MIT
"""From a chart to SVG and PNG, in the light and in the dark, without a browser or a network.

A page with vega's scripts would carry a megabyte of code for tooltips alone and show nothing where
scripts are off. Drawn here instead, a chart is plain SVG: each mark's description becomes a <title>
(the browser's own tooltip, and what a screen reader says), and what every mark repeats is taken
out, which leaves a third of the size.
"""

from __future__ import annotations

import re
from html import escape

import altair as alt
import vl_convert

from . import look

_VERSION = "6.4"  # of vega-lite, as altair 6 writes it
_DROPPED = re.compile(
    r' (?:role|aria-roledescription|aria-hidden|pointer-events|font-family|xmlns:xlink|version)="[^"]*"'
    r'| (?:opacity|stroke-width|fill-opacity)="1"| stroke-miterlimit="10"'
)
_EMPTY = re.compile(r'<path class="(?:fore|back)ground"[^>]* d="(?:M0,0h0v0h0Z)?"[^>]*/>')
_GEOMETRY = re.compile(r' (?:d|transform|x|y|x2|y2|width|height)="[^"]*"')
_LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
_LABELLED = re.compile(
    r'<(path|line|text) aria-label="([^"]*)"([^>]*?)(?:/>|>([^<]*)</\1>)', re.DOTALL
)
_CLASS = re.compile(r' class="[^"]*"')
_ROOT = re.compile(r"<svg [^>]*>")
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
SEPARATOR = " · "  # in a description: the allocator's name stands before it


def svg(chart: alt.TopLevelMixin) -> str:
    """The chart as a file of its own, in light colours.

    Without the check against vega-lite's schema, which takes longer than drawing; the tests do it.
    """
    return vl_convert.vegalite_to_svg(chart.to_dict(validate=False), vl_version=_VERSION)


def dark(light: str) -> str:
    """The same picture in dark colours."""
    light = light.replace('fill="white"', f'fill="{look.PAPER}"')
    return re.sub(r"#[0-9a-f]{6}", lambda found: look.DARK.get(found[0], found[0]), light)


def png(picture: str, scale: float = 2.0) -> bytes:
    """A picture as pixels."""
    return vl_convert.svg_to_png(picture, scale=scale)


def inline(picture: str, label: str) -> str:
    """The picture as part of a page: smaller, with tooltips, and read out as `label`."""
    size = _SIZE.search(picture)
    assert size is not None, "vl-convert names the size of every picture"
    width, height = size.groups()
    picture = _LABELLED.sub(_with_title, picture)
    picture = _EMPTY.sub("", _DROPPED.sub("", picture))
    picture = _CLASS.sub("", picture)
    picture = re.sub(r' aria-label="[^"]*"', "", picture)
    while "<g></g>" in picture:
        picture = picture.replace("<g></g>", "")
    picture = _GEOMETRY.sub(lambda found: _LONG_NUMBER.sub(_rounded, found[0]), picture)
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    )
    return _ROOT.sub(lambda _: root, picture, count=1)


def _with_title(found: re.Match[str]) -> str:
    """A mark with its description inside it, and the allocator's name for those who highlight."""
    kind, label, attributes, text = found.groups()
    name, separator, _ = label.partition(SEPARATOR)
    mark = f' data-a="{name}"' if separator else ""
    return f"<{kind}{mark}{attributes}><title>{label}</title>{text or ''}</{kind}>"


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.1f}".removesuffix(".0")


def style_rules(selector: str) -> str:
    """What turns inlined pictures dark: one rule for each colour, valid below `selector`."""
    rules = []
    for light, other in look.DARK.items():
        for attribute in ("fill", "stroke"):
            rules.append(f'{selector} svg [{attribute}="{light}"]{{{attribute}:{other}}}')
    rules.append(f'{selector} svg [fill="white"]{{fill:{look.DARK[look.PAPER]}}}')
    return "\n".join(rules)
