# SPDX-License-Identifier: MIT
"""Rounds: who runs when, and when it is enough.

A round visits every row that is not done yet, in an order drawn anew, and in a row every allocator
once, in an order drawn anew; one of them, the baseline, runs a second time somewhere in between (the
A/A pair). The first visit of a row begins with a run that is not recorded: it brings the program and
its input into the page cache. A row is done when the intervals that matter (brimful against the best
rival and against the baseline) are narrow, after the most rounds, or when the budget is spent.

An allocator that fails in a row is not run there again: its cell is failed, with the reason. What
was measured is handed to the caller after every sample, so an interruption loses nothing.

Memory over time and instructions by callgrind come from runs of their own after the rounds, because
reading smaps and counting instructions disturb the clock; such a run gives only the figures it is
made for. So do lock counters, which only brimful has. Rows whose own figure is memory need no clock:
their rounds are looked at as they run.
"""

from __future__ import annotations

import random
import statistics as plain_statistics
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from . import launch, sample, statistics, tables
from .catalog import Preset, Work
from .model import TIME, Allocator, Cell, Result, Sample, Status

SAMPLE_MS = 20  # between two looks at memory over time
CURVE_METRICS = ("mean_rss_kib", "idle_rss_kib", "peak_pss_kib", "huge_share")
CALLGRIND_SCALE = 0.1  # of the work, when instructions are counted
# Of the budget, what runs for memory over time get before it is known how long they take.
SHARE_OF_CURVES = 0.15


@dataclass(frozen=True)
class Progress:
    """Where the run is: told before every process."""

    what: str  # "round 2", "memory over time", "lock counters", "instructions"
    cell: str
    allocator: str
    cells_done: int
    cells: int
    elapsed_s: float
    left_s: float


Listener = Callable[[Progress], None]


