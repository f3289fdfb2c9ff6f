# SPDX-License-Identifier: MIT
"""`brimful inspect`: what the heap of a process or a core holds, and what lies at an address.

The observer reads and counts (observer/inspect/); this draws. In the terminal each 2 MiB hugepage
is a letter, so that it works without colour, on a background that says the same:

    L live    at most an eighth of what is resident is free
    m mixed   live and free
    f free    resident, nothing lives there: it will go back
    . purged  was used, is not resident any more
    u untouched   handed out, not resident
    # metadata
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from . import inspect_page, locate

EXIT_FAILURE = 1

LETTERS = {
    "live": "L",
    "mixed": "m",
    "free": "f",
    "purged": ".",
    "untouched": "u",
    "metadata": "#",
}
STYLES = {
    "live": "white on dark_green",
    "mixed": "black on yellow3",
    "free": "white on red3",
    "purged": "bright_black",
    "untouched": "bright_black",
    "metadata": "white on blue",
}
CLASSES_SHOWN = 12


def observe(target: str, options: list[str]) -> dict[str, Any] | None:
    """What the observer says of `target`; None when it has said on standard error why not."""
    try:
        observer = locate.observer()
    except locate.LibraryError as error:
        _say(str(error))
        return None
    done = subprocess.run(
        [observer, "inspect", *options, "--", target], stdout=subprocess.PIPE, check=False
    )
    if done.returncode != 0:
        return None
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def heap(target: str, biggest: int, svg: str | None, html: str | None, as_json: bool) -> int:
    """Show the whole heap; returns the exit code."""
    seen = observe(target, ["--biggest", str(biggest)])
    if seen is None:
        return EXIT_FAILURE
    if svg is not None:
        _write(svg, inspect_page.svg(seen))
    if html is not None:
        _write(html, inspect_page.html(seen))
    if as_json:
        print(json.dumps(seen))
    elif svg is None and html is None:
        _draw(seen)
    return 0


def address(target: str, where: str, as_json: bool) -> int:
    """Say what lies at an address; returns the exit code."""
    seen = observe(target, ["--address", where])
    if seen is None:
        return EXIT_FAILURE
    print(json.dumps(seen) if as_json else "\n".join(describe(seen)))
    return 0


def describe(seen: dict[str, Any]) -> list[str]:
    """The lines that say what lies at an address."""
    what, at = seen["what"], seen["address"]
    if what == "object":
        lines = _object(seen)
    elif what in ("large block", "huge block"):
        size = seen["end"] - seen["start"]
        lines = [
            f"{at:#x} is {seen['offset']} bytes into a {seen['state']} {what} of {size} bytes",
            f"  block    {seen['start']:#x} to {seen['end']:#x}",
        ]
        if "free_as" in seen:
            lines.append(f"  free     {seen['free_as']}")
    elif what == "guarded object":
        way = {
            "inside": f"{seen['distance']} bytes into",
            "before": f"{seen['distance']} bytes before",
            "behind": f"{seen['distance']} bytes behind the end of",
        }[seen["where"]]
        length = seen["end"] - seen["start"]
        lines = [
            f"{at:#x} is {way} a {seen['state']} guarded object of {length} bytes",
            f"  object   {seen['start']:#x} to {seen['end']:#x}",
        ]
    elif what == "not mapped":
        lines = [f"{at:#x} is not mapped: no memory of this program"]
    elif "path" in seen:
        place = f" ({seen['path']})" if seen["path"] else ""
        lines = [
            f"{at:#x} is not brimful's: {what}{place}",
            f"  mapping  {seen['start']:#x} to {seen['end']:#x}, offset {seen['offset']:#x}",
        ]
    else:
        lines = [f"{at:#x}: {what}"]
    lines += _sample(seen.get("sample"))
    if seen.get("moving"):
        lines.append("  moving   the program used this slab at each of five looks: ask again")
    return lines


def _state(thing: dict[str, Any]) -> str:
    if thing["state"] == "live":
        return "live"
    how = thing["free_as"]
    return (
        f"free, in a magazine of context {thing['context']}"
        if how == "magazine"
        else f"free, {how}"
    )


def _object(seen: dict[str, Any]) -> list[str]:
    slab = seen["slab"]
    owner = slab["owner"] + (f" {slab['context']}" if "context" in slab else "")
    owner += f" {slab['heap']}" if "heap" in slab else ""
    lines = [
        f"{seen['address']:#x} is {seen['offset']} bytes into a {seen['state']} "
        f"{seen['class_bytes']}-byte object",
        f"  object   number {seen['number']}, {seen['start']:#x} to {seen['end']:#x}: {_state(seen)}",
        f"  slab     {slab['start']:#x} to {slab['end']:#x}, {slab['objects']} objects; owner: {owner}",
    ]
    for name in ("before", "after"):
        if name in seen:
            lines.append(f"  {name:<8} {seen[name]['start']:#x}: {_state(seen[name])}")
    return lines


def _sample(sample: dict[str, Any] | None) -> list[str]:
    if sample is None:
        return []
    lines = [f"  sample   number {sample['number']}, {sample['requested']} bytes were asked for"]
    for key, text in (("allocated_by", "allocated"), ("freed_by", "freed")):
        if key in sample:
            stack = sample[key]
            lines.append(f"  {text} by thread {stack['tid']}")
            names = stack.get("names") or [f"{frame:#x}" for frame in stack["frames"]]
            lines += [f"    {name}" for name in names]
    return lines


def size(count: int) -> str:
    """Bytes as people read them."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def _draw(seen: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    totals, target = seen["totals"], seen["target"]
    who = f"process {target['pid']} ({target['program']})" if target["pid"] else target["program"]
    console.print(f"{who}, brimful {target['library']}", soft_wrap=True)
    resident = totals["resident"] or 1
    if seen["residency"] != "kernel":
        console.print("Which pages were resident is not known: what was handed out counts.")
    for key, text in (
        ("resident", "resident"),
        ("live", "  live"),
        ("free_in_slabs", "  free in slabs"),
        ("free_runs", "  free runs"),
        ("metadata", "  metadata"),
    ):
        console.print(f"{text:<16}{size(totals[key]):>12}{totals[key] / resident:>8.1%}")
    if seen["moving"]["bytes"]:
        console.print(f"moving meanwhile: {size(seen['moving']['bytes'])} (these may be off)")
    console.print()
    width = max(16, min(console.width, 200) - 20)
    row, first = Text(), None
    for cell in seen["hugepages"]:
        if first is None or len(row) >= width or cell["address"] != first + len(row) * (2 << 20):
            if first is not None:
                console.print(Text(f"{first:#016x}  ") + row, soft_wrap=True)
            row, first = Text(), cell["address"]
        row.append(LETTERS[cell["kind"]], style=STYLES[cell["kind"]])
    if first is not None:
        console.print(Text(f"{first:#016x}  ") + row, soft_wrap=True)
    counts = dict.fromkeys(LETTERS, 0)
    for cell in seen["hugepages"]:
        counts[cell["kind"]] += 1
    legend = Text("each letter is 2 MiB: ")
    for kind, letter in LETTERS.items():
        if counts[kind]:
            legend.append(letter, style=STYLES[kind]).append(f" {kind} {counts[kind]}  ")
    console.print(legend)
    console.print()
    table = Table(box=None, pad_edge=False, header_style="")
    for name in ("class", "slabs", "live", "free", "resident", "waste", "waste %"):
        table.add_column(name, justify="right")
    worst = sorted(seen["classes"], key=lambda use: -use["waste"])
    for use in worst[:CLASSES_SHOWN]:
        numbers = [use["bytes"], use["slabs"], use["live"], use["free"]]
        share = use["waste"] / use["resident"] if use["resident"] else 0
        table.add_row(*map(str, numbers), size(use["resident"]), size(use["waste"]), f"{share:.0%}")
    console.print(table)
    if len(worst) > CLASSES_SHOWN:
        console.print(f"and {len(worst) - CLASSES_SHOWN} classes that waste less")
    if seen["biggest"]:
        console.print("\nbiggest blocks")
        for block in seen["biggest"]:
            console.print(
                f"  {block['address']:#x}  {size(block['bytes']):>10}  "
                f"resident {size(block['resident']):>10}  {block['kind']}",
                soft_wrap=True,
            )


def _write(path: str, text: str) -> None:
    """A whole file or none: what was there stays until the new one is complete."""
    if path == "-":
        print(text)
        return
    fresh = f"{path}.{os.getpid()}.part"
    try:
        with open(fresh, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(fresh, path)
    finally:
        if os.path.exists(fresh):
            os.unlink(fresh)


def _say(text: str) -> None:
    print(f"brimful inspect: {text}", file=sys.stderr)
