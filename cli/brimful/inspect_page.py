# SPDX-License-Identifier: MIT
"""The heap as an SVG picture, and as one HTML page around it that needs no network.

A square is a hugepage of 2 MiB, in the order of addresses; its colour and its letter say what it
holds, and the text that appears over it says how much.
"""

from __future__ import annotations

from html import escape
from typing import Any

COLOURS = {
    "live": "#2e7d32",
    "mixed": "#c9a227",
    "free": "#c62828",
    "purged": "#d0d0d0",
    "untouched": "#eeeeee",
    "metadata": "#1565c0",
}
LETTERS = {"live": "L", "mixed": "m", "free": "f", "purged": ".", "untouched": "u", "metadata": "#"}
COLUMNS = 64
CELL = 14
HEAD = 26


def svg(seen: dict[str, Any]) -> str:
    """The picture of an answer of the observer."""
    cells = seen["hugepages"]
    rows = (len(cells) + COLUMNS - 1) // COLUMNS
    width, height = COLUMNS * CELL, HEAD + rows * CELL
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="9">'
    ]
    at = 0
    for kind, colour in COLOURS.items():
        parts.append(
            f'<rect x="{at}" y="4" width="12" height="12" fill="{colour}"/>'
            f'<text x="{at + 16}" y="14" font-size="11">{LETTERS[kind]} {kind}</text>'
        )
        at += 100
    for number, cell in enumerate(cells):
        x, y = number % COLUMNS * CELL, HEAD + number // COLUMNS * CELL
        kind = cell["kind"]
        ink = "#000" if kind in ("purged", "untouched", "mixed") else "#fff"
        parts.append(
            f"<g><title>{escape(_tip(cell))}</title>"
            f'<rect x="{x}" y="{y}" width="{CELL - 1}" height="{CELL - 1}" fill="{COLOURS[kind]}"/>'
            f'<text x="{x + 3}" y="{y + 10}" fill="{ink}">{LETTERS[kind]}</text></g>'
        )
    parts.append("</svg>")
    return "\n".join(parts)


def html(seen: dict[str, Any]) -> str:
    """The page: totals, picture, classes, biggest blocks."""
    totals, target = seen["totals"], seen["target"]
    title = escape(f"heap of {target['program']}" + (f" ({target['pid']})" if target["pid"] else ""))
    names = ("resident", "live", "free_in_slabs", "free_runs", "metadata")
    sums = "".join(_row(name.replace("_", " "), f"{totals[name]:,}") for name in names)
    classes = "".join(
        _row(use["bytes"], use["slabs"], use["live"], use["free"], use["resident"], use["waste"])
        for use in sorted(seen["classes"], key=lambda use: -use["waste"])
    )
    blocks = "".join(
        _row(f"{block['address']:#x}", block["bytes"], block["resident"], block["kind"])
        for block in seen["biggest"]
    )
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body{{font-family:sans-serif;margin:2em}}td,th{{text-align:right;padding:0 .8em}}</style>
<h1>{title}</h1><p>brimful {escape(target["library"])}; moving meanwhile: {seen["moving"]["bytes"]} bytes</p>
<table><tr><th></th><th>bytes</th></tr>{sums}</table>
<h2>Hugepages of 2 MiB</h2>{svg(seen)}
<h2>Size classes</h2><table>{_row("class", "slabs", "live", "free", "resident", "waste", tag="th")}{classes}</table>
<h2>Biggest blocks</h2><table>{_row("address", "bytes", "resident", "kind", tag="th")}{blocks}</table>
</html>"""


def _row(*values: object, tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(str(value))}</{tag}>" for value in values) + "</tr>"


def _tip(cell: dict[str, Any]) -> str:
    lines = [f"{cell['address']:#x}: {cell['kind']}"]
    for key in ("resident", "live", "free_in_slabs", "free_runs", "metadata", "away"):
        if cell[key]:
            lines.append(f"{key.replace('_', ' ')}: {cell[key]:,} bytes")
    lines += [f"{slab['slabs']} slabs of {slab['bytes']} bytes" for slab in cell["slabs"]]
    if cell["blocks"]:
        lines.append("a large block")
    if cell["moving"]:
        lines.append("moving")
    return "\n".join(lines)
