# SPDX-License-Identifier: MIT
"""What the report says in sentences: the headline, the findings, the method.

Each sentence is made from a verdict, never from a figure alone: a mean that is lower without the
interval to show it is "no difference shown" here too. What speaks against brimful comes in the
same list, with the same words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from .. import statistics
from .. import summary as tables
from ..charts.parts import percent
from ..statistics import Mean, Ratio, Verdict
from ..summary import FIGURE, MAIN, Headline, Judged, Summary


def interval(of: Ratio | Mean, change: bool = True) -> str:
    """The ends of an interval, as changes or as ratios."""
    if not (math.isfinite(of.high) and of.low > 0):
        return "too few rounds for an interval"
    if change:
        return f"{percent(of.low)} to {percent(of.high)}"
    return f"{of.low:.3f} to {of.high:.3f}"


def judged(metric: str, one: Judged) -> str:
    """ "−7.0 % (−9.1 % to −5.0 %): faster" """
    said = tables.word(one.verdict, metric)
    return f"{percent(one.mean.mean)} ({interval(one.mean)}): {said}"


def title(summary: Summary) -> str:
    """The one finding that a reader takes away."""
    first = [one for one in summary.headlines if one.ours == summary.headlines[0].ours]
    if first:
        return f"{first[0].ours} against its best rivals: " + ", ".join(map(_short, first))
    present = [standing.allocator.name for standing in summary.league]
    if len(present) == 1:
        return f"Only {present[0]} ran: there is nothing to compare it with"
    return "No overall comparison is possible: see the rows and what failed"


def _short(headline: Headline) -> str:
    what = "time" if headline.metric == FIGURE else "memory"
    verdict = headline.over_rival.verdict
    if verdict in (Verdict.BETTER, Verdict.WORSE):
        change = percent(headline.over_rival.mean.mean).lstrip("+−")
        word = "less" if verdict is Verdict.BETTER else "more"
        return f"{change} {word} {what} than {headline.rival}"
    return f"{verdict} in {what} ({headline.rival})"


def findings(summary: Summary) -> list[str]:
    """The findings in order of weight."""
    return [
        *_leaders(summary),
        *_ours(summary),
        *_record(summary),
        *_failures(summary),
        *_noise(summary),
    ]


def _leaders(summary: Summary) -> Iterable[str]:
    placed = [one for one in summary.league if set(MAIN) <= set(one.common)]
    if len(placed) < 2:
        return
    for metric in MAIN:
        first, second = sorted(placed, key=lambda one: one.common[metric].mean.mean)[:2]
        mean, other = first.common[metric].mean, second.common[metric].mean
        what = tables.title(metric)
        sure = (
            f"its interval overlaps that of {second.allocator.name}, so the first place is not sure"
            if other.low <= mean.high
            else f"ahead of {second.allocator.name} ({percent(other.mean)}) beyond both intervals"
        )
        yield (
            f"Lowest mean {what} of all: {first.allocator.name}, {percent(mean.mean)} against "
            f"{summary.baseline} ({interval(mean)}); {sure}."
        )


def _ours(summary: Summary) -> Iterable[str]:
    for name in dict.fromkeys(one.ours for one in summary.headlines):
        own = [one for one in summary.headlines if one.ours == name]
        rivals = "; ".join(
            f"{tables.title(one.metric)} against {one.rival} {judged(one.metric, one.over_rival)}"
            for one in own
        )
        each = "; ".join(
            f"{tables.title(one.metric)} {judged(one.metric, one.over_best_of_each)}" for one in own
        )
        yield f"{name} against the rival with the lowest mean: {rivals}."
        yield f"{name} against the best rival of each row, which no single rival is: {each}."


def _record(summary: Summary) -> Iterable[str]:
    """How often ours wins and loses against the best rival of a row."""
    for name in dict.fromkeys(name for row in summary.rows for name in row.ours):
        parts = []
        for metric in tables.ROW:
            verdicts = [
                row.ours[name][metric].verdict
                for row in summary.rows
                if metric in row.ours.get(name, {})
            ]
            if not verdicts:
                continue
            better, worse = verdicts.count(Verdict.BETTER), verdicts.count(Verdict.WORSE)
            rest = len(verdicts) - better - worse
            parts.append(
                f"{tables.title(metric)}: better in {better}, worse in {worse}, no difference shown "
                f"or too few rounds in {rest}"
            )
        yield f"{name} row by row against the best rival there, {'; '.join(parts)}."


def _failures(summary: Summary) -> Iterable[str]:
    failed = [(one.allocator.name, len(one.failed)) for one in summary.league if one.failed]
    if failed:
        names = ", ".join(f"{name} ({count})" for name, count in failed)
        yield f"Failed cells, which count for nobody: {names}."
    if summary.missing:
        yield f"Not here: {', '.join(one.name for one in summary.missing)}."


def _noise(summary: Summary) -> Iterable[str]:
    floor = summary.noise[FIGURE]
    if not floor.cells:
        yield "No allocator ran twice in a round, so the noise floor of this run is unknown."
        return
    yield (
        f"Noise floor: two runs of one allocator differ by {share(floor.typical)} in time (median "
        f"of the rows). A difference counts from the floor of its row on; 95 % of these are at most "
        f"{share(floor.default)}."
    )


def warnings(summary: Summary) -> list[str]:
    """What a reader must know before trusting any figure."""
    found = []
    environment = summary.result.environment
    if not summary.result.finished:
        found.append(
            "The run was interrupted or out of budget: rows without their turn are missing."
        )
    if environment.get("uncommitted_changes"):
        found.append("The checkout had uncommitted changes, so the commit does not name this code.")
    if environment.get("hypervisor"):
        found.append("This is a virtual machine: what its neighbours do is part of every figure.")
    load, cpus = environment.get("load_average_before"), environment.get("cpus_online")
    if isinstance(load, int | float) and isinstance(cpus, int) and load > 0.5 * cpus:
        found.append(f"The machine was busy when the run began (load average {load:g}).")
    few = [row.cell.name for row in summary.rows if _too_few(row.entries.values())]
    if few:
        found.append(
            f"{len(few)} rows have fewer than {statistics.FEWEST_PAIRS} rounds: nothing is claimed "
            "of them."
        )
    return found


def _too_few(entries: Iterable[tables.Entry]) -> bool:
    counts = [entry.estimates[FIGURE].count for entry in entries if FIGURE in entry.estimates]
    return bool(counts) and max(counts) < statistics.FEWEST_PAIRS


def share(value: float) -> str:
    return f"{100 * value:.1f}\u00a0%"


def method(summary: Summary) -> str:
    """How the figures came about, in one paragraph."""
    misses = statistics.expected_misses(summary.intervals)
    return (
        "Every sample is a fresh process. The allocators take turns in an order drawn anew for each "
        "round, so that drift of the machine hits all alike; samples of one round are compared with "
        "each other, and the median of these paired ratios is given with a 95 % bootstrap interval. "
        "One allocator runs twice in every round: what that pair differs by is the noise floor, and "
        "a difference counts only when its interval excludes 1 and it is above the floor of its row. "
        "Means are geometric, each workload counts once, and their intervals also hold for other "
        "workloads of the kind. An allocator that failed once in a row has no figure there. Rows are "
        "repeated until the interval is narrow or the budget is spent, never until a difference "
        f"shows. The tables state {summary.intervals} intervals; about {misses:.0f} of them miss the "
        "true value by chance."
    )


def change_class(verdict: Verdict) -> str:
    """The style of a verdict."""
    return {Verdict.BETTER: "better", Verdict.WORSE: "worse"}.get(verdict, "")
