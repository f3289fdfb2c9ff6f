#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pools' bench: a refusal is never a time, an interruption never the pool's, a failure never a figure."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shutil
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

from brimful.bench import allocators  # noqa: E402
from brimful.bench.model import Allocator  # noqa: E402
from brimful.bench.study import command, pages, records, registry  # noqa: E402
from brimful.bench.study.model import Run, StudyError  # noqa: E402
from brimful.bench.study.records import Record  # noqa: E402
from rivals.recipes import BuildError  # noqa: E402
from studies.pools import (  # noqa: E402
    charts,
    contenders,
    crates,
    experiments,
    goals,
    samples,
    study,
    tables,
)

Data = dict[str, Any]
STUDY = study.STUDY


def goal(results: Data, about: str) -> goals.Goal:
    """The only goal whose text has `about` in it."""
    (found,) = [one for one in goals.goals(results) if about in one.what]
    return found


def run_of(*parts: str, **options: object) -> Run:
    """A short run of these parts, with an empty record."""
    given = {"short": True, "only": list(parts), "seed": 1, "caches": "pages-lz4", "bytes": "1M"}
    record = Record("pools", {}, {"short": True})
    return Run(STUDY, argparse.Namespace(**given, settle=0, **options), record)


def sampler(part: str = "throughput") -> samples.Sampler:
    made = samples.Sampler(run_of(part))
    made.part = part
    return made


def loops(ns: float) -> list[Data | None]:
    return [{"ns_per_operation": ns, "ns_loop": 5.0, "failed": 0} for _ in range(7)]


class Goals(unittest.TestCase):
    def test_of_an_empty_record_are_not_measured(self) -> None:
        for one in goals.goals({}):
            self.assertIsNone(one.met, one.what)
            self.assertEqual(one.cells()[-1], "not measured")

    def throughput(self, **times: list[Data | None]) -> Data:
        ours = times["brimful"]
        ratios = {name: experiments.over(theirs, ours) for name, theirs in times.items()}
        return {"throughput": {goals.SEED_CELL: {"samples": times, "over_brimful": ratios}}}

    def test_of_throughput_hold_the_rivals_time_against_ours(self) -> None:
        results = self.throughput(brimful=loops(20.0), rlsf=loops(24.0), talc=loops(19.0))
        self.assertTrue(goal(results, "over rlsf").met)
        self.assertFalse(goal(results, "over talc").met)
        self.assertIn("24.0 · 1.200", "\n".join(tables.throughput(results["throughput"])))

    def test_of_throughput_leave_out_rounds_in_which_either_failed(self) -> None:
        ours = loops(20.0)
        ours[3] = None
        results = self.throughput(brimful=ours, rlsf=loops(24.0), talc=[None] * 7)
        self.assertTrue(goal(results, "over rlsf").met)
        self.assertIsNone(goal(results, "over talc").met)
        self.assertIn("| talc | failed |", tables.throughput(results["throughput"]))

    def test_are_shown_of_what_was_measured_alone(self) -> None:
        shown = goals.goals({"fill": {}}, ["fill"])
        self.assertEqual(len(shown), 1)
        self.assertIn("TLSF memory", shown[0].what)

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
        results = {"compaction": {goals.GOAL_LIFE: [sample]}}
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
            states = zip(goals.STATES, shares, strict=True)
            return {
                "subject": subject,
                "states": [{"state": s, "resident_per_live": share} for s, share in states],
            }

        mallocs = [said("glibc", 1.2, 1.3, 2.0), said("mimalloc3", 1.1, 1.4, 2.4)]
        samples = [said("handle pool", 1.0, 1.04, 1.1), *mallocs]
        shares = goals.zcache_shares(samples)
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
        drawn = charts.swept({"brimful": points}, ["brimful"], "mean_ns")
        self.assertEqual([point["value"] for point in drawn], [0.1, None])
        spec = charts.runs({"0 … 64": {"brimful": points}}).to_dict()
        marks = {layer["mark"]["type"]: layer for layer in spec["vconcat"][0]["layer"]}
        values = {k: spec["datasets"][layer["data"]["name"]] for k, layer in marks.items()}
        self.assertEqual([point["at"] for point in values["line"]], [64])
        self.assertEqual([point["at"] for point in values["text"]], [128])

    def test_of_a_band_are_named_in_its_table(self) -> None:
        served = {"refused": False, "ns": 50.0, "resident_per_live": 1.1, "thinned_per_live": 3}
        found = {"page pool, pages from a list": {"16": [served], "4080": [{"refused": True}]}}
        text = "\n".join(tables.bands(found))
        self.assertIn("50 · 1.10", text)
        drawn = charts.band_points(found, "ns")
        self.assertEqual([point["value"] for point in drawn], [50.0, None])

    def test_of_a_sweep_are_said_with_the_size_from_which_on(self) -> None:
        points = [{"at": at, "mean_ns": 1.0, "failed": at >= 9000} for at in (0, 9000, 9064)]
        self.assertIn("refused from 9,000 bytes", "\n".join(tables.refusals({"x": points})))


