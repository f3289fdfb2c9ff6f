# SPDX-License-Identifier: MIT
"""What may be concluded from samples: medians, paired ratios, intervals, verdicts, the noise floor.

Ratios are made and averaged as logarithms, so that a/b is exactly 1/(b/a) and the mean of 2 and 1/2
is 1. The centre is always the median: a sample that was hit by something else counts as one sample,
nothing is ever dropped as an outlier.

The interval of a median is that of the bootstrap [1], with two choices that need their reasons:

- No random numbers. For the median, the distribution that resampling approaches can be written down
  [2], so the answer is that of infinitely many resamples and the same every time.
- Ends at the "expanded" percentiles [3]: alpha/2 becomes Phi(-sqrt(n/(n-1)) t(1-alpha/2, n-1)), which
  makes up for the plain percentiles being too narrow in small samples. Chosen by simulation: 1000
  samples each of n = 5, 6, 7, 8, 10, 15, 20, 30 from normal, t with 3 degrees, contaminated, skewed
  and three-peaked noise. The nominal 95 % interval held the truth in 86.0 … 97.6 % (plain
  percentiles; worst at n = 7), 86.0 … 95.4 % (BCa; its jackknife does not suit a median) and
  93.1 … 99.2 % (expanded) of them. tests/bench/test_statistics.py repeats a part of it.

Fewer than five pairs cannot give a 95 % interval of a median at all (of n pairs all lie on the same
side of it with probability 2/2^n): then the interval is everything, and no claim is made.

[1] Efron, Tibshirani: An Introduction to the Bootstrap (1993), chapters 6 and 13.
[2] Maritz, Jarrett: A note on estimating the variance of the sample median (1978).
[3] Hesterberg: What Teachers Should Know About the Bootstrap (2015), section 5.3.
[4] Kalibera, Jones: Rigorous Benchmarking in Reasonable Time (2013): repeats at each level, ratios.
[5] Fleming, Wallace: How not to lie with statistics (1986): the geometric mean of ratios.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats  # type: ignore[import-untyped,unused-ignore]

LEVEL = 0.95  # of every interval
FEWEST_PAIRS = 5  # below it nothing is claimed
ENOUGH_PAIRS = 10  # with so many a row is known as well as its noise lets it be
NARROW = 0.03  # a row whose interval is within ± this needs no more rounds than FEWEST_PAIRS
FEWEST_WORKLOADS = 5  # below it a mean speaks of its own rows only
RESAMPLES = 2000  # of a geometric mean; the Monte Carlo error of its ends is 1.5 % of its width
SEED = 20130620

Floats = NDArray[np.float64]


class Verdict(StrEnum):
    """What an interval allows to be said of a figure of which less is better."""

    BETTER = "better"
    WORSE = "worse"
    SAME = (
        "no difference shown"  # which is not "equal": see the interval for what is still possible
    )
    TOO_FEW = "too few samples"


@dataclass(frozen=True)
class Estimate:
    """A median of `count` samples in their own unit, with its interval (0 … inf if too few)."""

    median: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Ratio:
    """One thing over another: below 1 the first one has less. Interval 0 … inf if too few pairs.

    `pairs` is the number of rounds that have both; of an unpaired ratio, the samples of the smaller
    side.
    """

    median: float
    low: float
    high: float
    pairs: int

    @property
    def claims(self) -> bool:
        """Whether there are enough pairs for an interval."""
        return self.pairs >= FEWEST_PAIRS

    @property
    def half_width(self) -> float:
        """Half the interval, as a share: 0.02 means about ±2 %."""
        return math.sqrt(self.high / self.low) - 1 if self.low > 0 else math.inf


@dataclass(frozen=True)
class Mean:
    """A geometric mean of ratios over `rows` cells of `workloads` workloads.

    With `beyond` the interval also speaks of other workloads of this kind, because workloads were
    drawn anew as well as samples; without, it speaks of these rows, and only measurement noise is
    in it.
    """

    mean: float
    low: float
    high: float
    rows: int
    workloads: int
    beyond: bool


@dataclass(frozen=True)
class Noise:
    """The same allocator against itself: what one cell (or all) shows where nothing differs.

    `typical` is the median of |ratio - 1| of single pairs (in logarithms); `floor` is the end of the
    A/A interval that lies further from 1. Both are shares: 0.02 is 2 %. `floor` is what a
    difference must exceed: it holds the luck of this many pairs, and any bias between first and
    second runs that the bootstrap of one ratio cannot see.
    """

    ratio: Ratio
    typical: float
    floor: float


def median(values: ArrayLike) -> float:
    """The median. At least one value."""
    return float(np.median(np.asarray(values, dtype=float)))


# --- the bootstrap distribution of a median ------------------------------------------------------


@functools.lru_cache(maxsize=256)
def _weights(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """How often a resample of `count` sorted values has its middle between values i and j.

    Odd counts have one middle value: it is at most value i when at least half of the draws are
    (binomial). Even counts have two: i < j are they when exactly half of the draws are at most i,
    with i among them, and the others at least j, with j among them; what is left is i = j.
    """
    upto = np.arange(count + 1) / count
    half = (count + 1) // 2
    single = np.diff(stats.binom.sf(half - 1, count, upto))  # the half-th value is value i
    if count % 2:
        index = np.arange(count)
        return index, index, single
    i, j = np.triu_indices(count)
    lower = upto[i + 1] ** half - upto[i] ** half
    upper = (1 - upto[j]) ** half - (1 - upto[j + 1]) ** half
    both = np.where(i < j, math.comb(count, half) * lower * upper, 0.0)
    both[i == j] = single - np.bincount(i, both, count)
    return i, j, np.clip(both, 0.0, None)


def _distribution(logs: Floats) -> tuple[Floats, Floats]:
    """The medians that resamples can have, ascending, and the probability of each."""
    ordered = np.sort(logs)
    i, j, weights = _weights(len(logs))
    middles = (ordered[i] + ordered[j]) / 2
    order = np.argsort(middles, kind="stable")
    return middles[order], weights[order] / weights.sum()


@functools.lru_cache(maxsize=256)
def _tail(count: int, level: float) -> float:
    """The expanded percentile [3] of each end."""
    reach = stats.t.ppf((1 + level) / 2, count - 1) * math.sqrt(count / (count - 1))
    return float(stats.norm.cdf(-reach))


def _ends(values: Floats, weights: Floats, tail: float) -> tuple[float, float]:
    """The quantiles `tail` and 1 - `tail` of a discrete distribution, values ascending."""
    summed = np.cumsum(weights)
    low = int(np.searchsorted(summed, tail))
    high = int(np.searchsorted(summed, 1 - tail))
    return float(values[low]), float(values[min(high, len(values) - 1)])


def _interval(logs: Floats, level: float = LEVEL) -> tuple[float, float]:
    if len(logs) < FEWEST_PAIRS:
        return -math.inf, math.inf
    return _ends(*_distribution(logs), _tail(len(logs), level))


# --- estimates and ratios ------------------------------------------------------------------------


def estimate(values: ArrayLike) -> Estimate:
    """The median of one allocator's samples, with its interval. At least one value, none below 0."""
    samples = np.asarray(values, dtype=float)
    low, high = _interval(samples)
    return Estimate(median(samples), max(low, 0.0), high, len(samples))


