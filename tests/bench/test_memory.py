#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page about memory: promises kept and broken, faults; and that hugepages are put back."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from fake_results import constructed, fail

from brimful.bench import allocators, memory
from brimful.bench.model import Allocator, Metric, Result, Status
from brimful.bench.study import hugepages, records
from brimful.bench.study.model import Run
from brimful.bench.summary import summarize
from studies.memory import study

BIG = 100.0 * 1024  # KiB: above the 64 MiB from which faults are shown


def page(result: Result) -> str:
    return memory.page(summarize(result))


def means(*results: Result) -> str:
    return memory.means([summarize(result) for result in results])


def said(text: str, about: str) -> str:
    """The line that begins with `about`."""
    return next(line for line in text.splitlines() if line.startswith(f"- {about}"))


def with_metrics(result: Result, by_allocator: Mapping[str, Mapping[str, float]]) -> Result:
    """The same result in which each sample of these allocators has these metrics."""
    for place, sample in enumerate(result.samples):
        metrics = {**sample.metrics, **by_allocator.get(sample.allocator, {})}
        result.samples[place] = replace(sample, metrics=metrics)
    return result


def league(brimful_s: float = 0.5, brimful_kib: float = 800.0, name: str = "w") -> Result:
    times = {"glibc": 1.0, "snmalloc": 0.8, "brimful": brimful_s}
    sizes = {"glibc": 1000.0, "snmalloc": 1200.0, "brimful": brimful_kib}
    rows = [f"{name}{number}" for number in range(3)]
    return constructed(dict.fromkeys(rows, times), memory=dict.fromkeys(rows, sizes))


def programs(brimful_kib: float) -> Result:
    result = league(brimful_kib=brimful_kib, name="p")
    result.cells = [replace(cell, family="program") for cell in result.cells]
    return result


class Means(unittest.TestCase):
    def test_are_over_the_rows_of_all_results(self) -> None:
        text = means(league(), programs(1600.0))
        self.assertIn("of the 6 rows", text)
        # √(0.8 · 1.6) of glibc's, three rows each
        self.assertRegex(said(text, "Peak memory over glibc's"), r": 1\.1[234]\d .*\*\*missed\*\*")

    def test_that_keep_their_promises_are_met(self) -> None:
        text = means(league(), programs(800.0))
        for about in ("Peak memory over glibc's", "Peak memory over snmalloc's", "Time over snm"):
            with self.subTest(about):
                self.assertIn(", met.", said(text, about))

    def test_that_are_slow_miss_the_goal_of_time(self) -> None:
        text = means(league(brimful_s=0.79), programs(800.0))
        self.assertIn("met", said(text, "Time over snmalloc's"))
        self.assertIn("**missed**", said(means(league(brimful_s=0.79)), "Time over snmalloc's"))

    def test_name_rows_that_are_slower_than_the_best_rival(self) -> None:
        line = said(means(league(), league(brimful_s=0.9, name="slow")), "Time over the best rival")
        self.assertRegex(line, r"\*\*missed\*\* in 3: slow\d 1\.1\d+ \(snmalloc\)")
        self.assertNotIn(" w0", line)

    def test_name_real_programs_that_hold_more_than_the_leanest_that_is_fast(self) -> None:
        times = {"glibc": 1.0, "snmalloc": 0.5, "brimful": 0.5}
        sizes = {"glibc": 100.0, "snmalloc": 1000.0, "brimful": 1200.0}  # glibc is lean but slow
        result = constructed({"p": times}, memory={"p": sizes})
        self.assertIn("no such row", said(means(result), "Real programs"))
        result.cells = [replace(cell, family="program") for cell in result.cells]
        self.assertRegex(said(means(result), "Real programs"), r"\*\*missed\*\* in 1: p 1\.[12]")
        sizes["brimful"] = 1040.0
        result = constructed({"p": times}, memory={"p": sizes})
        result.cells = [replace(cell, family="program") for cell in result.cells]
        self.assertRegex(said(means(result), "Real programs"), r"worst p 1\.0[34].*, met\.")

    def test_without_brimful_are_none(self) -> None:
        self.assertIn("No means", means(constructed({"a": {"glibc": 1.0}})))


