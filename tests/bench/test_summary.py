#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The tables say what the samples say: failures are never numbers, means know their rows."""

from __future__ import annotations

import io
import math
import sys
import unittest
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cli"))

import fake_results
from fake_results import constructed

from brimful.bench import league, summary
from brimful.bench.model import MEMORY, Cell, Result, Sample, Status
from brimful.bench.statistics import Verdict
from brimful.bench.summary import FIGURE, OTHER, Summary, summarize

CRASH = (Status.CRASHED, "killed by signal 11")


def rows_of(count: int, **times: float) -> dict[str, dict[str, float]]:
    """`count` rows with the same true times."""
    return {f"row{k}": dict(times) for k in range(count)}


def standing(found: Summary, name: str) -> summary.Standing:
    return next(s for s in found.league if s.allocator.name == name)


def with_figure(figure: str, glibc: float, brimful: float) -> Result:
    """Three rows, of which the first compares a figure of its own."""
    result = constructed(rows_of(3, glibc=1.0, brimful=0.8))
    result.cells[0] = replace(result.cells[0], figure=figure)
    for place, sample in enumerate(result.samples):
        if sample.cell == "row0":
            value = glibc if sample.allocator == "glibc" else brimful
            metrics = sample.metrics | {"seconds": value}
            result.samples[place] = replace(sample, metrics=metrics, extra={figure: value})
    return result


class AFailedCell(unittest.TestCase):
    def setUp(self) -> None:
        times = rows_of(6, glibc=1.0, brimful=0.8, fragile=0.1)
        self.result = constructed(times, failures={("row2", "fragile"): CRASH})
        self.found = summarize(self.result)

    def test_one_failure_of_ten_runs_takes_all_figures_away(self) -> None:
        entry = self.found.row("row2").entries["fragile"]
        self.assertEqual((entry.status, entry.reason), CRASH)
        self.assertEqual((dict(entry.estimates), dict(entry.to_baseline)), ({}, {}))
        self.assertEqual(self.found.samples.values("row2", "fragile", FIGURE), {})
        self.assertIsNone(self.found.samples.ratio("row2", "fragile", "glibc", FIGURE))

    def test_it_cannot_win_or_be_the_rival(self) -> None:
        self.assertEqual(self.found.row("row1").best[FIGURE], "fragile")
        self.assertEqual(self.found.row("row2").best[FIGURE], "brimful")
        self.assertEqual(self.found.row("row2").best_rival[FIGURE], "glibc")
        self.assertNotIn("fragile", self.found.row("row2").level[FIGURE])

    def test_the_league_counts_it_and_leaves_it_out_with_its_reason(self) -> None:
        fragile = standing(self.found, "fragile")
        self.assertEqual(fragile.failed, (("row2", "crashed: killed by signal 11"),))
        self.assertEqual(fragile.left_out, fragile.failed)
        self.assertEqual(fragile.rows, 5)
        self.assertEqual(fragile.tally[FIGURE], summary.Tally(5, 0, 0, 0))
        self.assertEqual(standing(self.found, "brimful").rows, 6)
        self.assertNotIn("row2", self.found.common_rows)

    def test_it_has_no_figure_in_the_csv_file(self) -> None:
        table = summary.csv_rows(self.found)
        lines = [r for r in table if (r["cell"], r["allocator"]) == ("row2", "fragile")]
        self.assertEqual(len(lines), 1)
        self.assertEqual((lines[0]["status"], lines[0]["reason"]), ("crashed", CRASH[1]))
        self.assertEqual([lines[0][key] for key in ("metric", "n", "median", "ratio")], [""] * 4)
        self.assertTrue(all(tuple(r) == summary.CSV_COLUMNS for r in table))

    def test_a_failure_of_the_second_run_counts_too(self) -> None:
        again = next(s for s in self.result.samples if s.again and s.cell == "row4")
        place = self.result.samples.index(again)
        self.result.samples[place] = replace(
            again, status=Status.TIMED_OUT, reason="60 s", metrics={}
        )
        entry = summarize(self.result).row("row4").entries["glibc"]
        self.assertEqual((entry.status, entry.reason), (Status.TIMED_OUT, "60 s"))

    def test_of_the_baseline_leaves_the_row_without_ratios_but_with_a_winner(self) -> None:
        times = rows_of(6, glibc=1.0, brimful=0.8, rival=0.9)
        found = summarize(constructed(times, failures={("row3", "glibc"): CRASH}))
        row = found.row("row3")
        self.assertEqual(dict(row.entries["brimful"].to_baseline), {})
        self.assertEqual(row.ours["brimful"][FIGURE].other, "rival")
        self.assertIn("glibc, the baseline", dict(standing(found, "rival").left_out)["row3"])