def paired_ratio(ours: ArrayLike, others: ArrayLike) -> Ratio:
    """The median of ours[k] / others[k], which were measured in the same round [4]. All above 0.

    What slows a whole round slows both and cancels out.
    """
    return ratio_of_logs(np.log(np.asarray(ours, float)) - np.log(np.asarray(others, float)))


def ratio_of_logs(logs: ArrayLike) -> Ratio:
    """The same from logarithms of paired ratios. At least one."""
    values = np.asarray(logs, dtype=float)
    low, high = _interval(values)
    return Ratio(math.exp(np.median(values)), math.exp(low), math.exp(high), len(values))


def unpaired_ratio(ours: ArrayLike, others: ArrayLike) -> Ratio:
    """median(ours) / median(others) from logarithms of two runs that have no rounds in common.

    The two bootstrap distributions are independent, so that of the difference is every value of one
    with every value of the other.
    """
    mine, theirs = np.asarray(ours, float), np.asarray(others, float)
    centre = math.exp(np.median(mine) - np.median(theirs))
    fewer = min(len(mine), len(theirs))
    if fewer < FEWEST_PAIRS:
        return Ratio(centre, 0.0, math.inf, fewer)
    my_values, my_weights = _distribution(mine)
    their_values, their_weights = _distribution(theirs)
    values = np.subtract.outer(my_values, their_values).ravel()
    weights = np.multiply.outer(my_weights, their_weights).ravel()
    order = np.argsort(values, kind="stable")
    low, high = _ends(values[order], weights[order], _tail(fewer, LEVEL))
    return Ratio(centre, math.exp(low), math.exp(high), fewer)


