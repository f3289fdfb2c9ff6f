#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rounds: order, pairs, when a row is done, what a failure and an interruption leave behind.

No process runs here: sample.run is replaced by one that knows each allocator's true time.
"""

from __future__ import annotations

import random
import sys
import unittest
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cli"))

from brimful.bench import catalog, engine  # noqa: E402
from brimful.bench.model import (  # noqa: E402
    Allocator,
    Cell,
    Contention,
    Curve,
    Result,
    Sample,
    Status,
)

PRESET = replace(
    catalog.PRESETS["quick"], budget_s=1000, target=0.02, least_rounds=5, most_rounds=12, curves=1
)
ALLOCATORS = (
    Allocator("glibc"),
    Allocator("rival", library="/r.so"),
    Allocator("brimful", library="/b.so", ours=True),
)


class FakeRuns:
    """Stands for sample.run; `noise` is the spread of its times, `faults` what fails where."""

    def __init__(self, noise: float = 0.0, faults: dict[str, Status] | None = None) -> None:
        self.noise = noise
        self.faults = faults or {}
        self.calls: list[tuple[str, str, int, bool, int | None]] = []
        self.chance = random.Random(7)
        self.stop_after = 10**9

    def __call__(
        self,
        cell: Cell,
        allocator: Allocator,
        number: int,
        *,
        timeout_s: float,
        cpus: str | None = None,
        again: bool = False,
        sample_ms: int | None = None,
    ) -> tuple[Sample, Curve | None, list[Any]]:
        self.calls.append((cell.name, allocator.name, number, again, sample_ms))
        if len(self.calls) > self.stop_after:
            raise KeyboardInterrupt
        status = self.faults.get(allocator.name, Status.OK)
        if status is not Status.OK:
            return Sample(cell.name, allocator.name, number, status, "said why"), None, []
        true = {"glibc": 1.0, "rival": 0.8, "brimful": 0.7}[allocator.name]
        seconds = true * (1 + self.noise * self.chance.uniform(-1, 1))
        metrics = {"seconds": seconds, "peak_rss_kib": 1000.0}
        curve = None
        if sample_ms is not None:
            metrics["mean_rss_kib"] = 500.0
            curve = Curve(cell.name, allocator.name, (0.0,), (1.0,), (1.0,), (0.0,))
        taken = Sample(cell.name, allocator.name, number, status, again=again, metrics=metrics)
        return taken, curve, []


def fake_counters(cell: Cell, allocator: Allocator, *, timeout_s: float) -> Contention:
    return Contention(cell.name, allocator.name, operations=timeout_s)


def work(name: str, **more: Any) -> catalog.Work:
    return catalog.Work(Cell(name, name, "single", command=("true",)), 10, **more)


def run(
    runs: FakeRuns,
    works: list[catalog.Work],
    preset: catalog.Preset = PRESET,
    allocators: tuple[Allocator, ...] = ALLOCATORS,
) -> Result:
    result = Result({}, {}, list(allocators), [one.cell for one in works])
    maker = engine.Engine(result, works, preset, "glibc", 1, lambda step: None)
    with (
        mock.patch("brimful.bench.sample.run", runs),
        mock.patch("brimful.bench.sample.lock_counters", fake_counters),
    ):
        try:
            maker.run()
        except KeyboardInterrupt:
            pass
    return result


class Rounds(unittest.TestCase):
    def test_each_round_has_everybody_once_and_the_baseline_twice(self) -> None:
        result = run(FakeRuns(), [work("x"), work("y")])
        seen = Counter((s.cell, s.allocator, s.round, s.again) for s in result.samples)
        self.assertEqual(set(seen.values()), {1})
        for cell in "xy":
            for number in range(5):
                for name in ("glibc", "rival", "brimful"):
                    self.assertEqual(seen[cell, name, number, False], 1)
                self.assertEqual(seen[cell, "glibc", number, True], 1)
        self.assertTrue(result.finished)

    def test_the_first_visit_of_a_row_begins_with_a_run_that_is_not_recorded(self) -> None:
        runs = FakeRuns()
        result = run(runs, [work("x")])
        self.assertEqual(len(runs.calls), len(result.samples) + 1)

    def test_the_order_changes_from_round_to_round(self) -> None:
        runs = FakeRuns(noise=0.5)
        run(runs, [work("x")])
        orders: dict[int, list[str]] = {}
        for _, allocator, number, again, _ in runs.calls[1:]:
            orders.setdefault(number, []).append(allocator + "2" * again)
        self.assertGreater(len({tuple(order) for order in orders.values()}), 3)

    def test_a_quiet_row_is_done_early_and_a_noisy_one_goes_on(self) -> None:
        quiet = run(FakeRuns(noise=0.001), [work("x")])
        noisy = run(FakeRuns(noise=0.5), [work("x")])
        self.assertEqual(max(s.round for s in quiet.samples), PRESET.least_rounds - 1)
        self.assertEqual(max(s.round for s in noisy.samples), PRESET.most_rounds - 1)

    def test_a_spent_budget_ends_the_rounds_and_the_result_says_so(self) -> None:
        result = run(FakeRuns(), [work("x")], replace(PRESET, budget_s=1e-9))
        self.assertFalse(result.finished)

    def test_an_interruption_leaves_what_was_measured(self) -> None:
        runs = FakeRuns(noise=0.5)
        runs.stop_after = 10
        result = run(runs, [work("x")])
        self.assertEqual(len(result.samples), 9)
        self.assertFalse(result.finished)


class Failures(unittest.TestCase):
    def test_an_allocator_that_fails_is_not_run_again_in_that_row(self) -> None:
        runs = FakeRuns(faults={"rival": Status.CRASHED})
        result = run(runs, [work("x"), work("y")])
        failed = [s for s in result.samples if s.allocator == "rival"]
        self.assertEqual([s.status for s in failed], [Status.CRASHED] * 2)
        self.assertEqual({s.cell for s in failed}, {"x", "y"})
        self.assertEqual([s.reason for s in failed], ["said why"] * 2)

    def test_a_row_where_all_fail_ends(self) -> None:
        every = dict.fromkeys(("glibc", "rival", "brimful"), Status.TIMED_OUT)
        result = run(FakeRuns(faults=every), [work("x")])
        self.assertEqual({s.status for s in result.samples}, {Status.TIMED_OUT})
        self.assertLessEqual(len(result.samples), 4)

    def test_what_is_missing_is_declared_in_every_row(self) -> None:
        absent = Allocator("absent", missing="cannot be built")
        runs = FakeRuns()
        result = run(runs, [work("x"), work("y")], allocators=(*ALLOCATORS, absent))
        declared = [s for s in result.samples if s.allocator == "absent"]
        self.assertEqual(
            [(s.cell, s.status) for s in declared], [("x", "missing"), ("y", "missing")]
        )
        self.assertNotIn("absent", {call[1] for call in runs.calls})

    def test_a_program_that_is_not_there_is_declared_for_every_allocator(self) -> None:
        gone = catalog.Work(Cell("z", "z", "program", missing="not installed"))
        runs = FakeRuns()
        result = run(runs, [gone])
        self.assertEqual(runs.calls, [])
        self.assertEqual({s.status for s in result.samples}, {Status.MISSING})
        self.assertEqual(len(result.samples), len(ALLOCATORS))


class MemoryOverTime(unittest.TestCase):
    def test_it_comes_from_runs_of_its_own_that_give_no_times(self) -> None:
        result = run(FakeRuns(), [work("x", memory=True)])
        own = [s for s in result.samples if "mean_rss_kib" in s.metrics]
        self.assertEqual({s.allocator for s in own}, {"glibc", "rival", "brimful"})
        self.assertTrue(all(set(s.metrics) == {"mean_rss_kib"} for s in own))
        self.assertEqual({c.allocator for c in result.curves}, {"glibc", "rival", "brimful"})

    def test_a_row_about_memory_is_looked_at_in_its_rounds_and_needs_no_more(self) -> None:
        about = Cell("m", "m", "memory", command=("true",), figure="resident_mib")
        runs = FakeRuns(noise=0.5)
        result = run(runs, [catalog.Work(about, 10, memory=True)])
        self.assertTrue(all(call[4] for call in runs.calls))
        self.assertEqual(max(s.round for s in result.samples), PRESET.least_rounds - 1)
        self.assertEqual(len(result.curves), 3)

    def test_a_figure_of_0_does_not_end_the_run(self) -> None:
        about = Cell("m", "m", "memory", command=("true",), figure="growth_percent")
        runs = FakeRuns()
        with mock.patch.object(FakeRuns, "__call__", _nothing_grew):
            result = run(runs, [catalog.Work(about, 10)])
        self.assertEqual(max(s.round for s in result.samples), PRESET.least_rounds - 1)
        self.assertTrue(result.finished)

    def test_a_row_with_fewer_rounds_is_finished_after_those(self) -> None:
        result = run(FakeRuns(noise=0.5), [work("x", rounds=2)])
        self.assertEqual(max(s.round for s in result.samples), 1)
        self.assertTrue(result.finished)


def _nothing_grew(
    self: FakeRuns, cell: Cell, allocator: Allocator, number: int, **more: Any
) -> tuple[Sample, None, list[Any]]:
    metrics = {"seconds": 0.0, "peak_rss_kib": 1000.0}
    again = bool(more.get("again"))
    return (
        Sample(cell.name, allocator.name, number, Status.OK, again=again, metrics=metrics),
        None,
        [],
    )


class LockCounters(unittest.TestCase):
    preset = replace(PRESET, contention=3)

    def test_only_ours_are_asked_and_only_in_our_workloads(self) -> None:
        program = catalog.Work(Cell("p", "p", "program", command=("true",)), 10)
        result = run(FakeRuns(), [work("x"), program], self.preset)
        asked = [(one.cell, one.allocator) for one in result.contention]
        self.assertEqual(asked, [("x", "brimful")] * 3)

    def test_a_long_row_is_asked_once(self) -> None:
        result = run(FakeRuns(), [work("x", rounds=2)], self.preset)
        self.assertEqual(len(result.contention), 1)

    def test_who_failed_in_a_row_is_not_asked_there(self) -> None:
        faults = {"brimful": Status.CRASHED}
        self.assertEqual(run(FakeRuns(faults=faults), [work("x")], self.preset).contention, [])

    def test_a_spent_budget_leaves_them_out_and_the_result_says_so(self) -> None:
        result = run(FakeRuns(), [work("x")], replace(self.preset, budget_s=1e-9))
        self.assertEqual(result.contention, [])
        self.assertFalse(result.finished)


if __name__ == "__main__":
    unittest.main()
