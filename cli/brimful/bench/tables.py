# SPDX-License-Identifier: MIT
"""What the tables of a result are: rows, entries, the league, noise, losses. `summary` makes them.

Every table is frozen data, so that the terminal, the charts, the report and the CSV file all show
the same figures and none of them computes.

A metric is a key: FIGURE is the cell's own figure (`Cell.figure`) where that is a time, OTHER where
it is something else, such as memory that did not come back; each cell has one of them, so a mean of
times never holds megabytes. The other keys are those of model.METRICS, and those of the row's own
further figures (`Cell.figures`), which are absolute: they have estimates and no ratios. Less is
better for all.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from . import statistics
from .contention import Contended
from .model import MEMORY, METRIC, METRICS, TIME, Allocator, Cell, Metric, Result, Sample, Status
from .statistics import Estimate, Mean, Noise, Ratio, Verdict

FIGURE = "figure"  # the cell's own figure, a time
OTHER = "other"  # the cell's own figure, anything but a time
MAIN = (FIGURE, MEMORY)  # what the league is about
ROW = (FIGURE, OTHER, MEMORY)  # what has winners and losers in a row
KEYS = (FIGURE, OTHER, *(metric.key for metric in METRICS))
# Figures are named with their unit: "seconds", "wall_s", "us_per_start", "resident_idle_end_mib".
SECONDS_OF = {"seconds": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def seconds_per_unit(figure: str) -> float | None:
    """What 1 of this figure is in seconds (per whatever it counts), or None if it is no time."""
    return next((SECONDS_OF[part] for part in figure.split("_") if part in SECONDS_OF), None)


def own_key(cell: Cell) -> str:
    """Under which key the cell's own figure is: FIGURE or OTHER."""
    return OTHER if seconds_per_unit(cell.figure) is None else FIGURE


def unit(cell: Cell, metric: str) -> str:
    """The unit of a metric in this cell; of the cell's own figure its name, which says the unit."""
    known = METRIC | {one.key: one for one in cell.figures}
    return known[metric].unit if metric in known else cell.figure


def title(metric: str) -> str:
    """What a metric is called."""
    own = {FIGURE: "time", OTHER: "own figure"}
    return own[metric] if metric in own else METRIC[metric].title


@dataclass(frozen=True)
class Against:
    """One allocator over another in one cell: what their paired samples show."""

    other: str
    ratio: Ratio
    verdict: Verdict


@dataclass(frozen=True)
class Entry:
    """One allocator in one cell. `estimates` and `to_baseline` are empty unless it is OK."""

    allocator: str
    status: Status
    reason: str  # of every status but OK
    estimates: Mapping[str, Estimate]  # metric key → median and interval; also Cell.figures
    to_baseline: Mapping[str, Against]  # metric key → over the baseline, if that is OK here too

    @property
    def ok(self) -> bool:
        return self.status is Status.OK


@dataclass(frozen=True)
class Row:
    """One cell. Mappings by metric cover ROW and lack a metric that nobody has here."""

    cell: Cell
    entries: Mapping[str, Entry]  # by allocator, all of the result's, in its order
    best: Mapping[str, str]  # metric → the allocator with the lowest median
    level: Mapping[str, tuple[str, ...]]  # metric → those not shown to be worse than the best
    best_rival: Mapping[str, str]  # metric → the same among the rivals
    ours: Mapping[str, Mapping[str, Against]]  # our allocator → metric → over the best rival


@dataclass(frozen=True)
class Tally:
    """Rows against the baseline, by verdict."""

    better: int
    worse: int
    same: int
    too_few: int


@dataclass(frozen=True)
class Judged:
    """A geometric mean and what may be said of it."""

    mean: Mean
    verdict: Verdict


