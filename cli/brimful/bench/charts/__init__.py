# SPDX-License-Identifier: MIT
"""All pictures of a result, and how they become files.

    look        colours, shapes, dashes; light and dark
    parts       the figure, the series of allocators, axes and numbers
    scatter     time against memory
    overview    the league, all metrics, the noise floor, use of memory
    rows        heat tables, change against the baseline row by row
    sweeps      against threads, against sizes
    locks       contended locks and throughput, design by design
    timelines   memory over time, samples from round to round
    latency     percentiles of single calls
    render      from a chart to SVG and PNG

Everything drawn here is computed by `summary` and `statistics`; the charts choose what stands
where, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from altair.utils.schemapi import debug_mode

from ..model import Result
from ..summary import Summary, summarize
from . import latency, locks, look, overview, render, rows, sweeps, timelines
from .parts import Drawing, Figure

FORMATS = ("svg", "png")


def figures(summary: Summary) -> list[Figure]:
    """Every figure, in the order of the report."""
    drawing = _drawing(summary)
    with debug_mode(False):  # altair checks each part against its schema: half a minute for nothing
        return _figures(drawing)


def _figures(drawing: Drawing) -> list[Figure]:
    result, names, styles = drawing.summary.result, drawing.names, drawing.styles
    return [
        *overview.figures(drawing),
        *rows.heat(drawing),
        *rows.changes(drawing),
        *sweeps.figures(drawing),
        *locks.figures(drawing),
        *latency.figures(result, names, styles),
        *timelines.memory(result, names, styles),
        *overview.footprint(drawing),
        *timelines.rounds(result, names, styles),
        overview.noise(drawing),
    ]


def _drawing(summary: Summary) -> Drawing:
    league = [standing.allocator for standing in summary.league]
    ours = [one.name for one in league if one.ours]
    first = [*sorted(ours, key=len), summary.baseline]
    names = list(dict.fromkeys([*first, *(one.name for one in league)]))
    return Drawing(summary, names, look.styles(summary.result.allocators))


def picture(figure: Figure) -> str:
    """The SVG of a figure that has a chart, in light colours."""
    assert figure.chart is not None, "a figure without a chart has no picture"
    return render.svg(figure.chart.configure(**look.config()))


def export_charts(
    result: Result, folder: Path, formats: Sequence[str] = FORMATS, keys: Sequence[str] = ()
) -> list[Path]:
    """Every chart (of `keys`, if given) as a file of its own, light and dark. Returns the files.

    Raises ValueError for a format other than FORMATS, and SummaryError.
    """
    unknown = set(formats) - set(FORMATS)
    if unknown:
        raise ValueError(f"no such format: {', '.join(sorted(unknown))}")
    baseline = str(result.options.get("baseline", ""))
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures(summarize(result, baseline)):
        if figure.chart is None or (keys and figure.key not in keys):
            continue
        light = picture(figure)
        for theme, drawn in (("light", light), ("dark", render.dark(light))):
            for form in formats:
                path = folder / f"{figure.key}-{theme}.{form}"
                path.write_bytes(drawn.encode() if form == "svg" else render.png(drawn))
                written.append(path)
    return written
