# SPDX-License-Identifier: MIT
"""A league in passes: which row is measured next, how often, and what is left when time is up.

    pass 1    every row gets its least rounds (5): each has an interval, and a verdict if it is narrow
    pass 2    rows that are not known yet, up to the most rounds (10), cheap ones first

With more than twice the least rounds there is a pass for each further multiple of it. Within a pass
rows are measured one after the other, so that what is done can be kept; within a row everybody takes
turns in random order, round by round, as in every run of the bench (see engine).

A row is known when the intervals of brimful against the baseline and against the best rival, in its
own figure and in peak memory, are within ± the target, or when it has the most rounds. The width
decides, never the verdict. It is looked at after each round from the least on.

Whoever needs more than SLOW times the row's median time is not run in its later rounds: it has its
least rounds, the row says who sat out, and the others get the time. Never brimful nor the baseline.

The time that is left is an estimate: of a row that has been measured from what its rounds took, of
another from what the rows of its kind that have been measured took on average, or a usual time.
"""

from __future__ import annotations

import statistics as plain_statistics
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from .catalog import Preset, Work
from .checkpoint import Folder, Kept
from .engine import Engine, Listener
from .model import MEMORY, Allocator, Result, Sample, Status
from .tables import Samples, own_key

SLOW = 5.0  # times the row's median time
# Seconds of a sample of a row that nobody has measured yet.
USUAL_PROGRAM_S = 2.5
USUAL_WORKLOAD_S = 0.15


@dataclass
class Row:
    """A row of the league, and how far it is."""

    work: Work
    kept: Kept
    why_anew: str  # why what was measured of it before is not used; "" if it is, or nothing was

    @property
    def name(self) -> str:
        return self.work.cell.name

    @property
    def is_program(self) -> bool:
        return self.work.cell.family == "program"


@dataclass(frozen=True)
class Done:
    """A row got its rounds of a pass, or a part of them."""

    row: Row
    number: int  # of the pass
    place: int  # of this row in it, from 1
    rows: int
    widest: float  # half width of its widest interval that has to be narrow
    elapsed_s: float
    left_s: float  # estimate, to the end of the league