def verdict(ratio: Ratio, floor: float = 0.0) -> Verdict:
    """What may be said: a difference is shown when the interval excludes 1 and it is above the floor.

    `floor` (0.02 is 2 %) is the noise floor of the cell: a difference no larger than what the A/A
    pair may differ by is not shown, however narrow its interval.
    """
    if not ratio.claims:
        return Verdict.TOO_FEW
    return _judge(ratio.median, ratio.low, ratio.high, floor)


def verdict_of_mean(mean: Mean, floor: float = 0.0) -> Verdict:
    """The same of a geometric mean; `floor` is that of the A/A pairs' geometric mean."""
    if math.isinf(mean.high):
        return Verdict.TOO_FEW
    return _judge(mean.mean, mean.low, mean.high, floor)


def _judge(centre: float, low: float, high: float, floor: float) -> Verdict:
    above_floor = abs(math.log(centre)) > math.log1p(floor)
    if low <= 1 <= high or not above_floor:
        return Verdict.SAME
    return Verdict.BETTER if high < 1 else Verdict.WORSE


def narrow_enough(ratio: Ratio, target: float) -> bool:
    """Whether more rounds are not needed: the interval is at most ± `target` (0.02 is 2 %).

    Width decides, never the verdict: who repeats until a difference shows will see one in the end.
    """
    return ratio.claims and ratio.half_width <= target


def enough_rounds(ratio: Ratio) -> bool:
    """Whether a row may be called won or lost: ENOUGH_PAIRS rounds, or fewer whose interval is narrow.

    A wide interval of few rounds that happens to exclude 1 is what luck makes most easily. Width and
    number decide here, never the verdict, as in narrow_enough.
    """
    return ratio.pairs >= ENOUGH_PAIRS or narrow_enough(ratio, NARROW)


def noise(logs: ArrayLike) -> Noise:
    """The noise of one cell, from logarithms of second over first runs of the same round."""
    values = np.asarray(logs, dtype=float)
    ratio = ratio_of_logs(values)
    floor = max(ratio.high, 1 / ratio.low) - 1 if ratio.low > 0 else math.inf
    return Noise(ratio, math.expm1(np.median(np.abs(values))), floor)


def expected_misses(intervals: int) -> float:
    """How many of so many 95 % intervals do not hold the truth, on average, when all is well."""
    return (1 - LEVEL) * intervals


# --- means over cells ----------------------------------------------------------------------------


def geometric_mean(workloads: Mapping[str, Sequence[ArrayLike]], *, beyond: bool = True) -> Mean:
    """The geometric mean [5] of cells, each given by the logarithms of its rounds' ratios.

    `workloads` maps a workload to its cells. Every workload counts once: the points of a sweep are
    averaged first, or a sweep of twelve points would outweigh eleven programs. The interval is that
    of a two-level bootstrap [4]: workloads are drawn anew (unless not `beyond`, or fewer than
    FEWEST_WORKLOADS), and within each the rounds are, by way of the distributions above.
    """
    chance = np.random.default_rng(SEED)
    cells = [[_resampled(logs, chance) for logs in group] for group in workloads.values()]
    return _two_levels(cells, chance, beyond)