class WhatIsNotThere(unittest.TestCase):
    def test_a_missing_allocator_is_missing_everywhere_and_not_in_the_league(self) -> None:
        result = constructed(rows_of(3, glibc=1.0, brimful=0.8))
        gone = replace(result.allocators[1], name="gone", missing="no package", ours=False)
        result.allocators.append(gone)
        found = summarize(result)
        self.assertEqual(found.missing, (gone,))
        self.assertEqual(found.row("row0").entries["gone"].reason, "no package")
        self.assertNotIn("gone", [s.allocator.name for s in found.league])
        self.assertEqual(len(found.common_rows), 3)

    def test_a_row_without_its_program_is_left_out_with_the_reason(self) -> None:
        result = constructed(rows_of(3, glibc=1.0, brimful=0.8))
        result.cells.append(Cell("redis", "redis", "program", missing="not installed"))
        left_out = dict(standing(summarize(result), "brimful").left_out)
        self.assertEqual(left_out, {"redis": "missing: not installed"})

    def test_an_interrupted_run_says_so_in_the_cells_it_did_not_reach(self) -> None:
        result = constructed(rows_of(2, glibc=1.0, brimful=0.8), finished=False)
        result.samples = [s for s in result.samples if s.cell == "row0" or s.allocator == "glibc"]
        entry = summarize(result).row("row1").entries["brimful"]
        self.assertEqual(entry.status, Status.MISSING)
        self.assertIn("before the bench ended", entry.reason)

    def test_a_figure_of_nothing_has_no_ratio(self) -> None:
        result = constructed(rows_of(1, glibc=1.0, brimful=0.8))
        entry = summarize(result).row("row0").entries["brimful"]
        self.assertEqual(entry.estimates["major_faults"].median, 0)
        self.assertNotIn("major_faults", entry.to_baseline)

    def test_an_unknown_baseline_is_an_error_and_no_baseline_is_the_runs_own(self) -> None:
        result = constructed(rows_of(1, glibc=1.0, brimful=0.8, rival=1.0))
        with self.assertRaisesRegex(summary.SummaryError, "no allocator 'nobody'"):
            summarize(result, "nobody")
        self.assertEqual(summarize(result).baseline, "glibc")
        result.options["baseline"] = "rival"
        self.assertEqual(summarize(result).baseline, "rival")
        self.assertEqual(summarize(result, "glibc").baseline, "glibc")


