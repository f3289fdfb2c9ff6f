# SPDX-License-Identifier: MIT
"""A against B: has this allocator become slower or larger between two results? The exit code says.

Two runs have no rounds in common, and a machine is not the same on two days: other neighbours, other
clock speeds, another kernel. So times are not compared as they are (unless `absolute`), but as a
multiple of references: the allocators that both files have with the same library (SHA-256), version
and settings, and that are not ours. A sample is divided by the geometric mean of their samples in
its own round, which takes out everything that slows all alike; what changes between the runs is then
the allocator. More than one reference is better than glibc alone, because the noise of one
reference would be in every figure.

The references are also the control. None of them changed, so whatever each of them seems to have
changed by (against the others) is what nothing looks like here. A change has to exceed the largest
of those to count; it is the floor of the row, and holds what differs from run to run and is in no
interval of samples from one run.

Each row has one of these outcomes, by the 95 % interval of the change B / A and the limit:

    regression      the whole interval is beyond the limit, and the change is above the floor
    broken          it worked in A and failed in B
    fine            the whole interval is within the limit
    too noisy       anything else: the interval holds the limit, or has no end

The same for the geometric mean of all rows. The gate's answer (exit code), by what is gated:

    1  some row, or a mean, has regressed, or a row is broken
    2  there is nothing to compare (no such file, allocator, or row in common)
    3  no 1, but a mean is too noisy, or more than half of the rows are
    0  else: the means are within the limit, and so is every row of which it can be said

Rows whose figure was counted (model.COUNTED, see counted) need none of this: a count has no noise and
no machine in it, so one sample is all, the change is what it is, and nothing is too noisy.

Of N rows that did not change, far fewer than N/40 should be called a regression, because the whole
interval has to be beyond the limit and not only beyond 1; of rows exactly at the limit it is N/40.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from . import statistics
from .model import COUNTED, Allocator, Cell, Result, Status
from .statistics import Mean, Ratio
from .tables import FIGURE, OTHER, ROW, Samples, own_key, title

FINE, REGRESSED, USAGE, TOO_NOISY = range(4)  # exit codes
NOISY_SHARE = 0.5  # of the rows, above which the gate cannot say
# What of the environment both runs should have had, and how it is called.
CONDITIONS = {
    "cpu": "CPU",
    "cpus_allowed": "number of CPUs",
    "memory_mib": "memory",
    "kernel": "kernel",
    "libc": "C library",
    "thp": "transparent huge pages",
    "governor": "governor",
}


class CompareError(Exception):
    """There is nothing to compare; the message says why."""


class Outcome(StrEnum):
    """What the two runs say about one row, or about a mean."""

    REGRESSION = "regression"
    BROKEN = "broken"
    FINE = "fine"
    TOO_NOISY = "too noisy"


@dataclass(frozen=True)
class Change:
    """One allocator in one row and metric: B over A. `ratio` is None of a row that is broken."""

    cell: str
    allocator: str
    metric: str
    outcome: Outcome
    ratio: Ratio | None
    floor: float  # as a share; 0 if there is no control
    reason: str = ""  # of a broken row; of a counted one the two figures


@dataclass(frozen=True)
class Overall:
    """The geometric mean of one allocator's changes in one metric."""

    allocator: str
    metric: str
    outcome: Outcome
    mean: Mean
    floor: float


@dataclass(frozen=True)
class Comparison:
    """Everything that the gate found out."""

    fail_over: float
    absolute: bool
    allocators: tuple[str, ...]  # those that are gated
    references: tuple[str, ...]
    changes: tuple[Change, ...]
    overall: tuple[Overall, ...]
    left_out: tuple[tuple[str, str, str], ...]  # (cell, allocator, reason)
    warnings: tuple[str, ...]
    counted: bool = False  # both results hold counts only

    @property
    def exit_code(self) -> int:
        outcomes = [change.outcome for change in self.changes]
        means = [overall.outcome for overall in self.overall]
        if {Outcome.REGRESSION, Outcome.BROKEN} & {*outcomes, *means}:
            return REGRESSED
        noisy = outcomes.count(Outcome.TOO_NOISY)
        if Outcome.TOO_NOISY in means or noisy > NOISY_SHARE * len(outcomes):
            return TOO_NOISY
        return FINE


def compare(
    a: Result,
    b: Result,
    fail_over: float,
    metrics: Sequence[str] = ROW,
    allocators: Sequence[str] = (),
    absolute: bool = False,
) -> Comparison:
    """B against A. `fail_over` is a share (0.03 is 3 %); `allocators` are ours if none is named.

    Raises CompareError if nothing can be compared.
    """
    return _Comparer(a, b, fail_over, metrics, allocators, absolute).comparison()


