#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page about threads that meet: goals met and missed, losses as such, and every gap with its reason."""

from __future__ import annotations

import sys
import unittest
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import fake_results
from fake_results import constructed, contention

from brimful.bench import allocators, concurrency
from brimful.bench.model import Allocator, Cell, Result, Status
from brimful.bench.summary import csv_rows, summarize

FRONT_ENDS = ("brimful", "brimful-percpu", "brimful-thread")


def page(result: Result) -> str:
    return concurrency.page(summarize(result))


def line(text: str, row: str) -> list[str]:
    """The fields of the first line of a table that begins with `row`."""
    found = next(one for one in text.splitlines() if one.startswith(f"| {row} |"))
    return [field.strip() for field in found.strip("|").split("|")]


def sweep(auto: float, percpu: float = 1.0, thread: float = 2.0) -> Result:
    times = {"brimful": auto, "brimful-percpu": percpu, "brimful-thread": thread, "glibc": 3.0}
    result = constructed({"s@2": times, "s@256": times}, ours=FRONT_ENDS)
    result.contention = [
        contention("s@2", "brimful", 4),  # in 4 million operations
        contention("s@256", "brimful", 4e4),
    ]
    return result


class Times(unittest.TestCase):
    def test_stand_against_the_best_rival_of_the_row(self) -> None:
        times = {"glibc": 3.0, "jemalloc": 2.0, "mimalloc": 1.0}
        memory = {"brimful": 900.0, "jemalloc": 1000.0, "mimalloc": 500.0, "glibc": 100.0}
        rows = {"won": {**times, "brimful": 0.5}, "lost": {**times, "brimful": 1.5}}
        said = page(constructed(rows, memory=dict.fromkeys(rows, memory)))
        won, lost = line(said, "won"), line(said, "lost")
        self.assertTrue(won[2].startswith("mimalloc "), won)
        self.assertRegex(won[3], r"^0\.(49|50)")
        self.assertEqual((won[4], lost[4]), ("faster", "**slower**"))
        self.assertRegex(won[5], r"^0\.(89|90)")  # of jemalloc's memory
        self.assertEqual(won[6], "no rival is as fast")
        self.assertRegex(lost[6], r"^1\.[78]\d* \*\*more\*\* \(mimalloc\)$")
        self.assertIn("faster in 1, slower in 1, no difference", said)

    def test_of_a_row_that_failed_are_the_reason(self) -> None:
        rows = {"a": {"glibc": 1.0, "brimful": 1.0}}
        failures = {("a", "brimful"): (Status.CRASHED, "it fell")}
        self.assertEqual(
            line(page(constructed(rows, failures=failures)), "a")[1], "crashed: it fell"
        )


class FrontEnds(unittest.TestCase):
    def row(self, result: Result, name: str) -> list[str]:
        return line(page(result).partition("`front_end:auto`")[2], name)

    def test_auto_within_5_percent_of_the_better_is_said_to_be(self) -> None:
        row = self.row(sweep(1.01), "s@2")
        self.assertEqual(row[-1], "yes")
        self.assertIn("(brimful-percpu)", row[-2])
        self.assertIn("(brimful-thread)", self.row(sweep(1.0, 2.0, 1.0), "s@256")[-2])

    def test_auto_beyond_it_is_said_to_miss(self) -> None:
        self.assertEqual(self.row(sweep(1.2), "s@2")[-1], "**no**")

    def test_a_run_without_them_has_no_such_table(self) -> None:
        result = constructed({"s@2": {"glibc": 1.0, "brimful": 1.0}})
        self.assertNotIn("front_end:auto", page(result))


class Figures(unittest.TestCase):
    def result(self, brimful: float) -> Result:
        result = constructed({"idle": {"glibc": 1.0, "brimful": 1.0}})
        figures = fake_results.PER_THREAD
        result.cells[0] = replace(result.cells[0], figure=figures[0].key, figures=figures)
        for place, sample in enumerate(result.samples):
            kib = brimful if sample.allocator == "brimful" else 143.0
            extra = {"idle_kib_per_thread": kib, "threads_started": 10000.0}
            metrics = sample.metrics | {"seconds": kib}
            result.samples[place] = replace(sample, extra=extra, metrics=metrics)
        return result

    def test_say_whether_a_goal_is_met(self) -> None:
        said = page(self.result(0.25))
        self.assertIn("(goal: below 1 KiB): 0.25 KiB, met.", said)
        self.assertEqual(line(said, "glibc"), ["glibc", "143 KiB ✗", "10,000"])
        self.assertIn("143 KiB, **missed**.", page(self.result(143.0)))

    def test_may_be_0(self) -> None:
        self.assertIn(": 0 KiB, met.", page(self.result(0.0)))

    def test_reach_the_table_of_all_figures_with_their_unit(self) -> None:
        rows = [row for row in csv_rows(self.result(0.25)) if row["allocator"] == "brimful"]
        found = {row["metric"]: row for row in rows}
        self.assertEqual(found["idle_kib_per_thread"]["unit"], "KiB")
        self.assertEqual(found["idle_kib_per_thread"]["median"], 0.25)
        self.assertEqual(found["threads_started"]["unit"], "count")
        self.assertEqual(found["other"]["unit"], "idle_kib_per_thread")

    def test_of_an_allocator_that_failed_are_the_reason(self) -> None:
        result = self.result(0.25)
        fake_results.fail(result, {("idle", "brimful"): (Status.TIMED_OUT, "no end")})
        self.assertIn("timeout: no end", page(result))