class TheRatios(unittest.TestCase):
    def test_they_find_the_truth_through_a_drift_that_is_larger_than_it(self) -> None:
        result = constructed(rows_of(1, glibc=1.0, brimful=0.9), spread=0.005, drift=0.5)
        against = summarize(result).row("row0").entries["brimful"].to_baseline[FIGURE]
        self.assertAlmostEqual(against.ratio.median, 0.9, delta=0.02)
        self.assertEqual(against.verdict, Verdict.BETTER)

    def test_fewer_than_five_rounds_claim_nothing(self) -> None:
        found = summarize(constructed(rows_of(2, glibc=1.0, brimful=0.1), rounds=4))
        against = found.row("row0").entries["brimful"].to_baseline[FIGURE]
        self.assertEqual(against.verdict, Verdict.TOO_FEW)
        self.assertEqual(standing(found, "brimful").tally[FIGURE], summary.Tally(0, 0, 0, 2))
        self.assertEqual(standing(found, "brimful").means[FIGURE].verdict, Verdict.TOO_FEW)

    def test_a_mean_over_rows_of_few_rounds_still_has_a_noise_floor(self) -> None:
        few = summarize(constructed(rows_of(2, glibc=1.0, brimful=0.8), rounds=3))
        self.assertEqual(few.noise[FIGURE].of_means, math.inf)
        self.assertIn("too few pairs", shown(few, 100))
        many = summarize(constructed(rows_of(8, glibc=1.0, brimful=0.8), rounds=3))
        self.assertLess(many.noise[FIGURE].of_means, 0.05)
        self.assertGreater(many.noise[FIGURE].of_means, 0)
        self.assertEqual(standing(many, "brimful").means[FIGURE].verdict, Verdict.BETTER)

    def test_the_second_run_of_a_round_is_no_sample_of_its_own(self) -> None:
        found = summarize(constructed(rows_of(1, glibc=1.0, brimful=0.8), rounds=7))
        self.assertEqual(found.row("row0").entries["glibc"].estimates[FIGURE].count, 7)
        self.assertEqual(found.noise[FIGURE].cells["row0"].ratio.pairs, 7)

    def test_a_row_may_compare_a_time_of_its_own(self) -> None:
        found = summarize(with_figure("us_per_request", 40.0, 60.0))
        entry = found.row("row0").entries["brimful"]
        self.assertAlmostEqual(entry.to_baseline[FIGURE].ratio.median, 1.5)
        self.assertNotIn("seconds", entry.estimates)
        self.assertIn("40 µs", shown(found, 100))

    def test_a_figure_that_is_no_time_is_in_no_mean_of_times(self) -> None:
        found = summarize(with_figure("resident_idle_end_mib", 40.0, 60.0))
        row, brimful = found.row("row0"), standing(found, "brimful")
        self.assertNotIn(FIGURE, row.entries["brimful"].estimates)
        self.assertAlmostEqual(row.entries["brimful"].to_baseline[OTHER].ratio.median, 1.5)
        self.assertEqual(row.ours["brimful"][OTHER].verdict, Verdict.WORSE)
        self.assertEqual((brimful.rows, brimful.left_out), (2, ()))
        self.assertEqual(brimful.means[MEMORY].mean.rows, 3)
        self.assertEqual(brimful.tally[OTHER], summary.Tally(0, 1, 0, 0))
        self.assertEqual(summary.word(Verdict.WORSE, OTHER), "more")
        self.assertIn((OTHER, "row0"), [(loss.metric, loss.cell) for loss in found.losses])
        self.assertIn("in no mean of times: row0 (resident_idle_end_mib)", shown(found, 100))

    def test_equal_allocators_show_no_difference_in_nearly_all_rows(self) -> None:
        found = summarize(constructed(rows_of(60, glibc=1.0, brimful=1.0, rival=1.0)))
        for name in ("brimful", "rival"):
            self.assertGreaterEqual(standing(found, name).tally[FIGURE].same, 57)
            self.assertEqual(standing(found, name).means[FIGURE].verdict, Verdict.SAME)


class TheLeague(unittest.TestCase):
    def test_it_is_ordered_by_the_rows_in_which_all_succeeded(self) -> None:
        # "lucky" fails in the one row where it is slow: its own mean is better than steady's, on
        # rows that flatter it. The common rows are the same for both.
        times = rows_of(5, glibc=1.0, steady=0.6, lucky=0.7)
        times["row0"] = {"glibc": 1.0, "steady": 2.0, "lucky": 8.0}
        found = summarize(constructed(times, failures={("row0", "lucky"): CRASH}, ours=()))
        steady, lucky = standing(found, "steady"), standing(found, "lucky")
        self.assertGreater(steady.means[FIGURE].mean.mean, lucky.means[FIGURE].mean.mean)
        self.assertLess(steady.common[FIGURE].mean.mean, lucky.common[FIGURE].mean.mean)
        self.assertEqual([s.allocator.name for s in found.league], ["steady", "lucky", "glibc"])
        self.assertEqual(steady.common[FIGURE].mean.rows, lucky.common[FIGURE].mean.rows)

    def test_whoever_fails_often_does_not_take_the_common_rows_from_the_others(self) -> None:
        failures = {(f"row{k}", "broken"): CRASH for k in range(6)}
        times = rows_of(8, glibc=1.0, brimful=0.8, broken=0.5)
        found = summarize(constructed(times, failures=failures))
        self.assertEqual(len(found.common_rows), 8)
        self.assertEqual(dict(found.not_common), {"broken": "it has no result in 6 of 8 rows"})
        self.assertEqual(dict(standing(found, "broken").common), {})
        self.assertEqual(found.league[-1].allocator.name, "broken")
        self.assertNotIn("broken", found.frontier)

    def test_brimfuls_losses_are_listed_worst_first(self) -> None:
        times = rows_of(4, glibc=2.0, brimful=1.0, rival=1.5)
        times["row1"]["rival"] = 0.8
        times["row3"]["rival"] = 0.5
        found = summarize(constructed(times))
        time = [loss for loss in found.losses if loss.metric == FIGURE]
        self.assertEqual(
            [(x.cell, x.against.other) for x in time], [("row3", "rival"), ("row1", "rival")]
        )
        self.assertAlmostEqual(time[0].against.ratio.median, 2.0, delta=0.05)

    def test_the_headline_compares_with_the_best_rival(self) -> None:
        memory = {cell: {"rival": 5000.0} for cell in rows_of(6)}
        found = summarize(constructed(rows_of(6, glibc=2.0, brimful=1.2, rival=1.0), memory=memory))
        time, size = found.headlines
        self.assertEqual((time.rival, time.over_rival.verdict), ("rival", Verdict.WORSE))
        self.assertAlmostEqual(time.over_best_of_each.mean.mean, 1.2, delta=0.02)
        self.assertEqual((size.metric, size.rival), (MEMORY, "rival"))
        self.assertAlmostEqual(size.over_rival.mean.mean, 2.0, delta=0.02)

    def test_a_run_without_rivals_or_without_brimful_still_has_tables(self) -> None:
        for times in (rows_of(3, brimful=1.0), rows_of(3, glibc=1.0, rival=0.9)):
            text = shown(constructed(times), 100)
            self.assertIn("League", text)


