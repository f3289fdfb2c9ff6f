# SPDX-License-Identifier: MIT
"""The tables computed from samples: rows, league, winners, losses, noise. Who shows only formats.

What counts, and what does not:

- An allocator has failed in a cell if one or more of its samples there failed, the A/A run and the
  runs for memory over time included. Then none of its figures in that cell is used: a library that
  crashes in one of ten runs has not "won the other nine". The first reason is kept.
- Of a bench that was interrupted or ran out of time, each row has the samples it got; an allocator
  without any in a row is missing there, with that reason.
- Ratios pair the samples of one round, the A/A run (`again`) left out, so the allocator that runs
  twice has no advantage.
- A mean over other rows is another mean. Each mean says over how many of how many rows it is, and
  the `common` ones are over the rows in which every allocator of the league succeeded, so only those
  may be put into an order.
- The best rival of a row is picked by the same samples that brimful is then compared with, so of
  several equal ones the luckiest is picked: brimful looks slightly worse than it is, never better.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from . import contention, statistics
from .contention import Contended
from .model import MEMORY, METRIC, TIME, Allocator, Cell, Contention, Result, Status
from .statistics import Mean, Ratio, Verdict
from .tables import (
    FIGURE,
    KEYS,
    MAIN,
    OTHER,
    ROW,
    Against,
    Entry,
    Headline,
    Judged,
    NoiseFloor,
    Row,
    Samples,
    Shown,
    Standing,
    Summary,
    Tally,
    own_key,
    title,
    unit,
)

__all__ = [
    "FIGURE",
    "KEYS",
    "MAIN",
    "OTHER",
    "ROW",
    "Against",
    "Entry",
    "Headline",
    "Judged",
    "NoiseFloor",
    "Row",
    "Samples",
    "Shown",
    "Standing",
    "Summary",
    "SummaryError",
    "Tally",
    "csv_rows",
    "own_key",
    "summarize",
    "title",
    "word",
]

# An allocator that fails in more than this share of the rows is left out of the common rows, which
# would be few or none otherwise; the league says so.
MOST_FAILURES = 0.25

_WORDS = {
    Verdict.BETTER: {True: "faster", False: "less"},
    Verdict.WORSE: {True: "slower", False: "more"},
}


class SummaryError(Exception):
    """The wanted table cannot be made; the message says why."""


def summarize(result: Result, baseline: str = "") -> Summary:
    """All tables. `baseline` is what ratios are over; "" is the run's own, glibc, or the first rival.

    Raises SummaryError if there is no such allocator, or none at all.
    """
    return _Maker(result, _pick_baseline(result, baseline)).summary()


def word(verdict: Verdict, metric: str) -> str:
    """The verdict as it is said of this metric: "faster", "less", "no difference shown"…"""
    is_time = metric == FIGURE or (metric in METRIC and METRIC[metric].unit in ("s", "ns"))
    return _WORDS[verdict][is_time] if verdict in _WORDS else str(verdict)


def _pick_baseline(result: Result, wanted: str) -> str:
    here = [allocator for allocator in result.allocators if not allocator.missing]
    names = [allocator.name for allocator in here]
    if not names:
        raise SummaryError("the result has no allocator that could run")
    wanted = wanted or str(result.options.get("baseline", ""))
    if wanted and wanted not in (allocator.name for allocator in result.allocators):
        raise SummaryError(f"no allocator {wanted!r} in the result; there are: {', '.join(names)}")
    rivals = [allocator.name for allocator in here if not allocator.ours]
    choices = (wanted, "glibc", *rivals, *names)
    return next(name for name in choices if name in names)


class _Maker:
    """Makes one summary; holds what its parts share."""

    def __init__(self, result: Result, baseline: str) -> None:
        self.result = result
        self.samples = Samples(result)
        self.baseline = baseline
        self.present = [a for a in result.allocators if not a.missing]
        self.cells = {cell.name: cell for cell in result.cells}
        self.noise = {key: self._noise(key) for key in KEYS}

    def summary(self) -> Summary:
        rows = tuple(self._row(cell) for cell in self.result.cells)
        common, not_common = self._common_rows()
        unplaced = [self._standing(a, rows, common, dict(not_common)) for a in self.present]
        league = tuple(sorted(unplaced, key=_place))
        points = {
            s.allocator.name: (s.common[FIGURE].mean.mean, s.common[MEMORY].mean.mean)
            for s in league
            if s.common.keys() >= set(MAIN)
        }
        return Summary(
            result=self.result,
            samples=self.samples,
            baseline=self.baseline,
            rows=rows,
            league=league,
            noise=self.noise,
            common_rows=tuple(common),
            not_common=tuple(not_common),
            missing=tuple(a for a in self.result.allocators if a.missing),
            losses=_shown(rows, Verdict.WORSE),
            wins=_shown(rows, Verdict.BETTER),
            level=_shown(rows, Verdict.SAME),
            open=_shown(rows, Verdict.TOO_FEW),
            headlines=tuple(self._headlines(league, rows, common)),
            frontier=statistics.frontier(points),
            contention=tuple(self._contention()),
            intervals=_count_intervals(rows),
        )

    # --- noise ---

    def _noise(self, metric: str) -> NoiseFloor:
        logs = {name: self.samples.noise_logs(name, metric) for name in self.cells}
        logs = {name: values for name, values in logs.items() if values}
        cells = {name: statistics.noise(values) for name, values in logs.items()}
        floors = [noise.floor for noise in cells.values() if noise.ratio.claims]
        return NoiseFloor(
            cells=cells,
            typical=statistics.median([n.typical for n in cells.values()]) if cells else 0.0,
            default=sorted(floors)[math.ceil(0.95 * len(floors)) - 1] if floors else 0.0,
            mean=self._noise_mean(logs) if logs else None,
            excluded=sum(not noise.ratio.low <= 1 <= noise.ratio.high for noise in cells.values()),
        )

    def _noise_mean(self, logs: Mapping[str, Sequence[float]]) -> Mean:
        """Of these rows, or of more than these where there are too few rounds for that."""
        mean = self._geometric_mean(logs, beyond=False)
        return mean if mean.low > 0 else self._geometric_mean(logs, beyond=True)

    def _geometric_mean(self, logs: Mapping[str, Sequence[float]], *, beyond: bool) -> Mean:
        """Over the cells of `logs`, each workload counted once."""
        groups: dict[str, list[Sequence[float]]] = defaultdict(list)
        for cell, values in logs.items():
            groups[self.cells[cell].workload].append(values)
        return statistics.geometric_mean(groups, beyond=beyond)

    # --- rows ---

    def _row(self, cell: Cell) -> Row:
        entries = {a.name: self._entry(cell, a.name) for a in self.result.allocators}
        running = [a for a in self.present if entries[a.name].ok]
        rivals = [a.name for a in running if not a.ours]
        best = _lowest(entries, [a.name for a in running])
        best_rival = _lowest(entries, rivals)
        return Row(
            cell=cell,
            entries=entries,
            best=best,
            level={
                metric: tuple(
                    a.name
                    for a in running
                    if a.name == name or self._is_level(cell.name, a.name, name, metric)
                )
                for metric, name in best.items()
            },
            best_rival=best_rival,
            ours={a.name: self._over(cell.name, a.name, best_rival) for a in running if a.ours},
        )

    def _entry(self, cell: Cell, name: str) -> Entry:
        status, reason = self.samples.status(cell.name, name)
        if status is not Status.OK:
            return Entry(name, status, reason, {}, {})
        keys = (*KEYS, *(metric.key for metric in cell.figures))
        values = {key: list(self.samples.values(cell.name, name, key).values()) for key in keys}
        return Entry(
            allocator=name,
            status=status,
            reason="",
            estimates={key: statistics.estimate(found) for key, found in values.items() if found},
            to_baseline=self._over(cell.name, name, dict.fromkeys(KEYS, self.baseline)),
        )

    def _over(self, cell: str, name: str, others: Mapping[str, str]) -> dict[str, Against]:
        """`name` over the allocator that `others` names for each metric, where both have it."""
        found = {
            metric: (other, self.samples.ratio(cell, name, other, metric))
            for metric, other in others.items()
        }
        return {
            metric: Against(other, ratio, self._verdict(ratio, cell, metric, name == other))
            for metric, (other, ratio) in found.items()
            if ratio is not None
        }

    def _verdict(self, ratio: Ratio, cell: str, metric: str, itself: bool) -> Verdict:
        return Verdict.SAME if itself else statistics.verdict(ratio, self.noise[metric].of(cell))

    def _is_level(self, cell: str, name: str, best: str, metric: str) -> bool:
        against = self._over(cell, name, {metric: best}).get(metric)
        return against is not None and against.verdict is not Verdict.WORSE

    # --- lock counters ---

    def _contention(self) -> Iterable[Contended]:
        """Nothing if nobody was run for them; else every cell that was, and everybody in it."""
        runs: dict[tuple[str, str], list[Contention]] = defaultdict(list)
        for run in self.result.contention:
            runs[run.cell, run.allocator].append(run)
        for cell in self.cells.values():
            if any((cell.name, allocator.name) in runs for allocator in self.present):
                for allocator in self.present:
                    yield self._contended(cell, allocator, runs[cell.name, allocator.name])

    def _contended(self, cell: Cell, allocator: Allocator, runs: Sequence[Contention]) -> Contended:
        why = next((run.missing for run in runs if run.missing), "")
        if not runs:
            why = contention.NOT_RUN if allocator.ours else contention.NOT_COUNTED
        counted = [] if why else runs
        return Contended(
            cell=cell.name,
            allocator=allocator.name,
            figures=_medians([contention.per_operation(run) for run in counted]),
            contended_by_kind=_medians([contention.contended_by_kind(run) for run in counted]),
            runs=len(counted),
            throughput=self._throughput(cell, allocator.name),
            missing=why,
        )

    def _throughput(self, cell: Cell, name: str) -> float | None:
        """Operations per second of the measured part, where that is what the row compares."""
        if cell.figure != TIME:
            return None
        times = self.samples.values(cell.name, name, FIGURE)
        counts = self.samples.values(cell.name, name, "operations") | self.samples.values(
            cell.name, name, "timed_operations"
        )
        rates = [counts[number] / times[number] for number in times.keys() & counts.keys()]
        return statistics.median(rates) if rates else None

    # --- league ---

    def _common_rows(self) -> tuple[list[str], list[tuple[str, str]]]:
        """The rows where all succeeded, and who is not asked because it fails in too many."""
        wanted = [name for name in self.cells if self.samples.ok(name, self.baseline)]
        not_common = []
        names = []
        for allocator in self.present:
            failed = sum(not self.samples.ok(cell, allocator.name) for cell in wanted)
            if failed > MOST_FAILURES * len(wanted):
                why = f"it has no result in {failed} of {len(wanted)} rows"
                not_common.append((allocator.name, why))
            else:
                names.append(allocator.name)
        common = [c for c in wanted if all(self.samples.ok(c, name) for name in names)]
        return common, not_common

    def _standing(
        self,
        allocator: Allocator,
        rows: Sequence[Row],
        common: Iterable[str],
        not_common: Mapping[str, str],
    ) -> Standing:
        name = allocator.name
        timed = [row for row in rows if own_key(row.cell) == FIGURE]
        families = dict.fromkeys(cell.family for cell in self.cells.values())
        return Standing(
            allocator=allocator,
            means=self._means(name, KEYS, self.cells),
            common={} if name in not_common else self._means(name, MAIN, common),
            families={
                family: self._means(
                    name,
                    MAIN,
                    [c for c, cell in self.cells.items() if cell.family == family],
                    False,
                )
                for family in families
            },
            tally={metric: _tally(name, metric, rows) for metric in ROW},
            failed=tuple(
                (row.cell.name, f"{entry.status}: {entry.reason}")
                for row in rows
                if not (entry := row.entries[name]).ok and entry.status is not Status.MISSING
            ),
            left_out=tuple(
                (row.cell.name, self._why_left_out(row, name))
                for row in timed
                if FIGURE not in row.entries[name].to_baseline
            ),
        )

    def _why_left_out(self, row: Row, name: str) -> str:
        if not row.entries[name].ok:
            return f"{row.entries[name].status}: {row.entries[name].reason}"
        baseline = row.entries[self.baseline]
        if not baseline.ok:
            return f"{self.baseline}, the baseline: {baseline.status}: {baseline.reason}"
        return f"no round in which both it and {self.baseline} have a figure above 0"

    def _means(
        self, name: str, metrics: Iterable[str], cells: Iterable[str], beyond: bool = True
    ) -> dict[str, Judged]:
        """`name` over the baseline in each metric that they have."""
        among = list(cells)
        found = {}
        for metric in metrics:
            others = dict.fromkeys(among, self.baseline)
            judged = self._judged_mean(name, others, metric, beyond)
            if judged is not None:
                found[metric] = judged
        return found

    def _judged_mean(
        self, name: str, others: Mapping[str, str], metric: str, beyond: bool = True
    ) -> Judged | None:
        """`name` over the allocator that `others` names for each cell."""
        logs = {c: self.samples.logs(c, name, other, metric) for c, other in others.items()}
        logs = {cell: values for cell, values in logs.items() if values}
        if not logs:
            return None
        mean = self._geometric_mean(logs, beyond=beyond)
        if all(name == other for other in others.values()):
            return Judged(mean, Verdict.SAME)
        return Judged(mean, statistics.verdict_of_mean(mean, self.noise[metric].of_means))

    def _headlines(
        self, league: Sequence[Standing], rows: Sequence[Row], common: Sequence[str]
    ) -> Iterable[Headline]:
        """Of each of ours and each of MAIN, if there are rivals in the common rows."""
        for ours in (a.name for a in self.present if a.ours):
            for metric in MAIN:
                rivals = {
                    s.allocator.name: s.common[metric].mean.mean
                    for s in league
                    if not s.allocator.ours and metric in s.common
                }
                best = {r.cell.name: r.best_rival[metric] for r in rows if metric in r.best_rival}
                each = self._judged_mean(ours, best, metric)
                if not rivals or each is None:
                    continue
                rival = min(rivals, key=lambda name: rivals[name])
                over = self._judged_mean(ours, dict.fromkeys(common, rival), metric)
                if over is not None:
                    yield Headline(ours, metric, rival, over, each)


def _medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of each key over the runs that have it."""
    keys = dict.fromkeys(key for run in runs for key in run)
    return {key: statistics.median([run[key] for run in runs if key in run]) for key in keys}