class Faults(unittest.TestCase):
    def result(self, brimful: float, kib: float = BIG) -> Result:
        row = {"glibc": 1.0, "snmalloc": 1.0, "brimful": 1.0}
        result = constructed({"a": row}, memory={"a": dict.fromkeys(row, kib)})
        counts = {"brimful": brimful, "snmalloc": 300.0, "glibc": 200.0}
        return with_metrics(result, {name: {"minor_faults": n} for name, n in counts.items()})

    def test_are_held_against_the_fewest_of_the_rivals(self) -> None:
        self.assertIn("| a | 100 | glibc 200 | 0.500 | fewest |", page(self.result(100)))
        self.assertIn("| a | 250 | glibc 200 | 1.250 | **more** |", page(self.result(250)))

    def test_of_small_rows_are_not_shown(self) -> None:
        self.assertNotIn("Page faults", page(self.result(100, kib=1000.0)))

    def test_of_a_failed_row_are_the_reason(self) -> None:
        result = self.result(100)
        fail(result, {("a", "brimful"): (Status.CRASHED, "it fell")})
        self.assertIn("crashed: it fell", page(result))


class Goals(unittest.TestCase):
    def test_are_said_of_brimful_and_of_its_background_thread(self) -> None:
        names = ("glibc", "brimful", allocators.BACKGROUND)
        result = constructed({"b": dict.fromkeys(names, 1.0)}, ours=names[1:])
        figures = (Metric("held_still_percent", "held", "percent", 5),)
        result.cells = [replace(result.cells[0], figure=figures[0].key, figures=figures)]
        held = {"glibc": 90.0, "brimful": 50.0, allocators.BACKGROUND: 1.0}
        for place, sample in enumerate(result.samples):
            extra = {"held_still_percent": held[sample.allocator]}
            result.samples[place] = replace(sample, extra=extra)
        text = page(result)
        self.assertIn("**missed**", said(text, "b: held"))
        self.assertIn(", met.", said(text, f"{allocators.BACKGROUND}, b: held"))

    def test_a_trivial_process_is_held_against_glibc(self) -> None:
        result = constructed({memory.TRIVIAL: {"glibc": 1000.0, "brimful": 1300.0}}, spread=0)
        figures = (Metric("resident_kib", "resident", "KiB"),)
        result.cells = [replace(result.cells[0], figure=figures[0].key, figures=figures)]
        for place, sample in enumerate(result.samples):
            extra = {"resident_kib": 1000.0 if sample.allocator == "glibc" else 1300.0}
            result.samples[place] = replace(sample, extra=extra)
        self.assertIn("over glibc's 1,000 KiB: brimful +300 KiB.", page(result))


class Presets(unittest.TestCase):
    def test_memory_has_the_background_thread_and_no_other_variant(self) -> None:
        names = ["glibc", "brimful", *allocators.FRONT_ENDS, *allocators.VARIANTS, "hardened"]
        available = [Allocator(name) for name in names]
        chosen = [one.name for one in allocators.of_preset(available, "memory")]
        self.assertEqual(chosen, ["glibc", "brimful", allocators.BACKGROUND])
        self.assertNotIn(
            allocators.BACKGROUND, [a.name for a in allocators.of_preset(available, "threads")]
        )


class Hugepages(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "enabled"
        self.file.write_text("always [madvise] never\n")
        patch = mock.patch.object(hugepages, "SYSTEM", self.file)
        patch.start()
        self.addCleanup(patch.stop)

    def test_are_put_back_even_after_a_failure(self) -> None:
        with self.assertRaises(SystemExit), hugepages.system_says("always"):
            self.assertEqual(self.file.read_text(), "always")
            raise SystemExit(143)
        self.assertEqual(self.file.read_text(), "madvise")

    def test_that_cannot_be_set_are_a_run_not_measured(self) -> None:
        self.file.unlink()
        record = records.Record("memory", {}, {})
        options = Namespace(only=["thp"], short=True, keep=False, bench="", budget="")
        with mock.patch.object(subprocess, "Popen") as started:
            study.STUDY.measure(Run(study.STUDY, options, record))
        started.assert_not_called()
        self.assertIn("cannot be set", record.not_measured["thp"])


if __name__ == "__main__":
    unittest.main()
