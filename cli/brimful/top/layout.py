# SPDX-License-Identifier: MIT
"""Figures as text: sizes, rates, shares, bars."""

from __future__ import annotations


def size(count: float) -> str:
    """Bytes in at most six letters: 999B, 1.5K, 340M, 11.8G."""
    for unit in "BKMGT":
        if count < 999.5 or unit == "T":
            return f"{count:.0f}{unit}" if unit == "B" or count >= 99.95 else f"{count:.1f}{unit}"
        count /= 1024
    raise AssertionError("unreachable")


def number(count: float) -> str:
    """A number in at most six letters: 950, 1.5k, 12.3M."""
    for unit in ("", "k", "M", "G"):
        if count < 999.5 or unit == "G":
            return f"{count:.0f}{unit}" if unit == "" or count >= 99.95 else f"{count:.1f}{unit}"
        count /= 1000
    raise AssertionError("unreachable")


def rate(per_second: float | None, what: str = "") -> str:
    """A rate; `-` where none is known yet."""
    if per_second is None:
        return "-"
    return size(per_second) if what == "bytes" else number(per_second)


def estimate(per_second: float | None) -> str:
    """A rate that nobody counted."""
    return "-" if per_second is None else f"~{number(per_second)}"


def percent(part: float, whole: float) -> str:
    """A share; `-` of nothing."""
    return f"{part / whole:.0%}" if whole else "-"


def duration(seconds: float) -> str:
    """12s, 5m12s, 3h05m, 4d03h."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def bar(share: float, width: int) -> str:
    """A bar of `width` letters between brackets, plain enough for any terminal."""
    inner = max(1, width - 2)
    full = round(min(1.0, max(0.0, share)) * inner)
    return f"[{'|' * full}{' ' * (inner - full)}]"


def visible(text: str) -> str:
    """Without control characters, which would move the cursor or worse: a program chooses its own name."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