def _lowest(entries: Mapping[str, Entry], names: Iterable[str]) -> dict[str, str]:
    """Of each of ROW, who has the lowest median."""
    among = list(names)
    best = {}
    for metric in ROW:
        medians = {
            name: entries[name].estimates[metric].median
            for name in among
            if metric in entries[name].estimates
        }
        if medians:
            best[metric] = min(medians, key=lambda name: medians[name])
    return best


def _place(standing: Standing) -> tuple[bool, float]:
    """By the mean time over the common rows; whoever has none comes last, by the mean it has."""
    means = standing.common or standing.means
    return not standing.common, means[FIGURE].mean.mean if FIGURE in means else math.inf


def _tally(name: str, metric: str, rows: Iterable[Row]) -> Tally:
    verdicts = [
        row.entries[name].to_baseline[metric].verdict
        for row in rows
        if metric in row.entries[name].to_baseline
    ]
    order = (Verdict.BETTER, Verdict.WORSE, Verdict.SAME, Verdict.TOO_FEW)
    return Tally(*(verdicts.count(verdict) for verdict in order))


def _shown(rows: Iterable[Row], wanted: Verdict) -> tuple[Shown, ...]:
    """Of ours over the best rivals, what is shown so; the largest difference first."""
    found = [
        Shown(row.cell.name, name, metric, against)
        for row in rows
        for name, by_metric in row.ours.items()
        for metric, against in by_metric.items()
        if _verdict_of_row(against) is wanted
    ]
    return tuple(sorted(found, key=lambda one: -abs(math.log(one.against.ratio.median))))