class Engine:
    """One run of the bench. `result` fills up while run() works, and is always consistent."""

    def __init__(
        self,
        result: Result,
        works: Sequence[Work],
        preset: Preset,
        baseline: str,
        seed: int,
        listener: Listener,
        pinned: str | None = None,
    ) -> None:
        self.result = result
        self.preset = preset
        self._works = list(works)
        self._allocators = [a for a in result.allocators if not a.missing]
        self._baseline = next((a for a in self._allocators if a.name == baseline), None)
        self._random = random.Random(seed)
        self._listener = listener
        self._pinned = pinned
        # A result that was begun earlier goes on: who failed in it is not run there again.
        self._failed = {
            (taken.cell, taken.allocator)
            for taken in result.samples
            if taken.status is not Status.OK
        }
        self._done: set[str] = set()
        self._visited: set[str] = set()
        self._started_s = time.monotonic()
        self._cost_s: dict[str, float] = {}  # of the last visit of each row

    def run(self) -> None:
        """All rounds, then the runs for memory over time, for lock counters and for instructions."""
        self._declare_missing()
        complete = self._rounds()
        complete = self._curves() and complete
        complete = self._lock_counters() and complete
        if self.preset.callgrind:
            complete = self._instructions() and complete
        self.result.finished = complete

    # --- rounds ---------------------------------------------------------------------------------

    def _declare_missing(self) -> None:
        for work in self._works:
            for allocator in self.result.allocators:
                reason = work.cell.missing or allocator.missing
                if reason:
                    self._record(Sample(work.cell.name, allocator.name, 0, Status.MISSING, reason))
            if work.cell.missing:
                self._done.add(work.cell.name)

    def _rounds(self) -> bool:
        """False if the budget ended before every row had the least number of rounds."""
        for number in range(self.preset.most_rounds):
            open_works = [work for work in self._works if work.cell.name not in self._done]
            for work in self._random.sample(open_works, len(open_works)):
                # A row that no longer fits is left out of this round; a cheaper one may still fit.
                if self._left_s() - self._kept_s() < self._cost_s.get(work.cell.name, 0):
                    continue
                self.visit(work, number)
            if self._left_s() <= self._kept_s():
                break
        works = [work for work in self._works if not work.cell.missing]
        return all(self._rounds_of(work) >= self._least(work) for work in works)

    def visit(self, work: Work, number: int, without: Collection[str] = ()) -> None:
        """Round `number` of one row: everybody once, but those named in `without`."""
        began = time.monotonic()
        if work.cell.name not in self._visited:
            self._visited.add(work.cell.name)
            first = self._baseline or (self._allocators[0] if self._allocators else None)
            if first is not None:
                self._run(work, first, number, f"round {number + 1}, warm-up")
        turns = [(allocator, False) for allocator in self._allocators]
        if self._baseline is not None:
            turns.append((self._baseline, True))
        for allocator, again in self._random.sample(turns, len(turns)):
            if allocator.name in without or (work.cell.name, allocator.name) in self._failed:
                continue
            self._record(self._run(work, allocator, number, f"round {number + 1}", again))
        self._cost_s[work.cell.name] = time.monotonic() - began
        if self._is_done(work, number):
            self._done.add(work.cell.name)

    def _run(
        self, work: Work, allocator: Allocator, number: int, what: str, again: bool = False
    ) -> Sample:
        self._tell(what, work, allocator)
        taken, curve, histograms = sample.run(
            work.cell,
            allocator,
            number,
            timeout_s=work.timeout_s,
            cpus=self._pinned,
            again=again,
            sample_ms=SAMPLE_MS if _is_about_memory(work) else None,
        )
        if taken.status is Status.OK and number == 0 and not again and "warm-up" not in what:
            self.result.histograms += histograms
            self.result.curves += [curve] if curve is not None else []
        return taken

    def _record(self, taken: Sample) -> None:
        self.result.samples.append(taken)
        if taken.status is not Status.OK:
            self._failed.add((taken.cell, taken.allocator))

    def _is_done(self, work: Work, number: int) -> bool:
        alive = [a for a in self._allocators if (work.cell.name, a.name) not in self._failed]
        if number + 1 >= self.preset.most_rounds or not alive:
            return True
        if number + 1 < self._least(work):
            return False
        if work.rounds is not None or tables.own_key(work.cell) == tables.OTHER:
            return True  # its figure hardly varies, may be 0, and its rounds are long
        times = {a.name: self._times(work.cell.name, a.name) for a in alive}
        medians = {name: plain_statistics.median(by.values()) for name, by in times.items() if by}
        rivals = [a.name for a in alive if not a.ours and a.name in medians]
        against = {a.name for a in alive if self._baseline and a.name == self._baseline.name}
        if rivals:
            against.add(min(rivals, key=lambda name: medians[name]))
        subjects = [a.name for a in alive if a.ours] or rivals
        return all(
            statistics.narrow_enough(_paired(times[one], times[other]), self.preset.target)
            for one in subjects
            for other in against
            if one != other
        )

    def _times(self, cell: str, allocator: str) -> dict[int, float]:
        """The row's figure by round."""
        return {
            taken.round: taken.metrics[TIME]
            for taken in self.result.samples
            if taken.cell == cell
            and taken.allocator == allocator
            and taken.status is Status.OK
            and not taken.again
            and TIME in taken.metrics
        }

    def _rounds_of(self, work: Work) -> int:
        """Rounds that at least one allocator has behind it; failed ones count as done."""
        counts = [len(self._times(work.cell.name, a.name)) for a in self._allocators]
        alive = [a for a in self._allocators if (work.cell.name, a.name) not in self._failed]
        return max(counts, default=0) if alive else self._least(work)

    def _least(self, work: Work) -> int:
        """Rounds without which the row is not finished."""
        return min(self.preset.least_rounds, work.rounds or self.preset.least_rounds)

    # --- runs of their own ----------------------------------------------------------------------

    def _curves(self) -> bool:
        """Memory over time, every allocator once per turn. False if the budget ended before."""
        works = self._works_with_curves()
        for number in range(self.preset.curves):
            for work in works:
                for allocator in self._random.sample(self._allocators, len(self._allocators)):
                    if (work.cell.name, allocator.name) in self._failed:
                        continue
                    if self._left_s() <= 0:
                        return False
                    self._curve(work, allocator, number)
        return True

    def _works_with_curves(self) -> list[Work]:
        return [
            work
            for work in self._works
            if work.memory and not work.cell.missing and not _is_about_memory(work)
        ]

    def _curve(self, work: Work, allocator: Allocator, number: int) -> None:
        self._tell("memory over time", work, allocator)
        taken, curve, _ = sample.run(
            work.cell, allocator, number, timeout_s=2 * work.timeout_s, sample_ms=SAMPLE_MS
        )
        if taken.status is Status.OK:
            own = {key: value for key, value in taken.metrics.items() if key in CURVE_METRICS}
            taken = replace(taken, metrics=own, extra={})
            if curve is not None and number == 0:
                self.result.curves.append(curve)
        self._record(taken)

    def _lock_counters(self) -> bool:
        """What the locks of each of ours count in each of our workloads. False as above."""
        for number in range(self.preset.contention):
            for work in self._works_with_locks():
                if number > 0 and work.rounds is not None:
                    continue  # one run of a long row is enough
                for allocator in self._ours():
                    if (work.cell.name, allocator.name) in self._failed:
                        continue
                    if self._left_s() <= 0:
                        return False
                    self._tell("lock counters", work, allocator)
                    self.result.contention.append(
                        sample.lock_counters(work.cell, allocator, timeout_s=work.timeout_s)
                    )
        return True

    def _works_with_locks(self) -> list[Work]:
        return [w for w in self._works if not w.cell.missing and launch.is_workload(w.cell)]

    def _ours(self) -> list[Allocator]:
        return [allocator for allocator in self._allocators if allocator.ours]

    def _instructions(self) -> bool:
        """Counted instructions of single-threaded rows, unless the processor's counters gave them."""
        for work in self._works:
            if work.cell.threads != 1 or work.cell.missing or self._has_instructions(work):
                continue
            for allocator in self._allocators:
                if (work.cell.name, allocator.name) in self._failed:
                    continue
                if self._left_s() <= 0:
                    return False
                self._tell("instructions", work, allocator)
                counted = sample.instructions_by_callgrind(_lighter(work.cell), allocator)
                if counted is not None:
                    self._record(counted)
        return True

    def _has_instructions(self, work: Work) -> bool:
        return any(
            taken.cell == work.cell.name and "instructions" in taken.metrics
            for taken in self.result.samples
        )

    # --- time -----------------------------------------------------------------------------------

    def _left_s(self) -> float:
        return self.preset.budget_s - (time.monotonic() - self._started_s)

    def _kept_s(self) -> float:
        """Of the budget, what the rounds leave for the runs of their own."""
        works = self._works_with_curves() if self.preset.curves > 0 else []
        costs = [self._cost_s.get(work.cell.name) for work in works]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return self.preset.budget_s * SHARE_OF_CURVES
        return self.preset.curves * sum(known) + self._kept_for_locks_s()

    def _kept_for_locks_s(self) -> float:
        """As far as the rows' costs are known: of each visit's turns, those of ours."""
        turns = len(self._allocators) + (self._baseline is not None)
        costs = sum(
            self._cost_s.get(work.cell.name, 0.0)
            * (self.preset.contention if work.rounds is None else min(self.preset.contention, 1))
            for work in self._works_with_locks()
        )
        return costs * len(self._ours()) / max(turns, 1)

    def _tell(self, what: str, work: Work, allocator: Allocator) -> None:
        self._listener(
            Progress(
                what,
                work.cell.name,
                allocator.name,
                len(self._done),
                len(self._works),
                time.monotonic() - self._started_s,
                max(0.0, self._left_s()),
            )
        )


def _is_about_memory(work: Work) -> bool:
    """Whether its own figure is memory, and its memory over time is wanted."""
    return work.memory and tables.own_key(work.cell) == tables.OTHER


def _lighter(cell: Cell) -> Cell:
    """The same row with less work, for a machine that is fifty times slower; ratios keep."""
    command = list(cell.command)
    if "--scale" in command:
        at = command.index("--scale") + 1
        command[at] = f"{float(command[at]) * CALLGRIND_SCALE:g}"
    return replace(cell, command=tuple(command))


def _paired(ours: dict[int, float], theirs: dict[int, float]) -> statistics.Ratio:
    both = sorted(set(ours) & set(theirs))
    return statistics.paired_ratio([ours[n] for n in both], [theirs[n] for n in both])
