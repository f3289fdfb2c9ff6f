# SPDX-License-Identifier: MIT
"""What the words of a command line of the bench mean: times, shares, rounds, columns.

Raises click.UsageError for what means nothing. Imports what needs the packages only when it is asked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from . import catalog
    from .model import Allocator


def percent(text: str) -> float:
    """0.03 of "3%" or "3"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%?", text.strip())
    if found is None or not 0 < float(found[1]) <= 1000:
        raise click.UsageError(f"{text!r} is not a percentage, as in 3%")
    return float(found[1]) / 100


def seconds(text: str, option: str) -> float:
    """90.0 of "90s" or "1.5m"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h|)", text.strip())
    if found is None or float(found[1]) <= 0:
        raise click.UsageError(f"{option} {text!r}: a time as in 90s, 20m or 3h")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]


def adjusted(preset: catalog.Preset, budget: str, rounds: str, target: str) -> catalog.Preset:
    """The preset with what the user wants otherwise."""
    if budget:
        preset = replace(preset, budget_s=seconds(budget, "--budget"))
    if target:
        preset = replace(preset, target=percent(target))
    if rounds:
        found = re.fullmatch(r"(\d+)(?::(\d+))?", rounds)
        least = int(found[1]) if found else 0
        most = int(found[2]) if found and found[2] else max(least, preset.most_rounds)
        if not 1 <= least <= most:
            raise click.UsageError(f"--rounds {rounds!r}: LEAST[:MOST], as in 5:20")
        preset = replace(preset, least_rounds=least, most_rounds=most)
    return preset


def chosen(
    available: Sequence[Allocator],
    names: str,
    preset: catalog.Preset,
    baseline: str,
    further: Sequence[str],
) -> list[Allocator]:
    """The columns, baseline first; those of --lib are always among them."""
    from . import allocators as columns

    if names in ("", "all"):
        every = columns.of_preset(available, names or preset.allocators)
        names = ",".join(allocator.name for allocator in every)
    named = columns.choose(available, names)
    return columns.choose(available, ",".join([baseline, *(a.name for a in named), *further]))


def check_cpus(text: str) -> None:
    """Raises unless `text` is empty or a list of CPUs, as in 0-3,8, that this process may use."""
    if not text:
        return
    wanted: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part.strip())
        if found is None:
            raise click.UsageError(f"--pin {text!r}: a list of CPUs, as in 0 or 0-3,8")
        wanted.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    allowed = os.sched_getaffinity(0)
    if not wanted or not wanted <= allowed:
        there = ", ".join(str(cpu) for cpu in sorted(allowed))
        raise click.UsageError(f"--pin {text!r}: the CPUs that can be used here are {there}")


def terminal() -> Console:
    """The terminal; a file or a pipe has no width, and gets one at which no table breaks."""
    from rich.console import Console

    console = Console()
    wide = not console.is_terminal and "COLUMNS" not in os.environ
    return Console(width=140) if wide else console
