# SPDX-License-Identifier: MIT
"""Figures in the pages of docs/: whose they are stands above them, and only they are rewritten.

A page has places for a study's figures, from `<!-- figures: written by brimful bench study NAME -->` to
`<!-- end of figures -->`; where a study has several in one page, each is named, as in
`… study NAME: PLACE -->`. All other text is written by hand and stays. Charts lie in docs/img/, each
in a light and a dark form, of which the reader's browser takes one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..model import Allocator
from .model import ROOT, Data, StudyError

IMAGES = ROOT / "docs" / "img"
END = "<!-- end of figures -->"
NOT_MEASURED = ["Not measured.", ""]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table; all columns but the first are figures and stand to the right."""

    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    return [row(head), "|---|" + "---:|" * (len(head) - 1), *map(row, rows), ""]


def aligned(lines: Sequence[str]) -> list[str]:
    """The same for a terminal: the columns of tables below each other, and no bold."""
    found: list[str] = []
    block: list[list[str]] = []
    for line in [*(line.replace("**", "") for line in lines), ""]:
        if line.startswith("|---"):
            continue
        if line.startswith("|"):
            block.append([cell.strip() for cell in line.strip("|").split("|")])
            continue
        widths = [max(map(len, column)) for column in zip(*block, strict=True)]
        for row in block:
            first, *others = (
                cell.ljust(widths[0]) if at == 0 else cell.rjust(widths[at])
                for at, cell in enumerate(row)
            )
            found.append("  ".join([first, *others]).rstrip())
        block = []
        found.append(line)
    return found[:-1]


def interval(ratio: Data) -> str:
    """A ratio as records keep it: a dictionary of statistics.Ratio."""
    return f"{ratio['median']:.3f} [{ratio['low']:.3f} … {ratio['high']:.3f}]"


def human(size: int) -> str:
    """Bytes that are a whole number of KiB or MiB."""
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def begin(study: str, place: str = "") -> str:
    """The comment above a study's figures."""
    return f"<!-- figures: written by brimful bench study {study}{place and f': {place}'} -->"


class Place:
    """A page while its figures are made: what it links to, and the pictures that belong to it."""

    def __init__(self, page: Path) -> None:
        self.page = page
        self.drawn: dict[Path, str] = {}  # picture → its text

    def link(self, target: Path) -> str:
        return os.path.relpath(target, self.page.parent)

    def chart(self, key: str, chart: object, meaning: str) -> list[str]:
        """Draws the chart as docs/img/KEY-light.svg and -dark.svg; returns what shows it."""
        from ..charts import render  # only whoever draws needs the packages of build/venv

        light = render.svg(chart)  # type: ignore[arg-type]
        return self.picture(key, light, render.dark(light), meaning)

    def picture(self, key: str, light: str, dark: str, meaning: str) -> list[str]:
        names = [IMAGES / f"{key}-{shade}.svg" for shade in ("light", "dark")]
        self.drawn |= dict(zip(names, (light, dark), strict=True))
        at = [self.link(name) for name in names]
        source = f'<source media="(prefers-color-scheme: dark)" srcset="{at[1]}">'
        return [f'<picture>{source}<img alt="{meaning}" src="{at[0]}"></picture>', ""]

    def source(self, path: Path, facts: Data) -> str:
        """Which file the figures are from, of when, and of which commit."""
        changed = ", with uncommitted changes" if facts.get("uncommitted_changes") else ""
        link = f"[`{path.name}`]({self.link(path)})"
        return f"Raw data: {link}, {facts['date']}, commit `{facts['commit'][:12]}`{changed}"

    def origin(self, path: Path, facts: Data, allocators: Sequence[Allocator]) -> list[str]:
        """The same, on which machine, and who took part."""
        told = [f"{one.name} {label(one)}" for one in allocators if label(one)]
        return [
            f"{self.source(path, facts)}. {facts['cpu']}, {facts['cpus_allowed']} CPUs, Linux "
            f"{facts['kernel']}, {facts['libc']}, THP {facts['thp']}, load "
            f"{facts['load_average_before']:.2f} at the start. {'; '.join(told)}.",
            "",
        ]


def label(allocator: Allocator) -> str:
    """What tells this build from others: a version, or the first digits of its checksum."""
    return allocator.version or allocator.sha256[:12]


def filled(page: str, study: str, made: Mapping[str, Sequence[str]]) -> str:
    """The page's text with what was made in this study's places.

    Raises StudyError for a place that nothing was made for, and for a page without any.
    """
    mark = re.escape(begin(study).removesuffix(" -->"))
    place = re.compile(rf"({mark}(?:: (\w+))? -->\n).*?({END})", re.DOTALL)

    def one(found: re.Match[str]) -> str:
        above, key, below = found.groups()
        if (key or "") not in made:
            raise StudyError(f"the study {study} has no figures called {key!r}")
        text = "\n".join(made[key or ""]).rstrip("\n")
        return f"{above}\n{text}\n\n{below}"

    text, count = place.subn(one, page)
    if not count:
        raise StudyError(f"no place for figures of the study {study}: {begin(study)}")
    return text
