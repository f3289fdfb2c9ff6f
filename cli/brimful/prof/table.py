# SPDX-License-Identifier: MIT
"""Profiles in the terminal: the functions that allocated most, and the stacks that did."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .stacks import Amount, Stack, by_names, flat_and_cumulative, functions, total

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
# Letters that a column takes, and the columns for terminals of at least so many letters.
_WIDTHS = {"flat": 8, "flat%": 6, "cum": 8, "cum%": 6, "objects": 13}
_COLUMNS = {0: ("flat", "cum"), 60: ("flat", "flat%", "cum"), 90: tuple(_WIDTHS)}
_FRAMES = 6  # of each stack that are shown


def size(value: float) -> str:
    """Bytes as people write them."""
    sign = "-" if value < 0 else ""
    value = abs(value)
    at = 0
    while value >= 1024 and at < len(_UNITS) - 1:
        value /= 1024
        at += 1
    if at == 0:
        return f"{sign}{value:.0f} B"
    return f"{sign}{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {_UNITS[at]}"


def seconds(value: float) -> str:
    """A lifetime."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


def _cut(name: str, letters: int) -> str:
    """Names are cut where the terminal ends, numbers never."""
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}%" if whole else ""


def show(
    console: Console,
    amounts: Mapping[Stack, Amount],
    top: int,
    lifetimes: Mapping[Stack, float] | None = None,
) -> None:
    """Both tables. Functions are sorted by what they allocated themselves, then by what they called did."""
    if not amounts:
        return
    whole = total(amounts.values()).bytes
    columns = [names for width, names in _COLUMNS.items() if console.width >= width][-1]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True, min_width=_WIDTHS[name])
    table.add_column("function", no_wrap=True)
    room = max(12, console.width - sum(_WIDTHS[name] + 1 for name in columns))
    rows = sorted(
        flat_and_cumulative(amounts).items(),
        key=lambda row: (-abs(row[1][0].bytes), -abs(row[1][1].bytes), row[0]),
    )
    for name, (flat, cumulative) in rows[:top]:
        cells = {
            "flat": size(flat.bytes),
            "flat%": _share(flat.bytes, whole),
            "cum": size(cumulative.bytes),
            "cum%": _share(cumulative.bytes, whole),
            "objects": f"{cumulative.objects:,.0f}",
        }
        table.add_row(*(cells[column] for column in columns), Text(_cut(name, room)))
    console.print(table)
    if len(rows) > top:
        console.print(
            f"… and {len(rows) - top} functions more (--top N shows more)", highlight=False
        )
    console.print()
    _show_stacks(console, amounts, min(top, 5), whole, lifetimes)


def _show_stacks(
    console: Console,
    amounts: Mapping[Stack, Amount],
    top: int,
    whole: float,
    lifetimes: Mapping[Stack, float] | None,
) -> None:
    for stack, amount in sorted(by_names(amounts).items(), key=lambda row: -abs(row[1].bytes))[
        :top
    ]:
        head = Text.assemble(
            (size(amount.bytes), "bold"),
            f"  {_share(amount.bytes, whole)}  {amount.objects:,.0f} objects",
        )
        if lifetimes is not None and stack in lifetimes:
            head.append(f", half of them for less than {seconds(lifetimes[stack])}")
        console.print(head, highlight=False)
        names = list(functions(stack))
        for name in names[:_FRAMES]:
            console.print(Text(f"    {_cut(name, console.width - 4)}"), highlight=False)
        if len(names) > _FRAMES:
            console.print(f"    … {len(names) - _FRAMES} more", highlight=False)