class Contention(unittest.TestCase):
    def test_is_held_against_its_goal_up_to_64_threads(self) -> None:
        said = page(sweep(1.0))
        self.assertIn("- s@2: 1, met (found taken and left: 0).", said)
        self.assertNotIn("- s@256:", said)
        result = sweep(1.0)
        result.contention.append(contention("s@2", "brimful", 4e6))
        result.contention.append(contention("s@2", "brimful", 4e6))
        self.assertIn("- s@2: 1,000,000, **missed**", page(result))

    def test_stands_beside_the_throughput_of_each_design(self) -> None:
        result = sweep(1.0)
        result.samples = [
            replace(sample, extra={"operations": 4e6, "timed_operations": 2e6})
            for sample in result.samples
        ]
        row = line(page(result).partition("Locks,")[2], "s@256")
        self.assertEqual(row[:4], ["s@256", "brimful", "10,000", "heap 10,000"])
        self.assertAlmostEqual(float(row[-1]), 2.0, delta=0.3)

    def test_that_was_not_counted_has_the_reason_in_its_place(self) -> None:
        result = sweep(1.0)
        result.contention[0] = replace(result.contention[0], missing="printed no lock counters")
        said = page(result)
        self.assertIn("- s@2: printed no lock counters.", said)
        self.assertEqual(line(said.partition("Locks,")[2], "s@2")[2], "printed no lock counters")
        self.assertIn("Everybody else: not counted by this allocator.", said)
        rows = {(r["allocator"], r["reason"]) for r in csv_rows(result) if r["cell"] == "s@2"}
        self.assertIn(("glibc", "not counted by this allocator"), rows)
        self.assertIn(("brimful", "printed no lock counters"), rows)
        self.assertIn(("brimful-thread", "no run for lock counters"), rows)


class TheAllocators(unittest.TestCase):
    here = (
        *(Allocator(name) for name in ("glibc", "jemalloc", "hardened")),
        *(Allocator(name, ours=True) for name in FRONT_ENDS),
        *(Allocator(name, ours=True) for name in allocators.STUDIES),
    )

    def test_for_study_take_part_only_where_they_are_named(self) -> None:
        for which in ("few", "main", "all", "threads"):
            names = {one.name for one in allocators.of_preset(self.here, which)}
            self.assertFalse(names & set(allocators.STUDIES), which)
        named = allocators.choose(self.here, "brimful,brimful-global-lock")
        self.assertEqual([one.name for one in named], ["brimful", "brimful-global-lock"])

    def test_of_each_front_end_take_part_where_threads_are_compared(self) -> None:
        names = {one.name for one in allocators.of_preset(self.here, "threads")}
        self.assertEqual(names, {"glibc", "jemalloc", "hardened", *FRONT_ENDS})

    def test_that_are_not_built_name_the_target_that_builds_them(self) -> None:
        known = {one.name: one for one in allocators.known()}
        for name in allocators.STUDIES:
            if known[name].missing:
                self.assertIn("make lib-locked", known[name].missing)
            else:
                self.assertIn("study-", known[name].library)


class AnUnknownFigure(unittest.TestCase):
    def test_of_no_declared_unit_keeps_its_name(self) -> None:
        result = constructed({"a": {"glibc": 1.0, "brimful": 1.0}})
        result.cells[0] = Cell("a", "a", "memory", figure="resident_idle_end_mib")
        for place, sample in enumerate(result.samples):
            result.samples[place] = replace(sample, extra={"resident_idle_end_mib": 3.0})
        units = {row["metric"]: row["unit"] for row in csv_rows(result)}
        self.assertEqual(units["other"], "resident_idle_end_mib")


if __name__ == "__main__":
    unittest.main()