class SingleCalls(unittest.TestCase):
    def calls(self, ns: list[int], kind: int = 0) -> experiments.Numbers:
        return np.array([kind << experiments.KIND_SHIFT | one for one in ns], dtype=np.uint32)

    def test_lose_what_only_one_run_has(self) -> None:
        quiet, interrupted = [20] * 1000, [20] * 1000
        interrupted[7] = 50_000
        other = [*interrupted[:7], 20, 90_000, *[20] * 991]
        runs = [self.calls(interrupted), self.calls(other), self.calls(quiet)]
        found = experiments.summary(runs)["malloc"]
        self.assertEqual(found["best"][-1], 20)
        self.assertEqual(found["single"][-1], 50_000)

    def test_keep_what_every_run_has(self) -> None:
        slow = [20] * 999 + [700]
        found = experiments.summary([self.calls(slow), self.calls(slow)])["malloc"]
        self.assertEqual(found["best"][-1], 700)

    def test_are_bounded_but_for_reallocs_that_move(self) -> None:
        moves = experiments.KINDS.index("realloc that moves")
        run = np.concatenate([self.calls([20, 30]), self.calls([9000], moves)])
        found = experiments.summary([run])
        self.assertEqual(found["bounded"]["best"][-1], 30)
        self.assertEqual(found["realloc that moves"]["best"][-1], 9000)


