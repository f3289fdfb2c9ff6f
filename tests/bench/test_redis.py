#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The study `redis`: rows are shortened in their requests only, and ratios are of rounds that have both."""

from __future__ import annotations

import contextlib
import io
import random
import sys
import unittest
from argparse import Namespace
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "cli")]

from brimful.bench import programs, sample  # noqa: E402
from brimful.bench.model import Allocator, Cell, Sample, Status  # noqa: E402
from brimful.bench.study import contenders  # noqa: E402
from brimful.bench.study.model import Data, Run  # noqa: E402
from brimful.bench.study.records import Record  # noqa: E402
from studies.redis import study  # noqa: E402


def taken(number: int, cpu_s: float) -> Data:
    return {"round": number, "cpu_s": cpu_s, "seconds": 3 * cpu_s}


class TheTables(unittest.TestCase):
    def shown(self, base: list[Data], ours: list[Data]) -> str:
        record = Record("redis", {}, {})
        record.allocators = [
            Allocator("glibc"),
            Allocator("brimful"),
            Allocator("mesh", missing="?"),
        ]
        record.results["rows"] = {"row": {"glibc": base, "brimful": ours}}
        return "\n".join(study.tables(record))

    def test_compare_within_a_round(self) -> None:
        times = [1.0 + number for number in range(7)]
        base = [taken(number, time) for number, time in enumerate(times)]
        ours = [taken(number, 2 * time) for number, time in enumerate(times)][:6]
        told = self.shown(base, random.Random(1).sample(ours, 6))
        self.assertIn("| row | 4.00 s | 2.000 (2.00–2.00) | 7 |", told)
        self.assertIn("| row | 12.00 s | 2.000 (2.00–2.00) | 7 |", told)
        self.assertNotIn("mesh", told)

    def test_give_no_interval_for_few_rounds(self) -> None:
        told = self.shown([taken(0, 1.0)], [taken(0, 1.5)])
        self.assertIn("| row | 1.00 s | 1.500 (few rounds) | 1 |", told)

    def test_say_of_what_never_ran_that_it_failed(self) -> None:
        self.assertIn("| row | 1.00 s | failed | 1 |", self.shown([taken(0, 1.0)], []))


class Measuring(unittest.TestCase):
    def test_shortens_the_requests_alone(self) -> None:
        cells = [cell for cell in programs.cells() if cell.name.startswith(study.ROWS)]
        self.assertGreaterEqual(len(cells), 3)
        for cell in cells:
            before, after = cell.command, study.shortened(cell, 10).command
            changed = [at for at, word in enumerate(before) if after[at] != word]
            self.assertEqual([before[at - 1] for at in changed], ["--requests"])
            self.assertEqual(int(after[changed[0]]), int(before[changed[0]]) // 10)

    def test_a_run_that_failed_is_named_and_no_figure(self) -> None:
        cell = Cell("redis-plain-x", "x", "program", command=("serve", "--requests", "100"))
        there = [Allocator("glibc"), Allocator("brimful")]

        def run(
            cell: Cell, allocator: Allocator, number: int, **_: object
        ) -> tuple[Sample, None, None]:
            good = allocator.name == "glibc"
            metrics = {"user_s": 1.0, "system_s": 0.5, "seconds": 2.0} if good else {}
            status = Status.OK if good else Status.CRASHED
            return (
                Sample(cell.name, allocator.name, number, status, "SIGSEGV", metrics=metrics),
                None,
                None,
            )

        record = Record("redis", {}, {})
        options = Namespace(rounds=2, part=10, seed=1, allocators="")
        with (
            mock.patch.object(programs, "cells", lambda: [cell]),
            mock.patch.object(contenders, "chosen", lambda _: there),
            mock.patch.object(sample, "run", run),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            study.measure(Run(study.STUDY, options, record))
        rows = record.results["rows"]["redis-plain-x"]
        self.assertEqual([one["cpu_s"] for one in rows["glibc"]], [1.5, 1.5])
        self.assertNotIn("brimful", rows)
        self.assertEqual(len(record.not_measured), 2)
        self.assertIn(
            "crashed: SIGSEGV", record.not_measured["redis-plain-x under brimful, round 1"]
        )


if __name__ == "__main__":
    unittest.main()
