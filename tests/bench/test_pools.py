#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pools' bench: a refusal is never a time, an interruption never the pool's, a failure never a figure."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cli"))
sys.path.insert(0, str(ROOT / "bench"))

import numpy as np  # noqa: E402

import benchlib  # noqa: E402
import pool_charts  # noqa: E402
import pool_goals  # noqa: E402
import pool_page  # noqa: E402
import pool_rows  # noqa: E402
import pool_runs  # noqa: E402
import run_pools  # noqa: E402
from benchlib import Allocator, BenchError  # noqa: E402
from pool_goals import Goal  # noqa: E402
from pool_runs import Bench, Contender  # noqa: E402
from rivals import pools as peers  # noqa: E402

Data = dict[str, Any]


def goal(results: Data, about: str) -> Goal:
    """The only goal whose text has `about` in it."""
    (found,) = [one for one in pool_goals.goals({"results": results}) if about in one.what]
    return found


def loops(ns: float) -> list[Data]:
    return [{"ns_per_operation": ns, "ns_loop": 5.0, "failed": 0} for _ in range(7)]


class Goals(unittest.TestCase):
    def test_of_an_empty_record_are_not_measured(self) -> None:
        for one in pool_goals.goals({"results": {}}):
            self.assertIsNone(one.met, one.what)
            self.assertEqual(one.cells()[-1], "not measured")

    def test_of_throughput_hold_the_rivals_time_against_ours(self) -> None:
        cell = {"brimful": loops(20.0), "rlsf": loops(24.0), "talc": loops(19.0)}
        results = {"throughput": {pool_goals.SEED_CELL: cell}}
        self.assertTrue(goal(results, "over rlsf").met)
        self.assertFalse(goal(results, "over talc").met)

    def test_of_throughput_leave_out_rounds_in_which_either_failed(self) -> None:
        ours: list[Data | None] = [*loops(20.0)]
        ours[3] = None
        cell = {"brimful": ours, "rlsf": loops(24.0), "talc": [None] * 7}
        results = {"throughput": {pool_goals.SEED_CELL: cell}}
        self.assertTrue(goal(results, "over rlsf").met)
        self.assertIsNone(goal(results, "over talc").met)

    def test_of_memory_are_judged_by_the_worst_mix(self) -> None:
        kept = {"brimful": {"1 MiB": {"plain": [0.97], "churn": [0.95]}}}
        poor = {"brimful": {"1 MiB": {"plain": [0.97], "churn": [0.89]}}}
        results = {"fill": {"512": kept, "0 … 2048": poor}}
        self.assertFalse(goal(results, "first failure").met)
        self.assertIn("0 … 2048, 1 MiB, churn", goal(results, "first failure").measured)
        self.assertTrue(goal({"fill": {"512": kept}}, "first failure").met)

    def test_of_compaction_ask_for_whole_objects(self) -> None:
        after = {"with_metadata_per_live": 1.05, "resident_per_live": 1.06}
        step = {"p50_ns": 10_000, "max_ns": 400_000}
        sample = {"after": after, "step_cpu": step, "step_wall": step, "damaged": 0}
        results = {"compaction": {pool_goals.GOAL_LIFE: [sample]}}
        for about in ("compacted", "resident size", "longest step", "damaged"):
            self.assertTrue(goal(results, about).met, about)
        sample["damaged"] = 1
        self.assertFalse(goal(results, "damaged").met)

    def test_of_the_cliff_want_it_there_and_not_there(self) -> None:
        def band(below: float, above: float) -> Data:
            return {
                size: [{"refused": False, "ns": 1.0, "resident_per_live": share}]
                for size, share in (("1984", below), ("2064", above))
            }

        names = [f"{pool} pool, pages from a list" for pool in ("page", "handle")]
        results = {"bands": dict(zip(names, (band(1.03, 1.98), band(1.03, 1.04)), strict=True))}
        self.assertTrue(goal(results, "page pool, just above").met)
        self.assertTrue(goal(results, "handle pool, just above").met)
        results = {"bands": dict(zip(names, (band(1.0, 1.0), band(1.0, 1.9)), strict=True))}
        self.assertFalse(goal(results, "page pool, just above").met)
        self.assertFalse(goal(results, "handle pool, just above").met)

    def test_of_zcache_take_the_best_malloc_of_each_state(self) -> None:
        def said(subject: str, *shares: float) -> Data:
            states = zip(pool_goals.STATES, shares, strict=True)
            return {
                "subject": subject,
                "states": [{"state": s, "resident_per_live": share} for s, share in states],
            }

        mallocs = [said("glibc", 1.2, 1.3, 2.0), said("mimalloc3", 1.1, 1.4, 2.4)]
        samples = [said("handle pool", 1.0, 1.04, 1.1), *mallocs]
        shares = pool_goals.zcache_shares(samples)
        self.assertEqual([who for _, who in shares.values()], ["mimalloc3", "glibc", "glibc"])
        self.assertTrue(goal({"zcache": {"pages": samples}}, "zcache").met)

    def test_of_instructions_ask_for_few_and_for_the_same_everywhere(self) -> None:
        row = {"bytes": 1 << 20, "fill": 1, "malloc": 180, "free": 100, "shrink": 90, "grow": 201}
        rows = [row, {**row, "bytes": 1 << 30, "free": 80}]
        results = {"instructions": {"rows": rows}}
        self.assertTrue(goal(results, "fills: malloc").met)
        self.assertFalse(goal(results, "fills: free").met, "20 % apart")
        self.assertFalse(goal(results, "grows in place").met, "more than 200")


