#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What tables of size classes and shapes of slabs waste on the sizes that real programs ask for.

    size_classes.py [bench/results/sizes-….json]

Reads what bench/record_sizes.py recorded (the newest file, if none is named) and prints, for each table of
classes, what is wasted inside objects at each program's peak, in how many classes a program has objects
(each is a slab at least), and, for each rule for the length of a slab, how much of the slabs is a tail
that no object covers and how long the slabs of a program are. Both are lower bounds: nothing is free
inside the slabs but the end of the last one.
"""

from __future__ import annotations

import json
import math
import sys
from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
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


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(math.log(max(value, 1e-6)) for value in values) / len(values))


def main() -> int:
    named = sys.argv[1:] or sorted(map(str, (ROOT / "bench" / "results").glob("sizes-*.json")))[-1:]
    rows: dict[str, Any] = json.loads(Path(named[0]).read_text())
    print(
        f"{named[0]}: {len(rows)} programs\n\nwaste inside objects at the peak, % (classes in use)"
    )
    print(f"{'':18}" + "".join(f"{name:>30}" for name in TABLES))
    for name, row in rows.items():
        found = [waste(table, row["live_at_peak"]) for table in TABLES.values()]
        print(f"{name:18}" + "".join(f"{100 * share:24.1f} ({used:3})" for share, used in found))
    means = [
        geometric_mean([1 / (1 - waste(table, row["live_at_peak"])[0]) for row in rows.values()])
        for table in TABLES.values()
    ]
    print(f"{'mean':18}" + "".join(f"{100 * (mean - 1):28.2f} %" for mean in means))
    print("classes           " + "".join(f"{len(table):30}" for table in TABLES.values()))

    ours = geometric(8)
    print("\nslabs at the peak, MiB (of that tails, %)")
    print(f"{'':18}" + "".join(f"{name:>26}" for name in SHAPES))
    for name, row in rows.items():
        found_slabs = [slabs(shape, ours, row["live_at_peak"]) for shape in SHAPES.values()]
        cells = [
            f"{total / 2**20:18.1f} ({100 * tail / total:4.1f})" for total, tail in found_slabs
        ]
        print(f"{name:18}" + "".join(f"{cell:>26}" for cell in cells))
    print("\nworst tail, longest slab in granules")
    for name, shape in SHAPES.items():
        shapes = [(size, *shape(size)) for size in ours]
        worst = max(
            1 - groups * GROUP * size / (granules * GRANULE) for size, groups, granules in shapes
        )
        lengths = [granules for _, _, granules in shapes]
        small = max(granules for size, _, granules in shapes if size <= 1024)
        print(f"{name:26} {100 * worst:5.1f} %  {max(lengths):3}  (up to 1 KiB: {small})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
