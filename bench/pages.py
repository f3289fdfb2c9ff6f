# SPDX-License-Identifier: MIT
"""Figures in the pages of docs/: what the scripts share that write them there.

A page has a place for a script's figures, between `<!-- figures: written by bench/SCRIPT -->` and
`<!-- end of figures -->`; all other text is written by hand and stays. Charts lie in docs/img/, each
in a light and a dark form, of which the reader's browser takes one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import benchlib
from benchlib import BenchError

IMAGES = benchlib.ROOT / "docs" / "img"
END = "<!-- end of figures -->"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table; all columns but the first are figures and stand to the right."""

    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    return [row(head), "|---|" + "---:|" * (len(head) - 1), *map(row, rows), ""]


def picture(page: Path, key: str, chart: object, meaning: str) -> list[str]:
    """Draws the chart into docs/img/KEY-light.svg and -dark.svg; returns what shows it in the page."""
    # Only whoever draws needs the packages of build/venv.
    from brimful.bench.charts import render

    light = render.svg(chart)  # type: ignore[arg-type]
    names = [f"{key}-{shade}.svg" for shade in ("light", "dark")]
    for name, drawn in zip(names, (light, render.dark(light)), strict=True):
        (IMAGES / name).write_text(drawn)
    folder = os.path.relpath(IMAGES, page.parent)
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="{folder}/{names[1]}">'
    return [f'<picture>{dark}<img alt="{meaning}" src="{folder}/{names[0]}"></picture>', ""]


def filled(page: Path, script: str, figures: str) -> str:
    """The page's text with these figures in the place of bench/`script`. Raises BenchError."""
    mark = f"<!-- figures: written by bench/{script} -->"
    head, begin, rest = page.read_text().partition(mark)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise BenchError(f"no marker lines in {page}")
    text = figures.rstrip("\n")
    return f"{head}{mark}\n\n{text}\n\n{END}{tail}"