class League:
    """All rows, what is known of them, and the running of what is not."""

    def __init__(
        self,
        folder: Folder,
        head: Result,
        works: Sequence[Work],
        preset: Preset,
        pinned: str | None = None,
    ) -> None:
        self._folder = folder
        self._head = head
        self._preset = preset
        self._pinned = pinned
        self._baseline = str(head.options["baseline"])
        self._seed = int(head.options["seed"])
        self._present = [one for one in head.allocators if not one.missing]
        # No cap on rounds of single rows here: a verdict needs as many in each.
        self.rows = [Row(replace(work, rounds=None), *folder.load(work.cell)) for work in works]
        for row in self.rows:
            row.kept.result.allocators = list(head.allocators)

    # --- what is left -----------------------------------------------------------------------------

    @property
    def targets(self) -> list[int]:
        """Rounds at which each pass ends."""
        least, most = self._preset.least_rounds, self._preset.most_rounds
        return [*range(least, most, least), most]

    def is_known(self, row: Row) -> bool:
        """Whether it needs no more rounds."""
        if row.work.cell.missing or row.kept.rounds >= self._preset.most_rounds:
            return True
        if row.kept.rounds < self._preset.least_rounds:
            return False
        return self.widest(row) <= self._preset.target

    def widest(self, row: Row) -> float:
        """Half width of the widest of the intervals that have to be narrow; 0 if there are none."""
        return max(self._widths(row), default=0.0)

    def _widths(self, row: Row) -> list[float]:
        samples = Samples(row.kept.result)
        cell = row.name
        alive = [one for one in self._present if samples.ok(cell, one.name)]
        widths = []
        for metric in (own_key(row.work.cell), MEMORY):
            medians = {
                one.name: plain_statistics.median(values)
                for one in alive
                if (values := list(samples.values(cell, one.name, metric).values()))
            }
            rivals = [one.name for one in alive if not one.ours and one.name in medians]
            against = {self._baseline} & set(rivals)
            against |= {min(rivals, key=lambda name: medians[name])} if rivals else set()
            for ours in (one.name for one in alive if one.ours):
                ratios = (samples.ratio(cell, ours, other, metric) for other in against)
                widths += [ratio.half_width for ratio in ratios if ratio is not None]
        return widths

    def of_pass(self, number: int) -> list[Row]:
        """The rows that this pass is for, in the order in which it takes them."""
        target = self.targets[number]
        rows = [row for row in self.rows if row.kept.rounds < target and not self.is_known(row)]
        return rows if number == 0 else sorted(rows, key=self.round_s)

    def round_s(self, row: Row) -> float:
        """What a round of this row takes, about."""
        if row.kept.rounds:
            return row.kept.cost_per_round_s
        like_it = [
            other.kept.cost_per_round_s
            for other in self.rows
            if other.kept.rounds and other.is_program is row.is_program
        ]
        if like_it:
            return plain_statistics.mean(like_it)
        usual = USUAL_PROGRAM_S if row.is_program else USUAL_WORKLOAD_S
        return usual * (len(self._present) + 1)

    def left_s(self) -> tuple[float, float]:
        """What is left of the first pass, and of the later ones at most, in seconds."""
        parts = [self.row_left_s(row) for row in self.rows]
        return sum(first for first, _ in parts), sum(later for _, later in parts)

    def row_left_s(self, row: Row) -> tuple[float, float]:
        """The same of one row."""
        if self.is_known(row):
            return 0.0, 0.0
        least = max(0, self._preset.least_rounds - row.kept.rounds)
        later = self._preset.most_rounds - row.kept.rounds - least
        return least * self.round_s(row), later * self.round_s(row)

    # --- measuring ----------------------------------------------------------------------------

    def run(self, budget_s: float, listener: Listener, done: Callable[[Done], None]) -> bool:
        """Measure until all rows are known or the time is up; True if they are."""
        began = time.monotonic()

        def fits(row: Row) -> bool:
            return time.monotonic() - began + self.round_s(row) <= budget_s

        for number, target in enumerate(self.targets):
            rows = self.of_pass(number)
            for place, row in enumerate(rows, 1):
                if not fits(row):
                    continue  # a cheaper one may still fit
                self._measure(row, target, listener, fits)
                elapsed = time.monotonic() - began
                left, widest = sum(self.left_s()), self.widest(row)
                done(Done(row, number + 1, place, len(rows), widest, elapsed, left))
            if any(row.kept.rounds < target and not self.is_known(row) for row in rows):
                return False
        return True

    def _measure(
        self, row: Row, target: int, listener: Listener, fits: Callable[[Row], bool]
    ) -> None:
        """Rounds of one row up to `target`, each kept as soon as it is whole."""
        kept = row.kept
        # A round that was interrupted and is run again has the same order; no two rounds share one.
        seed = zlib.crc32(f"{self._seed} {row.name} {kept.rounds}".encode())
        engine = Engine(
            kept.result, [row.work], self._preset, self._baseline, seed, listener, self._pinned
        )
        for number in range(kept.rounds, target):
            if self.is_known(row) or (number > 0 and not fits(row)):
                return
            if number >= self._preset.least_rounds and not kept.sat_out:
                kept.sat_out = self._too_slow(row)
            samples = len(kept.result.samples)
            began = time.monotonic()
            try:
                engine.visit(row.work, number, without=kept.sat_out)
            except BaseException:
                del kept.result.samples[samples:]
                raise
            kept.cost_s += time.monotonic() - began
            kept.rounds = number + 1
            self._folder.save(kept)

    def _too_slow(self, row: Row) -> list[str]:
        times = {one.name: _wall_s(row.kept.result.samples, one) for one in self._present}
        medians = {name: plain_statistics.median(found) for name, found in times.items() if found}
        if not medians:
            return []
        limit = SLOW * plain_statistics.median(medians.values())
        exempt = {one.name for one in self._present if one.ours} | {self._baseline}
        return [name for name, median in medians.items() if median > limit and name not in exempt]

    # --- what was measured --------------------------------------------------------------------

    def results(self) -> Iterator[tuple[str, Result]]:
        """What there is so far, as results of the bench: "league" the workloads, "real" the programs.

        A row without a whole round is in it as one that has no samples.
        """
        for kind, is_program in (("league", False), ("real", True)):
            rows = [row for row in self.rows if row.is_program is is_program]
            if not rows:
                continue
            sat_out = {row.name: row.kept.sat_out for row in rows if row.kept.sat_out}
            yield (
                kind,
                Result(
                    environment=dict(self._head.environment),
                    options={**self._head.options, "sat_out": sat_out},
                    allocators=list(self._head.allocators),
                    cells=[row.work.cell for row in rows],
                    samples=[taken for row in rows for taken in row.kept.result.samples],
                    curves=[curve for row in rows for curve in row.kept.result.curves],
                    histograms=[one for row in rows for one in row.kept.result.histograms],
                    finished=all(self.is_known(row) for row in rows),
                ),
            )


def _wall_s(samples: Sequence[Sample], allocator: Allocator) -> list[float]:
    return [
        taken.metrics["wall_s"]
        for taken in samples
        if taken.allocator == allocator.name
        and taken.status is Status.OK
        and "wall_s" in taken.metrics
    ]
