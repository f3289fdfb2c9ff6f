#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The statistics give known answers on known data, and their intervals hold what they promise."""

from __future__ import annotations

import math
import sys
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cli"))

from brimful.bench import statistics
from brimful.bench.statistics import Ratio, Verdict

# Efron and Tibshirani (1993), table 2.1: survival of 16 mice, in days.
MICE_TREATED = (94.0, 197, 16, 38, 99, 141, 23)


def known_deviation(values: tuple[float, ...]) -> float:
    """The standard deviation of the bootstrap distribution of the median."""
    middles, weights = map(np.array, statistics._distribution(values))
    mean = float(middles @ weights)
    return math.sqrt(float((middles - mean) ** 2 @ weights))


class TheBootstrapOfTheMedian(unittest.TestCase):
    def test_it_gives_the_published_standard_error_of_the_mouse_data(self) -> None:
        # Table 2.2 there, row of the median, for infinitely many resamples of the treated mice.
        self.assertAlmostEqual(known_deviation(MICE_TREATED), 37.83, delta=0.005)

    def test_it_is_what_resampling_approaches_for_odd_and_even_counts(self) -> None:
        chance = np.random.default_rng(1)
        for count in (5, 6, 9, 12):
            data = chance.normal(size=count)
            drawn = np.median(chance.choice(data, (40000, count)), axis=1)
            middles, weights = map(np.array, statistics._distribution(data))
            self.assertAlmostEqual(float(weights.sum()), 1.0, places=12)
            for point in np.quantile(data, (0.3, 0.5, 0.7)):
                exact = float(weights[middles <= point].sum())
                self.assertAlmostEqual(exact, float(np.mean(drawn <= point)), delta=0.01)

    def test_the_same_data_give_the_same_interval(self) -> None:
        logs = np.random.default_rng(3).normal(size=10)
        self.assertEqual(statistics.ratio_of_logs(logs), statistics.ratio_of_logs(logs))

    def test_five_pairs_reach_from_the_smallest_to_the_largest(self) -> None:
        ratio = statistics.paired_ratio([2, 3, 4, 5, 6], [1, 1, 1, 1, 1])
        for got, known in zip((ratio.low, ratio.median, ratio.high), (2, 4, 6), strict=True):
            self.assertAlmostEqual(got, known)


class APairedRatio(unittest.TestCase):
    def test_drift_of_the_machine_cancels_out(self) -> None:
        drift = np.array([1.0, 1.7, 0.6, 3.0, 1.1, 0.9])
        ratio = statistics.paired_ratio(0.8 * drift, drift)
        for value in (ratio.low, ratio.median, ratio.high):
            self.assertAlmostEqual(value, 0.8)

    def test_turning_it_round_gives_the_reciprocal(self) -> None:
        chance = np.random.default_rng(5)
        one, other = chance.uniform(1, 2, 12), chance.uniform(1, 2, 12)
        there, back = statistics.paired_ratio(one, other), statistics.paired_ratio(other, one)
        self.assertAlmostEqual(there.median * back.median, 1)
        self.assertAlmostEqual(there.low * back.high, 1)

    def test_one_wild_sample_does_not_move_it(self) -> None:
        calm = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99]
        wild = calm[:-1] + [50.0]
        ratio = statistics.paired_ratio(wild, [1.0] * 9)
        self.assertAlmostEqual(ratio.median, 1.0, delta=0.011)
        self.assertLess(ratio.high, 1.03)

    def test_the_interval_holds_the_truth_as_often_as_it_says(self) -> None:
        # 200 data sets each; of 200 at 95 %, fewer than 176 (88 %) happens once in 10,000 tries.
        chance = np.random.default_rng(11)
        noises: dict[str, Callable[[int], Any]] = {
            "normal": lambda n: chance.normal(0, 0.05, n),
            "heavy tails": lambda n: 0.05 * chance.standard_t(3, n),
            "skewed": lambda n: 0.05 * (chance.exponential(1, n) - math.log(2)),
        }
        for name, noise in noises.items():
            for count in (7, 10, 20):
                ratios = [
                    statistics.ratio_of_logs(math.log(0.9) + noise(count)) for _ in range(200)
                ]
                held = sum(ratio.low <= 0.9 <= ratio.high for ratio in ratios)
                self.assertGreaterEqual(held, 176, f"{name}, {count} pairs")
                self.assertLess(np.mean([r.half_width for r in ratios]), 0.12, name)

    def test_unpaired_intervals_hold_the_truth_too(self) -> None:
        chance = np.random.default_rng(12)
        held = 0
        for _ in range(200):
            one, other = chance.normal(0.1, 0.05, 10), chance.normal(0, 0.05, 10)
            ratio = statistics.unpaired_ratio(one.tolist(), other.tolist())
            held += ratio.low <= math.exp(0.1) <= ratio.high
            self.assertLess(ratio.high / ratio.low, 1.3)
        self.assertGreaterEqual(held, 176)


