#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The study service: what is made of a curve of resident memory and of the service's own words."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "cli")]

from studies.service import study  # noqa: E402

SAID = [
    {"part": "load", "at_s": 10.0},
    {"part": "rest", "at_s": 20.0, "requests": 50, "seconds": 10, "p50_ms": 1.0, "p99_ms": 2.0},
    {"part": "end", "at_s": 30.0},
]


def curve_of(before: float, peak: float, after: float) -> list[tuple[float, float]]:
    """Readings four times a second: steady, loaded, steady again."""
    times = [number / 4 for number in range(122)]
    return [(at, before if at <= 10 else peak if at <= 25 else after) for at in times]


class TestFigures(unittest.TestCase):
    def test_growth_is_from_before_the_load_to_the_end_of_the_rest(self) -> None:
        found = study.figures_of(curve_of(600, 2000, 850), SAID)
        self.assertEqual(found["before_mib"], 600)
        self.assertEqual(found["peak_mib"], 2000)
        self.assertEqual(found["growth_mib"], 250)
        self.assertEqual(found["requests_per_s"], 5)

    def test_a_single_reading_that_is_off_changes_nothing(self) -> None:
        curve = curve_of(600, 2000, 850)
        curve[-3] = (curve[-3][0], 5000)
        self.assertEqual(study.figures_of(curve, SAID)["after_mib"], 850)


class TestVerdict(unittest.TestCase):
    def verdict(self, ours: float) -> str:
        return study.verdict({"glibc": [{"growth_mib": 1000}], "brimful": [{"growth_mib": ours}]})

    def test_a_quarter_of_the_growth_of_glibc_is_the_goal(self) -> None:
        self.assertIn("met", self.verdict(250))
        self.assertIn("missed", self.verdict(251))


if __name__ == "__main__":
    unittest.main()