def geometric_mean_change(
    before: Mapping[str, Sequence[ArrayLike]], after: Mapping[str, Sequence[ArrayLike]]
) -> Mean:
    """The geometric mean of after / before over the same cells in two runs, of these rows only.

    Both map the same workloads to the same cells in the same order. Rounds of two runs are not
    pairs, so each run's medians are drawn by themselves.
    """
    chance = np.random.default_rng(SEED)
    cells = [
        [
            _resampled(new, chance).over(_resampled(old, chance))
            for new, old in zip(after[name], before[name], strict=True)
        ]
        for name in before
    ]
    return _two_levels(cells, chance, beyond=False)


@dataclass(frozen=True)
class _Resampled:
    """A cell: its median, RESAMPLES medians of resamples, and how many rounds they are of."""

    median: float
    draws: Floats
    count: int

    def over(self, other: _Resampled) -> _Resampled:
        fewer = min(self.count, other.count)
        return _Resampled(self.median - other.median, self.draws - other.draws, fewer)


def _resampled(logs: ArrayLike, chance: np.random.Generator) -> _Resampled:
    values = np.asarray(logs, dtype=float)
    middles, weights = _distribution(values)
    draws = chance.choice(middles, size=RESAMPLES, p=weights)
    return _Resampled(median(values), draws, len(values))


def _two_levels(
    cells: Sequence[Sequence[_Resampled]], chance: np.random.Generator, beyond: bool
) -> Mean:
    """The mean of `cells`, grouped by workload, with its interval; see geometric_mean."""
    counts = [cell.count for group in cells for cell in group]
    centre = math.exp(np.mean([np.mean([cell.median for cell in group]) for group in cells]))
    beyond = beyond and len(cells) >= FEWEST_WORKLOADS
    if not beyond and min(counts) < FEWEST_PAIRS:
        return Mean(centre, 0.0, math.inf, len(counts), len(cells), False)
    draws = np.array([np.mean([cell.draws for cell in group], axis=0) for group in cells])
    if beyond:
        which = chance.integers(len(cells), size=(len(cells), RESAMPLES))
        means = draws[which, chance.integers(RESAMPLES, size=which.shape)].mean(axis=0)
        tail = _tail(len(cells), LEVEL)
    else:
        means = draws.mean(axis=0)
        tail = _tail(sum(counts) - len(counts) + 1, LEVEL)  # as one sample of all the freedom
    low, high = (math.exp(end) for end in np.quantile(means, (tail, 1 - tail)))
    return Mean(centre, low, high, len(counts), len(cells), beyond)


def frontier(points: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """The names that no other beats in both coordinates (less is better), by the first one."""
    best = math.inf
    kept = []
    for name, (_, second) in sorted(points.items(), key=lambda item: item[1]):
        if second < best:
            kept.append(name)
            best = second
    return tuple(kept)


def percentiles(counts: Iterable[tuple[float, int]], wanted: Sequence[float]) -> tuple[float, ...]:
    """Percentiles (each 0 … 100) of a histogram given as [value, count]: the nearest-rank value.

    With fewer calls than a percentile needs (p99.99 of 500 calls) this is the largest value. An
    empty histogram has none: nan.
    """
    ordered = sorted(counts)
    totals = list(itertools.accumulate(count for _, count in ordered))
    if not totals or not totals[-1]:
        return tuple(math.nan for _ in wanted)
    ranks = [max(1, math.ceil(share / 100 * totals[-1] - 1e-9)) for share in wanted]
    return tuple(ordered[int(np.searchsorted(totals, rank))][0] for rank in ranks)