class Refusals(unittest.TestCase):
    def test_are_marks_of_their_own_and_never_points_of_a_line(self) -> None:
        points = [
            {"at": 64, "mean_ns": 100.0, "failed": 0},
            {"at": 128, "mean_ns": 1.0, "failed": 3},
        ]
        drawn = pool_charts.swept({"brimful": points}, ["brimful"], "mean_ns")
        self.assertEqual([point["value"] for point in drawn], [0.1, None])
        spec = pool_charts.runs({"0 … 64": {"brimful": points}}).to_dict()
        marks = {layer["mark"]["type"]: layer for layer in spec["vconcat"][0]["layer"]}
        values = {k: spec["datasets"][layer["data"]["name"]] for k, layer in marks.items()}
        self.assertEqual([point["at"] for point in values["line"]], [64])
        self.assertEqual([point["at"] for point in values["text"]], [128])

    def test_of_a_band_are_named_in_its_table(self) -> None:
        served = {"refused": False, "ns": 50.0, "resident_per_live": 1.1, "thinned_per_live": 3}
        found = {"page pool, pages from a list": {"16": [served], "4080": [{"refused": True}]}}
        text = "\n".join(pool_page.bands(found))
        self.assertIn("50 · 1.10", text)
        drawn = pool_charts.band_points(found, "ns")
        self.assertEqual([point["value"] for point in drawn], [50.0, None])

    def test_of_a_sweep_are_said_with_the_size_from_which_on(self) -> None:
        points = [{"at": at, "mean_ns": 1.0, "failed": at >= 9000} for at in (0, 9000, 9064)]
        self.assertIn("refused from 9,000 bytes", "\n".join(pool_page.refusals({"x": points})))


class SingleCalls(unittest.TestCase):
    def calls(self, ns: list[int], kind: int = 0) -> pool_rows.Numbers:
        return np.array([kind << pool_rows.KIND_SHIFT | one for one in ns], dtype=np.uint32)

    def test_lose_what_only_one_run_has(self) -> None:
        quiet, interrupted = [20] * 1000, [20] * 1000
        interrupted[7] = 50_000
        other = [*interrupted[:7], 20, 90_000, *[20] * 991]
        runs = [self.calls(interrupted), self.calls(other), self.calls(quiet)]
        found = pool_rows.summary(runs)["malloc"]
        self.assertEqual(found["best"][-1], 20)
        self.assertEqual(found["single"][-1], 50_000)

    def test_keep_what_every_run_has(self) -> None:
        slow = [20] * 999 + [700]
        found = pool_rows.summary([self.calls(slow), self.calls(slow)])["malloc"]
        self.assertEqual(found["best"][-1], 700)

    def test_are_bounded_but_for_reallocs_that_move(self) -> None:
        moves = pool_rows.KINDS.index("realloc that moves")
        run = np.concatenate([self.calls([20, 30]), self.calls([9000], moves)])
        found = pool_rows.summary([run])
        self.assertEqual(found["bounded"]["best"][-1], 30)
        self.assertEqual(found["realloc that moves"]["best"][-1], 9000)


