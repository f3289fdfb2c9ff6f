# SPDX-License-Identifier: MIT
"""Who is lean without being slow: the rival whose memory brimful is held against in a row.

An allocator that gives up time for memory, or memory for time, is easy to beat in the other of the
two. So only those compete here that are nearly as fast as the fastest in the same row.
"""

from __future__ import annotations

from .model import MEMORY
from .tables import FIGURE, Row, Summary

NEAR = 1.10  # of the best time: who is within it competes for being the leanest


def leanest(summary: Summary, row: Row) -> str | None:
    """The rival with the least peak memory among those, or None if there is none."""
    best = row.best.get(FIGURE)
    if best is None:
        return None
    limit = row.entries[best].estimates[FIGURE].median * NEAR
    near = {
        allocator.name: row.entries[allocator.name].estimates[MEMORY].median
        for allocator in summary.result.allocators
        if not allocator.ours
        and {FIGURE, MEMORY} <= row.entries[allocator.name].estimates.keys()
        and row.entries[allocator.name].estimates[FIGURE].median <= limit
    }
    return min(near, key=lambda name: near[name], default=None)