def shown(source: Result | Summary, width: int) -> str:
    out = io.StringIO()
    league.show(source, Console(width=width, force_terminal=False, file=out))
    return out.getvalue()


class TheTerminal(unittest.TestCase):
    found: Summary

    @classmethod
    def setUpClass(cls) -> None:
        cls.found = summarize(fake_results.full(rounds=6))

    def test_no_line_is_wider_than_the_terminal_and_nothing_is_cut_off(self) -> None:
        for width in (100, 200):
            text = shown(self.found, width)
            self.assertLessEqual(max(map(len, text.splitlines())), width)
            self.assertNotIn("…", text)

    def test_every_allocator_row_and_reason_is_there(self) -> None:
        text = shown(self.found, 100)
        for row in self.found.rows:
            self.assertIn(row.cell.name, text)
        for (cell, name), (status, reason) in fake_results.FAILURES.items():
            line = next(x for x in text.split("Failed cells")[1].splitlines() if x.startswith(cell))
            self.assertRegex(line, rf"{name} +{status}: ")
            self.assertIn(reason, text)
        for words in ("Missing: hardened-malloc: its source", "Row left out: postgres-pgbench"):
            self.assertIn(words, text)

    def test_square_brackets_in_names_and_reasons_are_no_markup(self) -> None:
        failures = {("row1", "brimful"): (Status.FAILED, "[bold]x[/bold] [/] <- it said")}
        text = shown(constructed(rows_of(2, glibc=1.0, brimful=1.0), failures=failures), 100)
        self.assertIn("[bold]x[/bold] [/] <- it said", text)

    def test_samples_without_figures_do_not_stop_it(self) -> None:
        result = constructed(rows_of(2, glibc=1.0, brimful=1.0))
        result.samples = [replace(s, metrics={}) for s in result.samples]
        self.assertIn("no figure", shown(result, 100))
        empty: dict[str, Any] = {"environment": {}, "options": {}, "cells": []}
        only = Result(allocators=result.allocators, **empty)
        self.assertIn("League", shown(only, 100))


class TheSamples(unittest.TestCase):
    def test_runs_for_memory_over_time_add_their_figures_and_no_time(self) -> None:
        result = constructed(rows_of(1, glibc=1.0, brimful=1.0), rounds=5)
        result.samples = [
            replace(s, metrics={"seconds": s.metrics["seconds"]}) for s in result.samples
        ]
        result.samples += [
            Sample("row0", name, 0, Status.OK, metrics={"idle_rss_kib": size})
            for name, size in (("glibc", 100.0), ("brimful", 50.0))
        ]
        entry = summarize(result).row("row0").entries["brimful"]
        self.assertEqual(entry.estimates[FIGURE].count, 5)
        self.assertEqual(entry.estimates["idle_rss_kib"].count, 1)
        self.assertAlmostEqual(entry.to_baseline["idle_rss_kib"].ratio.median, 0.5)
        self.assertEqual(entry.to_baseline["idle_rss_kib"].verdict, Verdict.TOO_FEW)
        self.assertTrue(math.isinf(entry.to_baseline["idle_rss_kib"].ratio.high))


if __name__ == "__main__":
    unittest.main()