class Samples(unittest.TestCase):
    """A program of three lines stands in for the real ones."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        patch = mock.patch.object(pool_runs, "BUILT", self.folder)
        patch.start()
        self.addCleanup(patch.stop)

    def program(self, text: str) -> None:
        path = self.folder / "loop"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def sample(self, who: Contender) -> tuple[Data | None, list[str]]:
        bench = Bench()
        return bench.sample("loop", who, "--slots", 10), bench.failures

    def test_that_end_badly_are_failures_with_their_reason(self) -> None:
        self.program("echo no such luck >&2; exit 3")
        found, failures = self.sample(Contender("brimful", ()))
        self.assertIsNone(found)
        self.assertRegex(failures[0], "loop --slots 10 with brimful: no such luck")

    def test_under_another_malloc_are_failures(self) -> None:
        library = self.folder / "libmine.so"
        library.write_text("")
        self.program('echo \'{"ns": 1, "malloc": "/lib/libc.so.6"}\'')
        found, failures = self.sample(Contender("mine", (), Allocator("mine", library)))
        self.assertIsNone(found)
        self.assertIn("not libmine.so", failures[0])
        found, failures = self.sample(Contender("brimful", ()))
        self.assertEqual((found or {}).get("ns"), 1)
        self.assertEqual(failures, [])

    def test_of_who_is_missing_are_named_once(self) -> None:
        bench = Bench()
        who = Contender("talc", (), missing="no network")
        for _ in range(3):
            self.assertIsNone(bench.sample("loop", who))
        self.assertEqual(bench.failures, ["talc: no network"])


class Records(unittest.TestCase):
    def record(self, rows: dict[str, Any]) -> Data:
        with (
            mock.patch.object(pool_runs, "build_programs"),
            mock.patch.object(pool_runs, "tlsf_contenders", return_value=[]),
            mock.patch.object(pool_runs, "malloc_contenders", return_value=[]),
            mock.patch.object(pool_rows, "ROWS", rows),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            return run_pools.measure(Bench(), list(rows))

    def test_keep_what_was_measured_before_an_interruption(self) -> None:
        def whole(_: Bench, into: Data) -> None:
            into["a"] = 1

        def cut(_: Bench, into: Data) -> None:
            into["b"] = 2
            raise KeyboardInterrupt

        record = self.record({"first": whole, "second": cut, "third": whole})
        self.assertEqual(record["results"], {"first": {"a": 1}, "second": {"b": 2}})
        self.assertTrue(record["interrupted"])

    def test_survive_a_program_that_prints_nonsense(self) -> None:
        def broken(_: Bench, into: Data) -> None:
            into["x"] = json.loads("nonsense")

        def whole(_: Bench, into: Data) -> None:
            into["a"] = 1

        record = self.record({"first": broken, "second": whole})
        self.assertEqual(record["results"]["second"], {"a": 1})
        self.assertIn("first: JSONDecodeError", record["failures"][0])

    def test_go_into_the_repository_only_when_they_are_whole(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            kept, other = Path(folder) / "results", Path(folder) / "run"
            with (
                mock.patch.object(benchlib, "RESULTS", kept),
                mock.patch.object(benchlib, "WORK", other),
            ):
                record = {"results": dict.fromkeys(pool_rows.ROWS), "interrupted": False}
                self.assertEqual(run_pools.saved(record, short=False).parent, kept)
                self.assertEqual(run_pools.saved(record, short=True).parent, other)
                record["interrupted"] = True
                self.assertEqual(run_pools.saved(record, short=False).parent, other)


class ThePage(unittest.TestCase):
    def test_has_a_place_for_everything_and_nothing_else(self) -> None:
        text = pool_page.PAGE.read_text()
        found = [name for _, name, _ in pool_page.PLACE.findall(text)]
        self.assertEqual(len(found), text.count("<!-- figures:"), "a place has no end")
        self.assertEqual(sorted(found), sorted([*pool_page.PLACES, "goals", "winners", "origin"]))

    def test_keeps_the_text_around_its_places(self) -> None:
        page = "a\n<!-- figures: goals -->\nold\n<!-- end of figures -->\nb\n"
        once = pool_page.filled(page, {"goals": ["| new |", ""]})
        self.assertEqual(
            once, "a\n<!-- figures: goals -->\n\n| new |\n\n<!-- end of figures -->\nb\n"
        )
        self.assertEqual(pool_page.filled(once, {"goals": ["| new |", ""]}), once)

    def test_with_an_unknown_place_is_refused(self) -> None:
        with self.assertRaises(BenchError):
            pool_page.filled("<!-- figures: x -->\n<!-- end of figures -->", {})


class Peers(unittest.TestCase):
    def test_are_pinned_and_have_their_text(self) -> None:
        for peer in peers.PEERS:
            self.assertRegex(peer.crate.version, r"^\d+\.\d+\.\d+$")
            self.assertRegex(peer.crate.sha256, r"^[0-9a-f]{64}$")
            self.assertIn("whole_create", peer.text.read_text())
            self.assertIn("growable_create", peer.text.read_text())


@unittest.skipUnless(pool_runs.POOLS_LIBRARY.exists(), "libbrimful-pools.a is not built")
class ThePrograms(unittest.TestCase):
    """The real ones, with work of a moment."""

    folder: tempfile.TemporaryDirectory[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        patch = mock.patch.object(pool_runs, "BUILT", Path(cls.folder.name))
        patch.start()
        cls.addClassCleanup(patch.stop)
        pool_runs.build_programs()

    def sample(self, program: str, *arguments: str | int) -> Data:
        bench = Bench()
        found = bench.sample(program, Contender("brimful", ()), *arguments)
        self.assertEqual(bench.failures, [])
        assert found is not None
        return found

    def test_the_loop_works_under_every_pool(self) -> None:
        few = ("--operations", 20000, "--slots", 100, "--touch", 1)
        for pool in ("tlsf", "page", "handle", "malloc"):
            for growable in (0, 1):
                found = self.sample("loop", "--pool", pool, "--growable", growable, *few)
                self.assertGreater(found["ns_per_operation"], 0)
                self.assertEqual(found["failed"], 0)

    def test_the_loop_counts_what_a_small_pool_refuses(self) -> None:
        small = ("--slots", 1000, "--least", 4096, "--bytes", 1 << 20, "--operations", 20000)
        self.assertGreater(self.sample("loop", *small)["failed"], 1000)

    def test_the_sweep_marks_points_that_were_refused(self) -> None:
        line = ("--from", 0, "--to", 4096, "--step", 1024, "--slots", 1000, "--bytes", 2 << 20)
        points = self.sample("sweep", *line, "--operations", 5000)["points"]
        self.assertEqual([point["at"] for point in points], [0, 1024, 2048, 3072])
        self.assertEqual([bool(point["failed"]) for point in points], [False, False, True, True])

    def test_the_calls_of_two_runs_are_the_same(self) -> None:
        out = Path(self.folder.name) / "calls"
        runs = []
        for _ in range(2):
            line = ("--operations", 5000, "--slots", 100, "--swing", 1000, "--out", str(out))
            found = self.sample("latency", *line)
            runs.append(np.fromfile(out, dtype=np.uint32))
            self.assertEqual(len(runs[-1]), found["calls"])
        kinds = [run >> pool_rows.KIND_SHIFT for run in runs]
        self.assertTrue(np.array_equal(kinds[0], kinds[1]))
        self.assertEqual(set(kinds[0].tolist()), {0, 1, 2, 3})

    def test_a_pool_fills_to_less_than_all_of_it(self) -> None:
        found = self.sample("fill", "--bytes", 1 << 20, "--churn", 1, "--seeds", 3)
        self.assertEqual(len(found["shares"]), 3)
        for share in found["shares"]:
            self.assertTrue(0.5 < share < 1, share)

    def test_bands_say_what_is_held_and_what_is_refused(self) -> None:
        few = ("--live", 1 << 20, "--operations", 1000)
        for pool in ("page", "handle"):
            found = self.sample("bands", "--pool", pool, "--size", 500, *few)
            self.assertTrue(1 < found["held_per_live"] < 2, found)
        self.assertTrue(self.sample("bands", "--pool", "page", "--size", 5000, *few)["refused"])

    def test_compaction_gives_back_and_damages_nothing(self) -> None:
        found = self.sample("compaction", "--megabytes", 8)
        self.assertEqual((found["damaged"], found["broken"]), (0, ""))
        self.assertLess(found["after"]["held_per_live"], found["before"]["held_per_live"])

    def test_bad_arguments_end_with_2(self) -> None:
        for name in pool_runs.PROGRAMS:
            command = [str(pool_runs.BUILT / name), "--no-such", "1"]
            done = subprocess.run(command, capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 2, name)


if __name__ == "__main__":
    unittest.main()
