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
[6] Abramowitz, Stegun: Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.

Everything about one cell is plain Python, because the first-run demo draws its conclusions here and
needs no package for it; numpy is imported by the means over many cells alone.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVEL = 0.95  # of every interval
FEWEST_PAIRS = 5  # below it nothing is claimed
ENOUGH_PAIRS = 10  # with so many a row is known as well as its noise lets it be
NARROW = 0.03  # a row whose interval is within ± this needs no more rounds than FEWEST_PAIRS
FEWEST_WORKLOADS = 5  # below it a mean speaks of its own rows only
RESAMPLES = 2000  # of a geometric mean; the Monte Carlo error of its ends is 1.5 % of its width
SEED = 20130620


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


def median(values: Iterable[float]) -> float:
    """The median. At least one value."""
    return float(statistics.median(values))


# --- the bootstrap distribution of a median ------------------------------------------------------


def _at_least(half: int, count: int, chance: float) -> float:
    """That at least `half` of `count` draws succeed (binomial)."""
    return math.fsum(
        math.comb(count, k) * chance**k * (1 - chance) ** (count - k)
        for k in range(half, count + 1)
    )


@functools.lru_cache(maxsize=256)
def _weights(count: int) -> tuple[tuple[int, int, float], ...]:
    """(i, j, how often a resample of `count` sorted values has its middle between values i and j).

    Odd counts have one middle value: it is at most value i when at least half of the draws are
    (binomial). Even counts have two: i < j are they when exactly half of the draws are at most i,
    with i among them, and the others at least j, with j among them; what is left is i = j.
    """
    upto = [i / count for i in range(count + 1)]
    half = (count + 1) // 2
    reached = [_at_least(half, count, share) for share in upto]
    single = [after - before for before, after in itertools.pairwise(reached)]
    if count % 2:
        return tuple((i, i, weight) for i, weight in enumerate(single))
    ways = math.comb(count, half)
    found = []
    for i in range(count):
        lower = upto[i + 1] ** half - upto[i] ** half
        apart = [
            ways * lower * ((1 - upto[j]) ** half - (1 - upto[j + 1]) ** half)
            for j in range(i + 1, count)
        ]
        found.append((i, i, max(0.0, single[i] - math.fsum(apart))))
        found += [(i, j, weight) for j, weight in enumerate(apart, i + 1)]
    return tuple(found)


def _distribution(logs: Iterable[float]) -> tuple[list[float], list[float]]:
    """The medians that resamples can have, ascending, and the probability of each."""
    ordered = sorted(logs)
    middles = [((ordered[i] + ordered[j]) / 2, weight) for i, j, weight in _weights(len(ordered))]
    middles.sort(key=lambda pair: pair[0])
    whole = math.fsum(weight for _, weight in middles)
    return [value for value, _ in middles], [weight / whole for _, weight in middles]


@functools.lru_cache(maxsize=256)
def _student(share: float, freedom: int) -> float:
    """The quantile `share` (above 1/2) of Student's t with so many degrees of freedom.

    The distribution has a closed form for whole degrees [6], whose inverse is found by halving.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        square = math.cos(angle) ** 2
        term = total = math.cos(angle) if freedom % 2 else 1.0
        for k in range(3 if freedom % 2 else 2, freedom, 2):
            term *= square * (k - 1) / k
            total += term
        total *= math.sin(angle)
        if freedom % 2:
            total = 2 / math.pi * (angle + (total if freedom > 1 else 0.0))
        if (1 + total) / 2 < share:
            low = angle
        else:
            high = angle
    return math.sqrt(freedom) * math.tan(low)


@functools.lru_cache(maxsize=256)
def _tail(count: int, level: float) -> float:
    """The expanded percentile [3] of each end."""
    reach = _student((1 + level) / 2, count - 1) * math.sqrt(count / (count - 1))
    return math.erfc(reach / math.sqrt(2)) / 2


def _ends(values: Sequence[float], weights: Iterable[float], tail: float) -> tuple[float, float]:
    """The quantiles `tail` and 1 - `tail` of a discrete distribution, values ascending."""
    summed = list(itertools.accumulate(weights))
    low, high = bisect_left(summed, tail), bisect_left(summed, 1 - tail)
    return values[low], values[min(high, len(values) - 1)]


def _interval(logs: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    if len(logs) < FEWEST_PAIRS:
        return -math.inf, math.inf
    return _ends(*_distribution(logs), _tail(len(logs), level))


# --- estimates and ratios ------------------------------------------------------------------------


def estimate(values: Iterable[float]) -> Estimate:
    """The median of one allocator's samples, with its interval. At least one value, none below 0."""
    samples = list(values)
    low, high = _interval(samples)
    return Estimate(median(samples), max(low, 0.0), high, len(samples))


