#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The catalog holds what its files say, every program of it compiles, runs and checks itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cli"))

from brimful.bench import catalog  # noqa: E402
from brimful.bench.model import Metric  # noqa: E402

SMALL = replace(catalog.PRESETS["full"], scale=0.02)
PRESETS = {"quick", "default", "full", "concurrency", "memory", "league"}
FAMILIES = {"threads", "single", "compute", "large", "memory", "latency", "sweep", "start"}
ENTRY = """[[workload]]
name = "{name}"
program = "order"
family = "single"
title = "a title"
source = "a source"
shows = "a property"
presets = ["full"]
{more}
"""


class TheCatalog(unittest.TestCase):
    def with_files(self, **files: str) -> None:
        """Puts other files in the place of bench/workloads/*.toml for this test."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in files.items():
            (Path(folder.name) / f"{name}.toml").write_text(text)
        patch = mock.patch.object(catalog, "workload_folder", lambda: Path(folder.name))
        patch.start()
        self.addCleanup(patch.stop)

    def test_every_entry_says_what_it_imitates_and_what_it_shows(self) -> None:
        for entry in catalog.entries():
            with self.subTest(name=entry["name"]):
                self.assertIn(entry["family"], FAMILIES)
                self.assertTrue(entry["title"] and entry["source"] and entry["shows"])
                self.assertLessEqual(set(entry["presets"]), PRESETS)
                self.assertIn("full", entry["presets"])

    def test_a_sweep_becomes_one_row_per_point(self) -> None:
        more = (
            'sweep = { argument = "--threads", axis = "threads", values = [1, 2], full = [1, 64] }'
        )
        self.with_files(a=ENTRY.format(name="x", more=more))
        works = catalog.works(SMALL)
        self.assertEqual([work.cell.name for work in works], ["x@1", "x@64"])
        self.assertEqual([work.cell.at for work in works], [1, 64])
        self.assertEqual(works[1].cell.command[-2:], ("--threads", "64"))

    def test_a_sweep_that_is_named_has_all_its_points(self) -> None:
        quick = replace(catalog.PRESETS["quick"], name="default")
        sweep = 'sweep = { argument = "--threads", axis = "threads", values = [1], full = [1, 64] }'
        self.with_files(a=ENTRY.format(name="x", more=sweep).replace('"full"', '"default"'))
        for patterns, names in (
            ("", ["x@1"]),
            ("single", ["x@1"]),
            ("x", ["x@1", "x@64"]),
            ("x*", ["x@1", "x@64"]),
            ("x@6?", ["x@64"]),
        ):
            with self.subTest(patterns=patterns):
                works = catalog.asked_for(quick, patterns)
                works = catalog.select(works, patterns) if patterns else works
                self.assertEqual([work.cell.name for work in works], names)

    def test_a_row_that_is_named_runs_in_every_preset(self) -> None:
        self.with_files(a=ENTRY.format(name="x", more=""))
        quick = catalog.PRESETS["quick"]
        self.assertEqual(catalog.asked_for(quick, ""), [])
        self.assertEqual([work.cell.name for work in catalog.asked_for(quick, "x")], ["x"])

    def test_an_entry_names_its_figures_and_its_own_scale_and_rounds(self) -> None:
        more = """
figure = "growth_percent"
figures = [{ key = "growth_percent", title = "growth", unit = "percent", goal = 5 }]
scales = { full = 2 }
rounds = 3"""
        self.with_files(a=ENTRY.format(name="x", more=more))
        work = catalog.works(SMALL)[0]
        self.assertEqual(work.cell.figures, (Metric("growth_percent", "growth", "percent", 5),))
        self.assertEqual(work.cell.command[1:3], ("--scale", "2"))
        self.assertEqual(work.rounds, 3)

    def test_the_presets_scale_the_work(self) -> None:
        self.with_files(a=ENTRY.format(name="x", more='arguments = ["--scale", "4"]'))
        command = catalog.works(SMALL)[0].cell.command
        self.assertEqual(command[command.index("--scale") + 1], "0.08")

    def test_mistakes_in_its_files_are_named(self) -> None:
        good = ENTRY.format(name="x", more="")
        for files, reason in (
            ({"a": good, "b": good}, "one name: x"),
            ({"a": ENTRY.format(name="x", more="nonsense = 1")}, "unknown nonsense"),
            ({"a": ENTRY.format(name="x", more='figures = [{ key = "k" }]')}, "malformed figure"),
            ({"a": "[[workload"}, "a.toml"),
        ):
            with self.subTest(reason=reason):
                self.with_files(**files)
                with self.assertRaisesRegex(catalog.CatalogError, reason):
                    catalog.works(SMALL)

    def test_rows_are_chosen_by_name_workload_or_family(self) -> None:
        works = catalog.works(SMALL)
        first = works[0].cell
        for pattern in (first.name, first.workload, first.family):
            self.assertIn(works[0], catalog.select(works, pattern))
        with self.assertRaisesRegex(catalog.CatalogError, "no workload 'nonsense'; there are: "):
            catalog.select(works, "nonsense")

    def test_a_command_that_does_not_exist_is_refused(self) -> None:
        with self.assertRaisesRegex(catalog.CatalogError, "/no/such/program: not found"):
            catalog.user_command(["/no/such/program"], 10)


class EveryWorkload(unittest.TestCase):
    """Under the system's malloc, with little work: it runs, reports, and is what it says."""

    works = catalog.works(SMALL)

    @classmethod
    def setUpClass(cls) -> None:
        catalog.compile_programs([work.cell for work in cls.works])

    def test_it_reports_its_work(self) -> None:
        seen = set()
        for work in self.works:
            if work.cell.workload in seen or work.cell.threads > 64:
                continue
            seen.add(work.cell.workload)
            with self.subTest(row=work.cell.name):
                done = subprocess.run(work.cell.command, capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)
                report = json.loads(done.stdout.splitlines()[-1])
                self.assertGreater(report["operations"], 0)
                self.assertGreater(report["seconds"], 0)
                self.assertEqual(report["failed_allocations"], 0)
                self.assertEqual(report["threads"], work.cell.threads)
                self.assertTrue(os.path.basename(report["malloc"]).startswith("libc.so"))
                figure = work.cell.figure
                self.assertTrue(
                    figure in ("seconds", "wall_s") or figure in report["extra"], figure
                )
                declared = {metric.key for metric in work.cell.figures}
                self.assertLessEqual(declared, set(report["extra"]))

    def test_threads_that_never_allocated_are_the_measure_of_idle_ones(self) -> None:
        program = str(catalog.binary_folder() / "idle-threads")
        command = [program, "--threads", "64", "--scale", "1", "--wait", "0.1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        extra = report["extra"]
        self.assertEqual((report["threads"], extra["threads_started"]), (64, 64))
        # Twenty KiB of stack are touched, more would be the workload's own memory.
        self.assertTrue(20 <= extra["silent_kib_per_thread"] <= 48, extra)
        self.assertGreater(extra["burst_kib_per_thread"], 0)
        self.assertGreaterEqual(report["operations"], 64 * 400)

    def test_it_refuses_what_it_does_not_know(self) -> None:
        for program in sorted({work.cell.command[0] for work in self.works}):
            for arguments in (["--nonsense", "1"], ["--scale", "x"], ["--scale"], ["--seed", "-1"]):
                with self.subTest(program=os.path.basename(program), arguments=arguments):
                    done = subprocess.run(
                        [program, *arguments], capture_output=True, text=True, timeout=60
                    )
                    self.assertEqual(done.returncode, 2, done.stdout)
                    self.assertEqual(len(done.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