class AVerdict(unittest.TestCase):
    def test_it_claims_nothing_of_fewer_than_five_pairs(self) -> None:
        ratio = statistics.paired_ratio([1, 1, 1, 1], [2, 2, 2, 2])
        self.assertEqual(statistics.verdict(ratio), Verdict.TOO_FEW)
        self.assertEqual((ratio.low, ratio.high), (0, math.inf))
        self.assertFalse(statistics.narrow_enough(ratio, 1e9))

    def test_it_claims_a_difference_only_if_the_interval_excludes_none(self) -> None:
        self.assertEqual(statistics.verdict(Ratio(0.9, 0.85, 0.95, 10)), Verdict.BETTER)
        self.assertEqual(statistics.verdict(Ratio(1.1, 1.05, 1.15, 10)), Verdict.WORSE)
        self.assertEqual(statistics.verdict(Ratio(0.9, 0.85, 1.01, 10)), Verdict.SAME)

    def test_it_does_not_claim_what_the_noise_floor_covers(self) -> None:
        ratio = Ratio(1.02, 1.01, 1.03, 10)
        self.assertEqual(statistics.verdict(ratio, floor=0.03), Verdict.SAME)
        self.assertEqual(statistics.verdict(ratio, floor=0.015), Verdict.WORSE)
        # The floor is the same share in both directions: 1/1.02 is as far as 1.02.
        self.assertEqual(statistics.verdict(Ratio(1 / 1.02, 0.97, 0.99, 9), 0.0201), Verdict.SAME)

    def test_an_allocator_against_itself_shows_no_difference(self) -> None:
        chance = np.random.default_rng(17)
        verdicts = []
        for _ in range(400):
            floor = statistics.noise(chance.normal(0, 0.05, 10)).floor
            ratio = statistics.ratio_of_logs(chance.normal(0, 0.05, 10))
            verdicts.append(statistics.verdict(ratio, floor))
        self.assertGreaterEqual(verdicts.count(Verdict.SAME), 0.95 * len(verdicts))

    def test_a_difference_well_above_the_noise_is_shown(self) -> None:
        chance = np.random.default_rng(18)
        shown = 0
        for _ in range(200):
            floor = statistics.noise(chance.normal(0, 0.02, 10)).floor
            ratio = statistics.ratio_of_logs(chance.normal(math.log(0.9), 0.02, 10))
            shown += statistics.verdict(ratio, floor) is Verdict.BETTER
        self.assertGreaterEqual(shown, 195)

    def test_more_rounds_are_needed_until_the_interval_is_narrow(self) -> None:
        self.assertFalse(statistics.narrow_enough(Ratio(1, 0.95, 1.05, 10), 0.02))
        self.assertTrue(statistics.narrow_enough(Ratio(1, 0.985, 1.015, 10), 0.02))


class TheNoiseFloor(unittest.TestCase):
    def test_it_is_the_far_end_of_the_interval_of_the_pair(self) -> None:
        found = statistics.noise(np.log([0.96, 0.98, 1.0, 1.01, 1.03]))
        self.assertAlmostEqual(found.floor, 1 / 0.96 - 1)
        self.assertAlmostEqual(found.typical, 1 / 0.98 - 1)

    def test_too_few_pairs_have_a_floor_that_nothing_exceeds(self) -> None:
        self.assertEqual(statistics.noise([0.0, 0.0, 0.0]).floor, math.inf)


