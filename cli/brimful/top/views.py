# SPDX-License-Identifier: MIT
"""What is on the screen: lines of text for a width and a height.

A view knows nothing of the terminal, so that the same lines serve --once. Every line is cut at the
width, so what matters stands to the left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from rich.text import Text

from . import layout
from .observe import Process, locks_of

# Of the list of processes: what it is sorted by, and how.
LIST_ORDERS: dict[str, Callable[[Process], Any]] = {
    "rss": lambda one: -one["process"]["rss"],
    "live": lambda one: -one["heap"]["live"],
    "waste": lambda one: -(one["heap"]["resident"] - one["heap"]["live"]),
    "malloc": lambda one: -(one["rates"]["mallocs"] or 0),
    "pid": lambda one: one["pid"],
}
# Of the table of classes.
CLASS_ORDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "waste": lambda use: -use["waste"],
    "live": lambda use: -use["live_bytes"],
    "size": lambda use: use["bytes"],
    "occupancy": lambda use: use["live"] / (use["live"] + use["free"]),
}
KEYS = (
    ("up, down, k, j", "select a process; in a process, scroll"),
    ("enter, right", "show the process"),
    ("esc, left", "back to the list"),
    ("s", "sort by the next column"),
    ("p, space", "pause, go on"),
    ("w", "write what is shown to a file, as JSON"),
    ("h, ?", "this help"),
    ("q, ctrl-c", "quit"),
)
EXPLANATION = (
    "~ marks estimates. Nobody counts calls of malloc and free: fast paths count nothing. malloc's slow "
    "paths offer it up to 64 objects at a time and count those off, so ~malloc/s is objects offered "
    "a second; ~free/s is malloc's less what the live objects grew by, known at each look at the whole "
    "heap.",
    "A whole heap is looked at as often as a twentieth of a processor allows: once a second up to some "
    "500 MiB. 'as of' says how old these figures are; 'moving' how many bytes of them changed while "
    "they were read.",
)
BAR_WIDTH = 14
_WIDE = 72  # columns from which on all is shown

Line = Text


def nobody() -> str:
    """What to say where there is nothing to show."""
    whose = "no process" if os.geteuid() == 0 else "no process of yours"
    return f"{whose} runs brimful: start one with `brimful run -- COMMAND`"


def _row(cells: Sequence[tuple[str, int]], style: str = "") -> Line:
    """Cells side by side; a positive width is right-aligned, a negative one left-aligned, 0 as it is."""
    parts = []
    for text, width in cells:
        parts.append(text.rjust(width) if width > 0 else text.ljust(-width))
    return Text(" ".join(parts).rstrip(), style=style)


def processes(
    all_of_them: list[Process], selected: int, order: str, width: int, height: int
) -> list[Line]:
    """The list, one line each; `selected` is a process id, and stays in sight."""
    is_wide = width >= _WIDE

    def cells(one: Process) -> list[tuple[str, int]]:
        heap, rates = one["heap"], one["rates"]
        kernel = one["process"]
        start = [(str(one["pid"]), 7), (layout.size(kernel["rss"]), 6)]
        start += [(layout.size(heap["live"]), 6)]
        if is_wide:
            free = heap["free_in_slabs"] + heap["free_runs"]
            start += [(layout.size(free), 6)]
            start += [(layout.percent(kernel["hugepages"], kernel["rss"]), 5)]
            start += [(layout.rate(rates["purged_bytes"], "bytes"), 7)]
        start += [(layout.estimate(rates["mallocs"]), 7)]
        if is_wide:
            start += [(layout.estimate(rates["frees"]), 7)]
        return [*start, (_command(one), 0)]

    head = [("PID", 7), ("RSS", 6), ("LIVE", 6)]
    if is_wide:
        head += [("FREE", 6), ("HUGE", 5), ("PURGE/s", 7)]
    head += [("~MAL/s", 7)]
    if is_wide:
        head += [("~FREE/s", 7)]
    lines = [_row([*head, ("COMMAND", 0)], "bold")]
    ordered = in_order(all_of_them, order)
    places = [one["pid"] for one in ordered]
    at = places.index(selected) if selected in places else 0
    room = max(1, height - 1)
    first = max(0, min(at - room // 2, len(ordered) - room))
    for one in ordered[first : first + room]:
        is_selected = selected != 0 and one["pid"] == selected
        lines.append(_row(cells(one), "reverse" if is_selected else ""))
    return [_cut(line, width) for line in lines]


def _command(one: Process) -> str:
    """The command line, without the folder of the program."""
    words = layout.visible(one["command"] or one["program"]).split(" ", 1)
    return " ".join([os.path.basename(words[0]) or words[0], *words[1:]])


def in_order(all_of_them: list[Process], order: str) -> list[Process]:
    """The processes, sorted."""
    return sorted(all_of_them, key=lambda one: (LIST_ORDERS[order](one), one["pid"]))


def process(one: Process, order: str, scroll: int, width: int, height: int) -> list[Line]:
    """One process: where its memory is, what it does, its locks, its classes."""
    lines = [*_memory(one, width), *_activity(one, width), *_locks(one, width), *_options(one)]
    table = _classes(one, order, width)
    room = height - len(lines) - 2
    if room < 4 and len(lines) + len(table) + 1 > height:  # too low for all: everything scrolls
        whole = [*lines, Text(), *table]
        first = max(0, min(scroll, len(whole) - height))
        return [_cut(line, width) for line in whole[first : first + height]]
    first = max(0, min(scroll, len(table) - 1 - room))
    shown = [*lines, Text(), table[0], *table[1 + first : 1 + first + room]]
    return [_cut(line, width) for line in shown]


def _memory(one: Process, width: int) -> list[Line]:
    heap, kernel = one["heap"], one["process"]
    resident = heap["resident"]
    lines = [
        Text(
            f"{one['pid']} {layout.visible(one['command'] or one['program'])}",
            style="bold",
        ),
        Text(
            f"brimful {one['version']}, up {layout.duration(one['uptime_seconds'])}, "
            f"front end {one['front_end']}, contexts {one['contexts']}"
        ),
        Text(),
    ]
    facts = [
        ("RSS", layout.size(kernel["rss"])),
        ("PSS", layout.size(kernel["pss"])),
        ("hugepages", f"{layout.size(kernel['hugepages'])} ({_share(kernel, 'hugepages')})"),
    ]
    if kernel["swap"]:
        facts.append(("swap", layout.size(kernel["swap"])))
    if one["limits"]["hard"]:
        facts.append(("limit", layout.size(one["limits"]["hard"])))
    lines.append(Text("  ".join(f"{name} {text}" for name, text in facts)))
    bar_width = min(40, max(8, width - 30))
    for name, key in (
        ("live", "live"),
        ("free in slabs", "free_in_slabs"),
        ("free runs", "free_runs"),
        ("metadata", "metadata"),
    ):
        share = heap[key] / resident if resident else 0.0
        lines.append(
            _row(
                [
                    (name, -13),
                    (layout.size(heap[key]), 6),
                    (layout.percent(heap[key], resident), 5),
                    (layout.bar(share, bar_width), 0),
                ]
            )
        )
    notes = [f"heap resident {layout.size(resident)}"]
    if heap["age_seconds"] >= 1:
        notes.append(f"as of {layout.duration(heap['age_seconds'])} ago")
    if heap["moving_bytes"]:
        notes.append(f"moving {layout.size(heap['moving_bytes'])}")
    lines.append(Text(", ".join(notes), style="dim"))
    if one["limits"]["memory_is_short"]:
        lines.append(Text("memory is short: free memory goes back at once", style="red"))
    return lines


def _share(kernel: dict[str, int], key: str) -> str:
    return layout.percent(kernel[key], kernel["rss"])


def _activity(one: Process, width: int) -> list[Line]:
    rates = one["rates"]
    facts = [
        f"malloc/s {layout.estimate(rates['mallocs'])}",
        f"free/s {layout.estimate(rates['frees'])}",
        f"purged/s {layout.rate(rates['purged_bytes'], 'bytes')}",
        f"(in all {layout.size(one['pages']['purged'])} by {layout.number(one['pages']['purges'])} calls)",
    ]
    line = ""
    lines = []
    for fact in facts:
        if line and len(line) + 2 + len(fact) > width:
            lines.append(Text(line))
            line = ""
        line = f"{line}  {fact}" if line else fact
    return [*lines, Text(line)]


def _locks(one: Process, width: int) -> list[Line]:
    """Those that somebody waits for now; else those that somebody ever waited for most."""
    now = one["rates"]["locks"]
    by_wait = sorted(now.items(), key=lambda item: -item[1]["waiting"])
    if by_wait:
        texts = [
            f"{name} {layout.number(use['waits'])}/s, {use['waiting']:.1%} of a thread's time"
            for name, use in by_wait[:3]
        ]
        return [Text(f"waits for locks: {'; '.join(texts)}", style="yellow")]
    ever = sorted(locks_of(one).items(), key=lambda item: -item[1]["contended"])
    texts = [
        f"{name} {layout.number(use['contended'])}" for name, use in ever[:3] if use["contended"]
    ]
    return [Text(f"no waits for locks now; so far {', '.join(texts) or 'none'}", style="dim")]


def _options(one: Process) -> list[Line]:
    if not one["options_set"]:
        return []
    texts = [f"{name}:{one['options'][name]}" for name in one["options_set"]]
    return [Text(f"options {','.join(texts)}", style="dim")]


def _classes(one: Process, order: str, width: int) -> list[Line]:
    is_wide = width >= _WIDE
    head = [("CLASS", 6), ("LIVE", 7), ("FREE", 7)]
    if is_wide:
        head += [("SLABS", 6), ("RESIDENT", 8)]
    lines = [_row([*head, ("WASTE", 6), ("OCCUPANCY", 0)], "bold")]
    for use in sorted(one["heap"]["classes"], key=CLASS_ORDERS[order]):
        cells = [
            (str(use["bytes"]), 6),
            (layout.number(use["live"]), 7),
            (layout.number(use["free"]), 7),
        ]
        if is_wide:
            cells += [(layout.number(use["slabs"]), 6), (layout.size(use["resident"]), 8)]
        share = use["live"] / (use["live"] + use["free"])
        bars = layout.bar(share, BAR_WIDTH if is_wide else 7)
        cells += [(layout.size(use["waste"]), 6), (f"{bars} {share:.0%}", 0)]
        lines.append(_row(cells))
    blocks = one["heap"]["live_blocks"]
    if blocks:
        size = layout.size(one["heap"]["live_block_bytes"])
        lines.append(_row([("larger", 6), (layout.number(blocks), 7), (f"blocks, {size}", 0)]))
    return lines


def help_text(width: int) -> list[Line]:
    """Keys, and where the estimates come from."""
    lines = [Text("keys", style="bold")]
    lines += [_row([(keys, -15), (text, 0)]) for keys, text in KEYS]
    for paragraph in EXPLANATION:
        lines.append(Text())
        line = ""
        for word in paragraph.split():
            if line and len(line) + 1 + len(word) > width:
                lines.append(Text(line))
                line = ""
            line = f"{line} {word}" if line else word
        lines.append(Text(line))
    return [_cut(line, width) for line in lines]


def _cut(line: Line, width: int) -> Line:
    line.truncate(width)
    line.no_wrap = True
    return line
