#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The latency workload counts in HdrHistogram's own buckets, and percentiles are read as it reads them.

The oracle is the hdrhistogram package: every value that the workload prints has to be one of its
buckets, and percentiles of the counts have to be the same as from a histogram filled with them.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import unittest
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cli"))

from brimful.bench import catalog, statistics  # noqa: E402

LARGEST_NS = 1 << 34
DIGITS = 2
SMALL = replace(catalog.PRESETS["full"], scale=0.05)


class LatencyHistograms(unittest.TestCase):
    histograms: ClassVar[list[dict[str, Any]]]

    @classmethod
    def setUpClass(cls) -> None:
        work = next(work for work in catalog.works(SMALL) if work.cell.workload == "latency")
        catalog.compile_programs([work.cell])
        done = subprocess.run(
            work.cell.command, capture_output=True, text=True, timeout=60, check=True
        )
        cls.histograms = json.loads(done.stdout.splitlines()[-1])["histograms"]

    def test_there_is_one_for_each_operation_and_several_bands(self) -> None:
        self.assertEqual({h["operation"] for h in self.histograms}, {"malloc", "free", "realloc"})
        self.assertGreater(len({h["band"] for h in self.histograms}), 3)

    def test_every_value_is_a_bucket_of_hdrhistogram(self) -> None:
        oracle = HdrHistogram(1, LARGEST_NS, DIGITS)
        for histogram in self.histograms:
            for value, count in histogram["counts"]:
                self.assertGreater(count, 0)
                ends = (
                    oracle.get_lowest_equivalent_value(int(value)),
                    oracle.get_highest_equivalent_value(int(value)),
                )
                self.assertIn(int(value), ends)

    def test_percentiles_are_those_of_hdrhistogram(self) -> None:
        wanted = (50, 90, 99, 99.9, 100)
        for histogram in self.histograms:
            oracle = HdrHistogram(1, LARGEST_NS, DIGITS)
            for value, count in histogram["counts"]:
                oracle.record_value(int(value), int(count))
            found = statistics.percentiles(histogram["counts"], wanted)
            calls = sum(count for _, count in histogram["counts"])
            for percent, ours in zip(wanted, found, strict=True):
                theirs = oracle.get_value_at_percentile(percent)
                if _bucket(oracle, ours) == _bucket(oracle, theirs):
                    continue
                # The package rounds the rank, HdrHistogram for Java and we take the next whole one.
                below = sum(count for value, count in histogram["counts"] if value <= theirs)
                self.assertEqual(below, math.ceil(percent * calls / 100) - 1)


def _bucket(oracle: HdrHistogram, value: float) -> int:
    return int(oracle.get_lowest_equivalent_value(int(value)))


if __name__ == "__main__":
    unittest.main()