def _verdict_of_row(against: Against) -> Verdict:
    """The verdict, or TOO_FEW of a row that has not been run often enough to be won or lost."""
    return against.verdict if statistics.enough_rounds(against.ratio) else Verdict.TOO_FEW


def _count_intervals(rows: Iterable[Row]) -> int:
    """The intervals of ratios that the rows state in ROW, those of a thing with itself left out."""
    return sum(
        against.ratio.claims and against.other != name
        for row in rows
        for name, by_metric in (
            *((name, entry.to_baseline) for name, entry in row.entries.items()),
            *row.ours.items(),
        )
        for metric, against in by_metric.items()
        if metric in ROW
    )


# --- CSV -----------------------------------------------------------------------------------------

CSV_COLUMNS = (
    *("cell", "workload", "family", "axis", "at", "allocator", "status", "reason", "metric"),
    *("unit", "n", "median", "low", "high", "baseline", "ratio", "ratio_low", "ratio_high"),
    *("pairs", "verdict"),
)


def csv_rows(source: Result | Summary) -> list[dict[str, str | float | int]]:
    """One row per cell × allocator × metric; of a failed cell one row, with its reason."""
    summary = summarize(source) if isinstance(source, Result) else source
    table: list[dict[str, str | float | int]] = []
    for row in summary.rows:
        for name, entry in row.entries.items():
            head: dict[str, str | float | int] = {
                "cell": row.cell.name,
                "workload": row.cell.workload,
                "family": row.cell.family,
                "axis": row.cell.axis,
                "at": row.cell.at if row.cell.axis else "",
                "allocator": name,
                "status": str(entry.status),
                "reason": entry.reason,
            }
            empty: dict[str, str | float | int] = dict.fromkeys(CSV_COLUMNS, "")
            if not entry.ok:
                table.append(empty | head)
            for key in entry.estimates:
                figures = _csv_figures(summary.baseline, row.cell, key, entry)
                table.append(empty | head | figures)
            for figures in _csv_contention(summary, row.cell.name, name):
                table.append(empty | head | figures)
    return table


