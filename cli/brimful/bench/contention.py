# SPDX-License-Identifier: MIT
"""Contended locks: what brimful prints of them when it ends, and what that is per operation.

With print_stats:json in BRIMFUL_CONF each process that ends by itself prints one line on standard
error, "brimful-stats: {…}", with the counters of each kind of lock under "locks" (see
docs/guide/bench.md). A run may have several processes; their counters are summed. A line that is
not as it should be makes the whole run unreadable: counters that are partly lost would look like
locks that nobody waits for.

Other allocators have no such counters. That is said wherever a figure would stand; a hyphen or 0
there would claim something.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from .model import Contention, LockCounts, Metric

PREFIX = "brimful-stats:"
VARIABLE, OPTION = "BRIMFUL_CONF", "print_stats:json"
NOT_COUNTED = "not counted by this allocator"
NO_COUNTERS = "printed no lock counters (too old a build?)"
NOT_RUN = "no run for lock counters"
COUNTERS = tuple(field.name for field in fields(LockCounts))

CONTENDED = Metric(
    "lock_contended_per_million", "contended lock acquisitions per million operations", "count"
)
BUSY = Metric(
    "lock_busy_per_million", "locks found taken and left, per million operations", "count"
)
ACQUIRED = Metric(
    "lock_acquisitions_per_million", "lock acquisitions per million operations", "count"
)
WAITED = Metric("lock_wait_ns_per_operation", "time waited for locks per operation", "ns")
METRICS = (CONTENDED, BUSY, ACQUIRED, WAITED)


class UnreadableError(Exception):
    """The counters of a run cannot be read; the message says why."""


@dataclass(frozen=True)
class Contended:
    """One allocator in one cell: medians over its runs, or why there are none."""

    cell: str
    allocator: str
    figures: Mapping[str, float]  # METRICS by key, over all kinds of locks; empty if missing
    contended_by_kind: Mapping[str, float]  # CONTENDED of each kind of lock
    runs: int
    throughput: float | None  # operations per second, of the ordinary samples
    missing: str


def asked_for(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of an allocator, and that it prints its counters at its end."""
    conf = ",".join(filter(None, [settings.get(VARIABLE, ""), OPTION]))
    return {**settings, VARIABLE: conf}


def parse(errors: str) -> tuple[int, dict[str, LockCounts]]:
    """From standard error: how many processes printed counters, and their sums by kind of lock.

    Raises UnreadableError.
    """
    lines = [line for line in errors.splitlines() if line.startswith(PREFIX)]
    if not lines:
        raise UnreadableError(NO_COUNTERS)
    summed: dict[str, LockCounts] = {}
    for line in lines:
        for kind, counts in _locks(line.removeprefix(PREFIX)).items():
            summed[kind] = _sum((summed.get(kind, LockCounts()), counts))
    return len(lines), summed


def per_operation(run: Contention) -> dict[str, float]:
    """METRICS of one run, over all kinds of locks."""
    return _per_operation(_sum(run.locks.values()), run.operations)


def contended_by_kind(run: Contention) -> dict[str, float]:
    """CONTENDED of each kind of lock in one run."""
    return {
        kind: _per_operation(counts, run.operations)[CONTENDED.key]
        for kind, counts in run.locks.items()
    }


def _per_operation(counts: LockCounts, operations: float) -> dict[str, float]:
    million = operations / 1e6
    return {
        CONTENDED.key: counts.contended / million,
        BUSY.key: counts.busy / million,
        ACQUIRED.key: counts.acquisitions / million,
        WAITED.key: counts.wait_ns / operations,
    }


def _sum(all_counts: Iterable[LockCounts]) -> LockCounts:
    every = list(all_counts)
    return LockCounts(**{name: sum(getattr(one, name) for one in every) for name in COUNTERS})


def _locks(text: str) -> dict[str, LockCounts]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableError("printed lock counters that are not JSON") from None
    locks = data.get("locks") if isinstance(data, dict) else None
    if not isinstance(locks, dict) or not locks:
        raise UnreadableError("printed statistics without locks")
    return {str(kind): _counts(str(kind), counts) for kind, counts in locks.items()}


def _counts(kind: str, counts: Any) -> LockCounts:
    """Of one kind of lock; what else it says (such as classes) is left aside."""
    found = {}
    for name in COUNTERS:
        value = counts.get(name) if isinstance(counts, dict) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UnreadableError(f"printed no {name} of the locks of kind {kind}")
        # A whole number may be larger than any float.
        if not 0 <= value <= sys.float_info.max:
            raise UnreadableError(f"printed {value} {name} of the locks of kind {kind}")
        found[name] = float(value)
    return LockCounts(**found)
