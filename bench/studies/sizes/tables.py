# SPDX-License-Identifier: MIT
"""What tables of size classes and shapes of slabs waste on the sizes that real programs ask for.

For each table of classes: what is wasted inside objects at each program's peak, in how many classes a
program has objects (each is a slab at least). For each rule for the length of a slab: how much of the
slabs is a tail that no object covers and how long the slabs of a program are. Both are lower bounds:
nothing is free inside the slabs but the end of the last one.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Callable, Sequence

from brimful.bench.study.model import Data
from brimful.bench.study.pages import table

GRANULE = 64 << 10
GROUP = 64
MOST = 32768


def geometric(steps: int, linear_to: int = 256) -> list[int]:
    """16 … linear_to by 16, then `steps` classes for each doubling, in multiples of 16."""
    classes = list(range(16, linear_to + 1, 16))
    while classes[-1] < MOST:
        step = max(16, (1 << (classes[-1].bit_length() - 1)) // steps)
        classes.append(classes[-1] + step)
    return classes


TABLES = {
    "16…256, 4 a doubling": geometric(4),
    "16…256, 8 a doubling (ours)": geometric(8),
    "16…512, 8 a doubling": geometric(8, 512),
    "16…256, 16 a doubling": geometric(16),
}


def one_granule(size: int) -> tuple[int, int]:
    """(groups, granules): as many groups as fit in a granule, or one group."""
    groups = max(1, GRANULE // (GROUP * size))
    return groups, math.ceil(groups * GROUP * size / GRANULE)


def tail_at_most(share: int, most_granules: int = 64) -> Callable[[int], tuple[int, int]]:
    """The shortest slab whose tail is at most 1/share of it."""

    def shape(size: int) -> tuple[int, int]:
        for granules in range(1, most_granules + 1):
            groups = granules * GRANULE // (GROUP * size)
            if (
                groups
                and (granules * GRANULE - groups * GROUP * size) * share <= granules * GRANULE
            ):
                return groups, granules
        return one_granule(size)

    return shape


SHAPES = {
    "one granule or one group": one_granule,
    "tail ≤ 1/8": tail_at_most(8),
    "tail ≤ 1/16": tail_at_most(16),
    "tail ≤ 1/32": tail_at_most(32),
}


def class_of(classes: Sequence[int], size: int) -> int:
    return classes[bisect_left(classes, max(size, 1))]


def waste(classes: Sequence[int], live: Sequence[Sequence[int]]) -> tuple[float, int]:
    """Bytes that nobody asked for as a share of the objects' bytes, and how many classes have objects."""
    small = [(size, count) for size, count in live if size <= MOST]
    used = {class_of(classes, size) for size, _ in small}
    granted = sum(class_of(classes, size) * count for size, count in small)
    asked = sum(size * count for size, count in small)
    return 1 - asked / max(granted, 1), len(used)


def by_class(classes: Sequence[int], live: Sequence[Sequence[int]]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for size, count in live:
        if size <= MOST:
            counts[class_of(classes, size)] = counts.get(class_of(classes, size), 0) + count
    return counts


def slabs(
    shape: Callable[[int], tuple[int, int]], classes: Sequence[int], live: Sequence[Sequence[int]]
) -> tuple[int, int]:
    """Bytes of all slabs at the peak, and of their tails."""
    total = tails = 0
    for size, count in by_class(classes, live).items():
        groups, granules = shape(size)
        number = math.ceil(count / (groups * GROUP))
        total += number * granules * GRANULE
        tails += number * (granules * GRANULE - groups * GROUP * size)
    return total, tails


def waste_table(rows: Data) -> list[str]:
    cells, shares = [], []
    for name, row in rows.items():
        found = [waste(classes, row["live_at_peak"]) for classes in TABLES.values()]
        cells.append([name, *(f"{100 * share:.1f} ({used})" for share, used in found)])
        shares.append([share for share, _ in found])
    means = [
        statistics.geometric_mean(1 / (1 - share) for share in column) - 1
        for column in zip(*shares, strict=True)
    ]
    cells.append(["mean", *(f"{100 * mean:.2f} %" for mean in means)])
    cells.append(["classes", *(str(len(classes)) for classes in TABLES.values())])
    title = "Waste inside objects at the peak, % (classes in use):"
    return [title, "", *table(["", *TABLES], cells)]


def slab_table(rows: Data) -> list[str]:
    ours = geometric(8)
    cells = []
    for name, row in rows.items():
        found = [slabs(shape, ours, row["live_at_peak"]) for shape in SHAPES.values()]
        cells.append(
            [name, *(f"{t / 2**20:.1f} ({100 * tail / max(t, 1):.1f})" for t, tail in found)]
        )
    return ["Slabs at the peak, MiB (of that tails, %):", "", *table(["", *SHAPES], cells)]


def shape_table() -> list[str]:
    ours = geometric(8)
    cells = []
    for name, shape in SHAPES.items():
        shapes = [(size, *shape(size)) for size in ours]
        worst = max(1 - groups * GROUP * size / (n * GRANULE) for size, groups, n in shapes)
        longest = max(granules for _, _, granules in shapes)
        small = max(granules for size, _, granules in shapes if size <= 1024)
        cells.append([name, f"{100 * worst:.1f} %", str(longest), str(small)])
    head = ["", "worst tail", "longest slab, granules", "up to 1 KiB"]
    return table(head, cells)


def told(rows: Data) -> list[str]:
    return [*waste_table(rows), *slab_table(rows), *shape_table()]