class Samples(unittest.TestCase):
    """A program of three lines stands in for the real ones."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        patch = mock.patch.object(samples, "BUILT", self.folder)
        patch.start()
        self.addCleanup(patch.stop)

    def program(self, text: str) -> None:
        path = self.folder / "loop"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def sample(self, malloc: Allocator) -> tuple[Data | None, list[str]]:
        made = sampler()
        found = made.sample("loop", contenders.Contender(malloc, (), malloc), "--slots", 10)
        return found, [f"{what}: {why}" for what, why in made.record.not_measured.items()]

    def test_that_end_badly_are_failures_with_their_reason(self) -> None:
        self.program("echo no such luck >&2; exit 3")
        found, failures = self.sample(contenders.SYSTEM)
        self.assertIsNone(found)
        self.assertRegex(failures[0], "loop --slots 10 with glibc: .*no such luck")

    def test_that_print_nonsense_or_nothing_are_failures(self) -> None:
        for nonsense in ("nonsense", "", '{"ns": 1}'):
            self.program(f"echo '{nonsense}'")
            found, failures = self.sample(contenders.SYSTEM)
            self.assertIsNone(found)
            self.assertEqual(len(failures), 1, nonsense)

    def test_of_a_program_that_is_not_there_are_failures(self) -> None:
        found, failures = self.sample(contenders.SYSTEM)
        self.assertIsNone(found)
        self.assertIn("No such file", failures[0])

    def test_under_another_malloc_are_failures(self) -> None:
        library = self.folder / "libmine.so"
        shutil.copy(next(Path("/lib").glob("*-linux-gnu/libm.so.6")), library)
        self.program('echo \'{"ns": 1, "malloc": "/lib/libc.so.6"}\'')
        found, failures = self.sample(Allocator("mine", library=str(library)))
        self.assertIsNone(found)
        self.assertIn("malloc was served by '/lib/libc.so.6'", failures[0])
        found, failures = self.sample(contenders.SYSTEM)
        self.assertEqual(found, {"ns": 1, "malloc": "libc.so.6"})
        self.assertEqual(failures, [])

    def test_of_who_is_missing_are_none_and_no_failure(self) -> None:
        """They are in the list of who takes part, with the reason, as in the league."""
        found, failures = self.sample(Allocator("talc", missing="no network"))
        self.assertIsNone(found)
        self.assertEqual(failures, [])


class Runs(unittest.TestCase):
    def measured(self, **parts: Any) -> tuple[Record, str]:
        """The record of a run with these experiments, and what it prints."""
        who = contenders.Contender(Allocator("talc", missing="cargo is not installed"))
        kept: list[Record] = []
        printed = io.StringIO()
        with (
            mock.patch.object(samples, "build"),
            mock.patch.object(contenders, "everybody", return_value=[who]),
            mock.patch.object(experiments, "EXPERIMENTS", parts),
            mock.patch.object(command, "_save", lambda *words: kept.append(words[-1])),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            self.status = command.measure(STUDY, run_of(*parts).options)
        return kept[0], printed.getvalue()

    @staticmethod
    def whole(_: samples.Sampler, into: Data) -> None:
        into["a"] = 1

    def test_keep_what_was_measured_before_an_interruption(self) -> None:
        def cut(_: samples.Sampler, into: Data) -> None:
            into["b"] = 2
            raise KeyboardInterrupt

        record, _ = self.measured(first=self.whole, second=cut, third=self.whole)
        self.assertEqual(record.results, {"first": {"a": 1}, "second": {"b": 2}})
        self.assertFalse(record.finished)
        self.assertEqual(self.status, 130)

    def test_survive_an_experiment_that_goes_wrong(self) -> None:
        def broken(_: samples.Sampler, into: Data) -> None:
            into["x"] = json.loads("nonsense")

        record, _ = self.measured(first=broken, second=self.whole)
        self.assertEqual(record.results["second"], {"a": 1})
        self.assertIn("JSONDecodeError", record.not_measured["first"])
        self.assertEqual(self.status, 1)

    def test_say_who_took_no_part_and_are_good_all_the_same(self) -> None:
        record, printed = self.measured(first=self.whole)
        self.assertIn("talc: cargo is not installed", printed)
        self.assertEqual(record.not_measured, {})
        self.assertEqual(self.status, 0)

    def test_without_zcache_say_what_it_needs(self) -> None:
        """It is built only where libzstd and liblz4 are: the run goes on without it."""
        with mock.patch.object(experiments, "ZCACHE", Path("/nowhere/zcache")):
            record, printed = self.measured(zcache=experiments.zcache, second=self.whole)
        self.assertEqual(record.results, {"zcache": {}, "second": {"a": 1}})
        self.assertIn("zcache: not measured: not built: it needs libzstd-dev", printed)
        self.assertEqual(self.status, 1)

    def test_of_an_unknown_cache_name_those_that_there_are(self) -> None:
        """At once, and not after the ten minutes before it."""
        run = run_of("zcache")
        run.options.caches = "pages-gzip"
        with self.assertRaisesRegex(StudyError, "no cache 'pages-gzip'.*pages-zstd"):
            study.measure(run)


class ThePage(unittest.TestCase):
    def test_has_a_place_for_everything_and_nothing_else(self) -> None:
        text = (ROOT / study.PAGE).read_text()
        found = re.findall(f"{pages.begin('pools').removesuffix(' -->')}: (\\w+) -->", text)
        self.assertEqual(len(found), text.count("<!-- figures:"))
        self.assertEqual(len(found), text.count(pages.END), "a place has no end")
        self.assertEqual(sorted(found), sorted([*study.PLACES, "goals", "origin"]))

    def test_is_up_to_date(self) -> None:
        """Figures, charts and goals are those of the newest kept run, here and in docs/evaluation.md."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(command.write(STUDY, [], check=True), 0, printed.getvalue())

    def test_of_a_run_with_gaps_says_so(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pools-1.json"
            (newest,) = records.newest(("pools",)).values()
            record = records.load(newest)
            record.results = {"destroy": record.results["destroy"]}
            record.allocators = [Allocator("talc", missing="no network")]
            record.not_measured = {"zcache": "not built"}
            records.save(record, path)
            made = STUDY.figures and STUDY.figures(pages.Place(ROOT / study.PAGE), {"pools": path})
        assert made is not None
        self.assertEqual(made["bands"], pages.NOT_MEASURED)
        self.assertIn("| the heap destroyed | 0.45 | 0.09 |", made["destroy"])
        self.assertIn("- talc: no network", made["origin"])
        self.assertIn("Not measured: zcache: not built", made["origin"])

    def test_every_part_has_an_experiment(self) -> None:
        self.assertEqual(list(STUDY.parts), list(experiments.EXPERIMENTS))
        self.assertIn("pools", registry.names())


class Contenders(unittest.TestCase):
    def test_are_pinned_and_have_their_text(self) -> None:
        for peer in crates.CRATES:
            self.assertRegex(peer.crate.version, r"^\d+\.\d+\.\d+$")
            self.assertRegex(peer.crate.sha256, r"^[0-9a-f]{64}$")
            self.assertIn("whole_create", peer.text.read_text())
            self.assertIn("growable_create", peer.text.read_text())

    def test_without_rivals_all_mallocs_are_named_as_missing(self) -> None:
        """Also those that zcache alone runs under: none is absent in silence."""
        contenders._known.cache_clear()
        self.addCleanup(contenders._known.cache_clear)
        with (
            mock.patch.object(contenders, "tlsf", return_value=()),
            mock.patch.object(allocators, "manifest_path", return_value=Path("/nowhere")),
        ):
            missing = {one.name for one in contenders.everybody() if one.who.missing}
        rivals = {*contenders.GENERAL, *contenders.UNDER_THE_CACHE} - {"glibc"}
        self.assertEqual(missing - {"brimful malloc"}, rivals)

    def test_that_cannot_be_built_are_missing_with_the_reason(self) -> None:
        library = ROOT / "README.md"  # any file: it is hashed
        reason = mock.Mock(side_effect=BuildError("cargo is not installed"))
        contenders.tlsf.cache_clear()
        self.addCleanup(contenders.tlsf.cache_clear)
        with (
            mock.patch.object(crates, "build", reason),
            mock.patch.object(contenders, "POOLS_LIBRARY", library),
        ):
            ours, *others = contenders.tlsf()
        self.assertEqual(ours.who.missing, "")
        for one in others:
            self.assertEqual(one.who.missing, "cargo is not installed")


@unittest.skipUnless(contenders.POOLS_LIBRARY.exists(), "libbrimful-pools.a is not built")
class ThePrograms(unittest.TestCase):
    """The real ones, with work of a moment."""

    folder: tempfile.TemporaryDirectory[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        patch = mock.patch.object(samples, "BUILT", Path(cls.folder.name))
        patch.start()
        cls.addClassCleanup(patch.stop)
        samples.build()

    def sample(self, program: str, *arguments: str | int) -> Data:
        made = sampler()
        found = made.sample(program, contenders.OURS, *arguments)
        self.assertEqual(made.record.not_measured, {})
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
        kinds = [run >> experiments.KIND_SHIFT for run in runs]
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
        for name in samples.WORKLOADS:
            if name == "heap_destroy":  # takes no options; see the next test
                continue
            words = [str(Path(self.folder.name) / name), "--no-such", "1"]
            done = subprocess.run(words, capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 2, name)

    def test_a_malloc_without_heaps_is_told_by_heap_destroy(self) -> None:
        made = sampler("destroy")
        self.assertIsNone(made.sample("heap_destroy", contenders.OURS, 1000))
        (reason,) = made.record.not_measured.values()
        self.assertIn("this malloc has no heaps", reason)


if __name__ == "__main__":
    unittest.main()