class _Comparer:
    """Makes one comparison; holds what its parts share. Pairs of things are (in A, in B)."""

    def __init__(
        self,
        a: Result,
        b: Result,
        fail_over: float,
        metrics: Sequence[str],
        allocators: Sequence[str],
        absolute: bool,
    ) -> None:
        self.results = (a, b)
        self.samples = (Samples(a), Samples(b))
        self.limit = 1 + fail_over
        self.fail_over = fail_over
        self.counted = all(_is_counted(cell) for cell in (*a.cells, *b.cells))
        self.metrics = (OTHER,) if self.counted else metrics
        self.absolute = absolute or self.counted
        self.gated = _gated(a, b, allocators)
        self.references, self.warnings = _references(a, b, self.gated)
        if not self.absolute and not self.references:
            raise CompareError(
                "the results have no unchanged allocator in common to measure against"
                " (--absolute compares the times as they are)"
            )

    def comparison(self) -> Comparison:
        cells, left_out = self._common_cells()
        changes: list[Change] = []
        overall: list[Overall] = []
        for name in self.gated:
            usable = []
            for cell in cells:
                broken, reason = self._state(cell.name, name)
                if broken:
                    outcome = Outcome.BROKEN
                    changes.append(Change(cell.name, name, "", outcome, None, 0.0, reason))
                elif reason:
                    left_out.append((cell.name, name, reason))
                else:
                    usable.append(cell)
            for metric in self.metrics:
                having = [
                    c for c in usable if metric not in (FIGURE, OTHER) or own_key(c) == metric
                ]
                logs = {cell.name: self._logs(cell.name, name, metric) for cell in having}
                found = {cell: pair for cell, pair in logs.items() if all(pair)}
                why = f"no round of both results has its {title(metric)} and the references'"
                left_out += [(cell, name, why) for cell in logs if cell not in found]
                changes += [self._change(c, name, metric, *pair) for c, pair in found.items()]
                if found:
                    overall.append(self._overall(name, metric, found))
        if not changes:
            raise CompareError(f"no row of {', '.join(self.gated)} has figures in both results")
        return Comparison(
            fail_over=self.fail_over,
            absolute=self.absolute,
            counted=self.counted,
            allocators=self.gated,
            references=self.references,
            changes=tuple(changes),
            overall=tuple(overall),
            left_out=tuple(left_out),
            warnings=(*_differing(*self.results), *self.warnings),
        )

    def _common_cells(self) -> tuple[list[Cell], list[tuple[str, str, str]]]:
        """The rows that both have and that are the same work in both."""
        olds = {cell.name: cell for cell in self.results[0].cells}
        news = {cell.name: cell for cell in self.results[1].cells}
        cells = []
        left_out = []
        for name in [*olds, *(name for name in news if name not in olds)]:
            if name not in olds or name not in news:
                left_out.append((name, "", f"only in {'A' if name in olds else 'B'}"))
            elif _work(olds[name]) != _work(news[name]):
                left_out.append((name, "", "another command or figure in A than in B"))
            else:
                cells.append(olds[name])
        return cells, left_out

    def _state(self, cell: str, name: str) -> tuple[bool, str]:
        """(broken?, why it has no figures), or (False, "") if it has them in both."""
        (old, old_reason), (new, new_reason) = (s.status(cell, name) for s in self.samples)
        if old is Status.OK and new is Status.OK:
            return False, ""
        if old is not Status.OK:
            return False, f"{old} in A: {old_reason}"
        return new is not Status.MISSING, f"{new} in B: {new_reason}"

    def _logs(self, cell: str, name: str, metric: str) -> tuple[list[float], list[float]]:
        """Logarithms of the figure by round, in A and in B, over the references (if relative)."""
        among = [] if self.absolute else [r for r in self._present(cell) if r != name]
        if not among and not self.absolute:
            return [], []
        old, new = (_relative_logs(s, cell, name, among, metric) for s in self.samples)
        return old, new

    def _present(self, cell: str) -> list[str]:
        """The references that succeeded in this row in both."""
        return [r for r in self.references if all(s.ok(cell, r) for s in self.samples)]

    def _floor(self, cell: str, metric: str) -> float:
        """The largest change of what did not change: of each reference against the others."""
        pairs = [self._logs(cell, reference, metric) for reference in self._present(cell)]
        shifts = [abs(_shift(*pair)) for pair in pairs if all(pair)]
        return math.expm1(max(shifts, default=0.0))

    def _change(
        self, cell: str, name: str, metric: str, old: list[float], new: list[float]
    ) -> Change:
        if self.counted:
            change = math.exp(_shift(old, new))
            outcome = self._outcome(change, change, change, 0.0)
            figures = " → ".join(f"{math.exp(statistics.median(side)):.2f}" for side in (old, new))
            ratio = Ratio(change, change, change, min(len(old), len(new)))
            return Change(cell, name, metric, outcome, ratio, 0.0, f"{figures} {COUNTED}")
        ratio = statistics.unpaired_ratio(new, old)
        floor = self._floor(cell, metric)
        outcome = self._outcome(ratio.median, ratio.low, ratio.high, floor)
        return Change(cell, name, metric, outcome, ratio, floor)

    def _overall(
        self, name: str, metric: str, logs: Mapping[str, tuple[list[float], list[float]]]
    ) -> Overall:
        """The mean over the rows of `logs`; its floor is the largest mean of a reference there."""
        if self.counted:
            shifts = [_shift(*pair) for pair in logs.values()]
            change = math.exp(sum(shifts) / len(shifts))
            outcome = self._outcome(change, change, change, 0.0)
            mean = Mean(change, change, change, len(shifts), len(shifts), beyond=False)
            return Overall(name, metric, outcome, mean, 0.0)
        workloads = {cell.name: cell.workload for cell in self.results[0].cells}
        old: dict[str, list[list[float]]] = defaultdict(list)
        new: dict[str, list[list[float]]] = defaultdict(list)
        for cell, pair in logs.items():
            old[workloads[cell]].append(pair[0])
            new[workloads[cell]].append(pair[1])
        mean = statistics.geometric_mean_change(old, new)
        floor = max((self._mean_shift(r, metric, logs) for r in self.references), default=0.0)
        outcome = self._outcome(mean.mean, mean.low, mean.high, floor)
        return Overall(name, metric, outcome, mean, floor)

    def _mean_shift(self, reference: str, metric: str, cells: Mapping[str, object]) -> float:
        """How far a reference seems to have moved over these rows, as a share."""
        pairs = [self._logs(c, reference, metric) for c in cells if reference in self._present(c)]
        shifts = [_shift(*pair) for pair in pairs if all(pair)]
        return math.expm1(abs(sum(shifts) / len(shifts))) if shifts else 0.0

    def _outcome(self, centre: float, low: float, high: float, floor: float) -> Outcome:
        if high <= self.limit:
            return Outcome.FINE
        if low > self.limit and centre > 1 + floor:
            return Outcome.REGRESSION
        return Outcome.TOO_NOISY