class AGeometricMean(unittest.TestCase):
    def test_twice_and_half_cancel_out(self) -> None:
        mean = statistics.geometric_mean({"a": [np.log([2.0] * 5)], "b": [np.log([0.5] * 5)]})
        self.assertAlmostEqual(mean.mean, 1.0)

    def test_it_is_the_published_one(self) -> None:
        # Fleming and Wallace (1986), table I: processors R, M and Z; M over R and Z over R, cut
        # to two digits there.
        table = {"E": (417, 244, 134), "F": (83, 70, 70), "H": (66, 153, 135)}
        table |= {"I": (39449, 35527, 66000), "K": (772, 368, 369)}
        for column, known in ((1, 0.86), (2, 0.84)):
            logs = {name: [[math.log(row[column] / row[0])]] for name, row in table.items()}
            mean = statistics.geometric_mean(logs).mean
            self.assertEqual(math.floor(mean * 100) / 100, known)

    def test_a_sweep_counts_as_one_workload(self) -> None:
        cells = {"sweep": [np.zeros(5)] * 12, "program": [np.log([4.0] * 5)]}
        mean = statistics.geometric_mean(cells)
        self.assertAlmostEqual(mean.mean, 2.0)
        self.assertEqual((mean.rows, mean.workloads), (13, 2))

    def test_few_workloads_speak_only_of_themselves(self) -> None:
        chance = np.random.default_rng(2)
        cells = {str(k): [chance.normal(0, 0.02, 8)] for k in range(8)}
        self.assertTrue(statistics.geometric_mean(cells).beyond)
        few = {name: cells[name] for name in list(cells)[:4]}
        self.assertFalse(statistics.geometric_mean(few).beyond)

    def test_its_interval_holds_the_truth_of_other_workloads(self) -> None:
        chance = np.random.default_rng(21)
        held = 0
        for _ in range(200):
            truths = chance.normal(math.log(0.8), 0.2, 15)
            cells = {str(k): [chance.normal(truth, 0.03, 10)] for k, truth in enumerate(truths)}
            mean = statistics.geometric_mean(cells)
            held += mean.low <= 0.8 <= mean.high
            self.assertLess(mean.high / mean.low, 1.6)
        self.assertGreaterEqual(held, 176)

    def test_its_interval_holds_the_truth_of_the_same_rows(self) -> None:
        chance = np.random.default_rng(22)
        truths = np.linspace(-0.3, 0.3, 7)
        held = 0
        for _ in range(200):
            cells = {str(k): [chance.normal(truth, 0.03, 10)] for k, truth in enumerate(truths)}
            mean = statistics.geometric_mean(cells, beyond=False)
            held += mean.low <= 1 <= mean.high
            self.assertLess(mean.high / mean.low, 1.1)
        self.assertGreaterEqual(held, 176)

    def test_too_few_rounds_of_few_workloads_give_no_interval(self) -> None:
        mean = statistics.geometric_mean({"a": [[0.1, 0.2, 0.1]]})
        self.assertEqual(statistics.verdict_of_mean(mean), Verdict.TOO_FEW)


class TheRest(unittest.TestCase):
    def test_percentiles_of_a_histogram_are_nearest_ranks(self) -> None:
        counts = ((10.0, 50), (20.0, 49), (500.0, 1))
        self.assertEqual(statistics.percentiles(counts, (50, 51, 99, 99.9)), (10, 20, 20, 500))
        self.assertTrue(math.isnan(statistics.percentiles((), (50,))[0]))

    def test_the_frontier_leaves_out_whoever_is_beaten_in_both(self) -> None:
        points = {"fast": (1.0, 3.0), "beaten": (2.0, 3.5), "small": (3.0, 1.0), "mid": (2.0, 2.0)}
        self.assertEqual(statistics.frontier(points), ("fast", "mid", "small"))

    def test_one_interval_in_twenty_is_expected_to_miss(self) -> None:
        self.assertAlmostEqual(statistics.expected_misses(40), 2)


if __name__ == "__main__":
    unittest.main()