@dataclass(frozen=True)
class Standing:
    """One allocator in the league: everything against the baseline."""

    allocator: Allocator
    means: Mapping[str, Judged]  # metric → over the rows where both are OK
    common: Mapping[str, Judged]  # MAIN → over the common rows; empty if it is not in those
    families: Mapping[str, Mapping[str, Judged]]  # family → MAIN
    tally: Mapping[str, Tally]  # ROW
    failed: tuple[tuple[str, str], ...]  # (cell, reason): it ran there and failed
    left_out: tuple[tuple[str, str], ...]  # (cell, reason): rows that its mean time lacks

    @property
    def rows(self) -> int:
        """How many rows its mean time is over."""
        return self.means[FIGURE].mean.rows if FIGURE in self.means else 0


@dataclass(frozen=True)
class NoiseFloor:
    """What the A/A pairs show in one metric, in each cell and overall."""

    cells: Mapping[str, Noise]
    typical: float  # median over cells: two runs of the same thing differ by this share
    default: float  # the floor of cells without A/A pairs: 95 % of the others are below it
    mean: Mean | None  # of all A/A ratios; None without A/A pairs
    excluded: int  # A/A intervals that do not hold 1: about 5 % of them should not

    def of(self, cell: str) -> float:
        """What a difference in this cell must exceed, as a share."""
        noise = self.cells.get(cell)
        return noise.floor if noise and noise.ratio.claims else self.default

    @property
    def of_means(self) -> float:
        """What a geometric mean must differ from 1 by; inf if there are too few pairs to say."""
        if self.mean is None:
            return 0.0
        return max(self.mean.high, 1 / self.mean.low) - 1 if self.mean.low > 0 else math.inf


@dataclass(frozen=True)
class Shown:
    """What a row says of ours over `against.other`, the best rival there in this metric."""

    cell: str
    ours: str
    metric: str
    against: Against


@dataclass(frozen=True)
class Verdicts:
    """One of ours in one metric, row by row against the best rival there."""

    wins: tuple[Shown, ...]
    losses: tuple[Shown, ...]
    level: tuple[Shown, ...]
    open: tuple[Shown, ...]

    @property
    def rows(self) -> int:
        """How many rows have a ratio at all."""
        return len(self.wins) + len(self.losses) + len(self.level) + len(self.open)


@dataclass(frozen=True)
class Headline:
    """Ours overall: against the rival with the best mean, and against the best rival of each row."""

    ours: str
    metric: str
    rival: str  # lowest mean over the common rows
    over_rival: Judged
    over_best_of_each: Judged


@dataclass(frozen=True)
class Summary:
    """All tables of one result."""

    result: Result
    samples: Samples
    baseline: str
    rows: tuple[Row, ...]
    league: tuple[Standing, ...]  # best mean time over the common rows first, the missing left out
    noise: Mapping[str, NoiseFloor]  # by metric
    common_rows: tuple[str, ...]
    not_common: tuple[tuple[str, str], ...]  # (allocator, why the common rows do without it)
    missing: tuple[Allocator, ...]
    losses: tuple[
        Shown, ...
    ]  # rows with enough rounds in which ours is shown to be worse, worst first
    wins: tuple[Shown, ...]  # the same, better, best first
    level: tuple[Shown, ...]  # rows with enough rounds in which no difference is shown
    open: tuple[Shown, ...]  # rows without enough rounds, whatever their ratio is
    headlines: tuple[Headline, ...]
    frontier: tuple[str, ...]  # time against memory, over the common rows
    contention: tuple[Contended, ...]  # cells × allocators, if there were runs for lock counters
    intervals: int  # how many intervals the rows state in ROW; 5 % of them miss

    def row(self, cell: str) -> Row:
        return next(row for row in self.rows if row.cell.name == cell)

    def verdicts(self, ours: str, metric: str) -> Verdicts:
        """What the rows say of one of ours against the best rival of each."""
        return Verdicts(
            *(
                tuple(one for one in shown if (one.ours, one.metric) == (ours, metric))
                for shown in (self.wins, self.losses, self.level, self.open)
            )
        )

    @property
    def present(self) -> list[str]:
        """The names of who could run."""
        return [one.name for one in self.result.allocators if not one.missing]

    def rows_with_figures(self) -> list[Row]:
        """Rows that have further figures of their own, and anybody with one."""
        return [row for row in self.rows if any(figures_of(row, e) for e in row.entries.values())]