def paired_ratio(ours: Iterable[float], others: Iterable[float]) -> Ratio:
    """The median of ours[k] / others[k], which were measured in the same round [4]. All above 0.

    What slows a whole round slows both and cancels out.
    """
    pairs = zip(ours, others, strict=True)
    return ratio_of_logs(math.log(mine) - math.log(other) for mine, other in pairs)


def ratio_of_logs(logs: Iterable[float]) -> Ratio:
    """The same from logarithms of paired ratios. At least one."""
    values = list(logs)
    low, high = _interval(values)
    return Ratio(math.exp(median(values)), math.exp(low), math.exp(high), len(values))


def unpaired_ratio(ours: Sequence[float], others: Sequence[float]) -> Ratio:
    """median(ours) / median(others) from logarithms of two runs that have no rounds in common.

    The two bootstrap distributions are independent, so that of the difference is every value of one
    with every value of the other.
    """
    centre = math.exp(median(ours) - median(others))
    fewer = min(len(ours), len(others))
    if fewer < FEWEST_PAIRS:
        return Ratio(centre, 0.0, math.inf, fewer)
    mine, theirs = (list(zip(*_distribution(side), strict=True)) for side in (ours, others))
    differences = sorted(
        ((a - b, p * q) for (a, p), (b, q) in itertools.product(mine, theirs)),
        key=lambda pair: pair[0],
    )
    values, weights = zip(*differences, strict=True)
    low, high = _ends(values, weights, _tail(fewer, LEVEL))
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


def noise(logs: Iterable[float]) -> Noise:
    """The noise of one cell, from logarithms of second over first runs of the same round."""
    values = list(logs)
    ratio = ratio_of_logs(values)
    floor = max(ratio.high, 1 / ratio.low) - 1 if ratio.low > 0 else math.inf
    return Noise(ratio, math.expm1(median(map(abs, values))), floor)


def expected_misses(intervals: int) -> float:
    """How many of so many 95 % intervals do not hold the truth, on average, when all is well."""
    return (1 - LEVEL) * intervals


# --- means over cells ----------------------------------------------------------------------------


def geometric_mean(
    workloads: Mapping[str, Sequence[Iterable[float]]], *, beyond: bool = True
) -> Mean:
    """The geometric mean [5] of cells, each given by the logarithms of its rounds' ratios.

    `workloads` maps a workload to its cells. Every workload counts once: the points of a sweep are
    averaged first, or a sweep of twelve points would outweigh eleven programs. The interval is that
    of a two-level bootstrap [4]: workloads are drawn anew (unless not `beyond`, or fewer than
    FEWEST_WORKLOADS), and within each the rounds are, by way of the distributions above.
    """
    import numpy as np

    chance = np.random.default_rng(SEED)
    cells = [[_resampled(logs, chance) for logs in group] for group in workloads.values()]
    return _two_levels(cells, chance, beyond)


def geometric_mean_change(
    before: Mapping[str, Sequence[Iterable[float]]], after: Mapping[str, Sequence[Iterable[float]]]
) -> Mean:
    """The geometric mean of after / before over the same cells in two runs, of these rows only.

    Both map the same workloads to the same cells in the same order. Rounds of two runs are not
    pairs, so each run's medians are drawn by themselves.
    """
    import numpy as np

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


def _resampled(logs: Iterable[float], chance: np.random.Generator) -> _Resampled:
    values = list(logs)
    middles, weights = _distribution(values)
    draws = chance.choice(middles, size=RESAMPLES, p=weights)
    return _Resampled(median(values), draws, len(values))


def _two_levels(
    cells: Sequence[Sequence[_Resampled]], chance: np.random.Generator, beyond: bool
) -> Mean:
    """The mean of `cells`, grouped by workload, with its interval; see geometric_mean."""
    import numpy as np

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
    return tuple(ordered[bisect_left(totals, rank)][0] for rank in ranks)