def _gated(a: Result, b: Result, wanted: Sequence[str]) -> tuple[str, ...]:
    """Whose figures are judged: those named, or else all of ours that are in both."""
    olds = {allocator.name: allocator for allocator in a.allocators}
    news = {allocator.name: allocator for allocator in b.allocators}
    for name in wanted:
        for label, there in (("A", olds), ("B", news)):
            if name not in there:
                raise CompareError(f"no allocator {name!r} in {label}; it has {', '.join(there)}")
            if there[name].missing:
                raise CompareError(f"{name} is missing in {label}: {there[name].missing}")
    ours = [
        name
        for name, allocator in olds.items()
        if allocator.ours and name in news and not allocator.missing and not news[name].missing
    ]
    if not wanted and not ours:
        raise CompareError("no build of brimful is in both results (--allocator NAME chooses)")
    return tuple(dict.fromkeys(wanted or ours))


def _references(
    a: Result, b: Result, gated: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The unchanged rivals, and a line about each that is not the same library in both."""
    news = {allocator.name: allocator for allocator in b.allocators}
    kept = []
    warnings = []
    for old in a.allocators:
        new = news.get(old.name)
        if new is None or old.ours or new.ours or old.missing or new.missing or old.name in gated:
            continue
        if _identity(old) == _identity(new):
            kept.append(old.name)
        else:
            warnings.append(f"{old.name} is another library in B, so it is no reference")
    return tuple(kept), tuple(warnings)


def _identity(allocator: Allocator) -> tuple[str, str, dict[str, str]]:
    return allocator.sha256, allocator.version, allocator.settings


def _is_counted(cell: Cell) -> bool:
    return cell.figure == COUNTED


def _work(cell: Cell) -> tuple[object, ...]:
    """What must be the same for figures to be comparable; checkouts may lie elsewhere."""
    return tuple(Path(word).name for word in cell.command), cell.figure, cell.threads


def _relative_logs(
    samples: Samples, cell: str, name: str, references: Sequence[str], metric: str
) -> list[float]:
    """By round, the logarithm of the figure over the geometric mean of the references'.

    Empty if a figure is 0: it has no ratio, and dropping only those rounds would cheat.
    """
    figures = samples.values(cell, name, metric)
    others = [samples.values(cell, reference, metric) for reference in references]
    others = [values for values in others if values]
    if references and not others:
        return []
    rounds = sorted(set(figures).intersection(*others))
    if any(values[k] <= 0 for values in (figures, *others) for k in rounds):
        return []
    means = [sum(math.log(v[k]) for v in others) / max(1, len(others)) for k in rounds]
    return [math.log(figures[k]) - mean for k, mean in zip(rounds, means, strict=True)]


def _shift(old: Sequence[float], new: Sequence[float]) -> float:
    return statistics.median(new) - statistics.median(old)


def _differing(a: Result, b: Result) -> list[str]:
    """A line about everything else that differs between the runs."""
    lines = [
        f"another {what}: {a.environment.get(key)} in A, {b.environment.get(key)} in B"
        for key, what in CONDITIONS.items()
        if a.environment.get(key) != b.environment.get(key)
    ]
    for label, result in (("A", a), ("B", b)):
        if not result.finished:
            lines.append(f"{label} did not run to its end: some rows have few samples or none")
    return lines