def _csv_contention(
    summary: Summary, cell: str, name: str
) -> Iterable[dict[str, str | float | int]]:
    """The columns of each lock figure; of counters that are missing, one line with the reason."""
    for one in summary.contention:
        if (one.cell, one.allocator) != (cell, name):
            continue
        if one.missing:
            yield {"metric": contention.CONTENDED.key, "reason": one.missing}
        for metric in contention.METRICS:
            if metric.key in one.figures:
                median = one.figures[metric.key]
                yield {"metric": metric.key, "unit": metric.unit, "n": one.runs, "median": median}


def _csv_figures(
    baseline: str, cell: Cell, metric: str, entry: Entry
) -> dict[str, str | float | int]:
    """The columns of one figure. An interval that does not exist is empty."""
    estimate, against = entry.estimates[metric], entry.to_baseline.get(metric)
    columns: dict[str, str | float | int] = {
        "metric": metric,
        "unit": unit(cell, metric),
        "n": estimate.count,
        "median": estimate.median,
    }
    if estimate.count >= statistics.FEWEST_PAIRS:
        columns |= {"low": estimate.low, "high": estimate.high}
    if against is not None:
        ratio = against.ratio
        columns |= {"baseline": baseline, "ratio": ratio.median, "pairs": ratio.pairs}
        columns |= {"verdict": str(against.verdict)}
        if ratio.claims:
            columns |= {"ratio_low": ratio.low, "ratio_high": ratio.high}
    return columns
