#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The CPU time that the study `redis` shows: of rounds that have both allocators, and of good runs only."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "cli")]

from brimful.bench.model import Allocator, Cell, Result, Sample, Status  # noqa: E402
from studies.redis import study  # noqa: E402


def sample(allocator: str, number: int, cpu_s: float, status: Status = Status.OK) -> Sample:
    metrics = {"user_s": cpu_s - 0.5, "system_s": 0.5}
    return Sample("row", allocator, number, status, metrics=metrics)


class CpuTime(unittest.TestCase):
    def shown(self, *samples: Sample) -> str:
        allocators = [
            Allocator("glibc"),
            Allocator("brimful"),
            Allocator("mesh", missing="nowhere"),
        ]
        cells = [Cell("row", "row", "program")]
        result = Result({}, {"baseline": "glibc"}, allocators, cells, list(samples))
        return "\n".join(study.cpu_table(result))

    def test_is_compared_within_a_round(self) -> None:
        pairs = [(number, 1.0 + number, 2 * (1.0 + number)) for number in range(6)]
        told = self.shown(
            *(sample("glibc", number, base) for number, base, _ in pairs),
            *(sample("brimful", number, ours) for number, _, ours in reversed(pairs)),
            sample("glibc", 6, 9.0),
        )
        self.assertIn("| row | 4.00 s | 2.000 (2.00–2.00) | 7 |", told)
        self.assertNotIn("mesh", told)

    def test_of_few_rounds_has_no_interval(self) -> None:
        told = self.shown(sample("glibc", 0, 1.0), sample("brimful", 0, 1.5))
        self.assertIn("| row | 1.00 s | 1.500 (too few rounds) | 1 |", told)

    def test_of_a_run_that_failed_is_none(self) -> None:
        told = self.shown(sample("glibc", 0, 1.0), sample("brimful", 0, 1.0, Status.CRASHED))
        self.assertIn("| row | 1.00 s | failed | 1 |", told)


if __name__ == "__main__":
    unittest.main()