def figures_of(row: Row, entry: Entry) -> list[tuple[Metric, Estimate]]:
    """The row's own further figures that an allocator has."""
    return [
        (metric, entry.estimates[metric.key])
        for metric in row.cell.figures
        if metric.key in entry.estimates
    ]


# --- samples by cell and allocator ---------------------------------------------------------------


class Samples:
    """The samples of a result, found by cell and allocator; ratios of any metric on demand."""

    def __init__(self, result: Result) -> None:
        self._figures = {cell.name: (own_key(cell), cell.figure) for cell in result.cells}
        self._missing = {cell.name: cell.missing for cell in result.cells}
        self._absent = {allocator.name: allocator.missing for allocator in result.allocators}
        self._finished = result.finished
        self._found: dict[tuple[str, str, str, bool], dict[int, float]] = {}  # what was asked for
        self._taken: dict[tuple[str, str], list[Sample]] = defaultdict(list)
        for sample in result.samples:
            self._taken[sample.cell, sample.allocator].append(sample)

    def status(self, cell: str, allocator: str) -> tuple[Status, str]:
        """How this allocator did in this cell, and the reason of everything but OK."""
        taken = self._taken.get((cell, allocator), [])
        bad = next((sample for sample in taken if sample.status is not Status.OK), None)
        if bad is not None:
            return bad.status, bad.reason or "no reason is recorded"
        absent = self._missing.get(cell) or self._absent.get(allocator)
        if absent or not taken:
            unfinished = "it did not get its turn before the bench ended"
            no_sample = "no sample" if self._finished else unfinished
            return Status.MISSING, absent or no_sample
        return Status.OK, ""

    def ok(self, cell: str, allocator: str) -> bool:
        return self.status(cell, allocator)[0] is Status.OK

    def values(
        self, cell: str, allocator: str, metric: str, *, again: bool = False
    ) -> dict[int, float]:
        """The figure by round; nothing at all of a cell that failed."""
        wanted = (cell, allocator, metric, again)
        if wanted not in self._found:
            self._found[wanted] = self._find(*wanted)
        return self._found[wanted]

    def _find(self, cell: str, allocator: str, metric: str, again: bool) -> dict[int, float]:
        if not self.ok(cell, allocator):
            return {}
        key = self._key(cell, metric)
        found = {}
        for sample in self._taken[cell, allocator]:
            value = sample.metrics.get(key, sample.extra.get(key))
            if sample.again is again and value is not None:
                found[sample.round] = value
        return found

    def _key(self, cell: str, metric: str) -> str:
        """Under which name a sample has the metric; "" if this cell has no such thing.

        Samples repeat their cell's own figure as TIME, which is no time of its own then.
        """
        own, figure = self._figures[cell]
        if metric in (FIGURE, OTHER):
            return figure if metric == own else ""
        return "" if metric == TIME and figure not in (TIME, "wall_s") else metric

    def logs(self, cell: str, one: str, other: str, metric: str) -> list[float]:
        """Logarithms of one / other by round. Empty if there are none, or if a figure is 0."""
        return _logs(self.values(cell, one, metric), self.values(cell, other, metric))

    def noise_logs(self, cell: str, metric: str) -> list[float]:
        """The same of second over first runs of whoever ran twice in a round."""
        names = [name for where, name in self._taken if where == cell]
        return [
            log
            for name in names
            for log in _logs(
                self.values(cell, name, metric, again=True), self.values(cell, name, metric)
            )
        ]

    def ratio(self, cell: str, one: str, other: str, metric: str) -> Ratio | None:
        """one / other, or None where the two have no round in common."""
        logs = self.logs(cell, one, other, metric)
        return statistics.ratio_of_logs(logs) if logs else None


def _logs(ours: dict[int, float], others: dict[int, float]) -> list[float]:
    rounds = sorted(ours.keys() & others.keys())
    if any(ours[k] <= 0 or others[k] <= 0 for k in rounds):
        return []  # a ratio to nothing says nothing, and dropping only those rounds would cheat
    return [math.log(ours[k] / others[k]) for k in rounds]
