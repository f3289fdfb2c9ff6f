#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The study `misuse`: lines become outcomes, outcomes become shares, and no share is rounded to an end."""

from __future__ import annotations

import sys
import unittest
from argparse import Namespace
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "cli")]

from brimful.bench import allocators  # noqa: E402
from brimful.bench.model import Allocator  # noqa: E402
from brimful.bench.study.model import Run, StudyError  # noqa: E402
from brimful.bench.study.records import Record  # noqa: E402
from studies.misuse import cost, matrix, runs, study  # noqa: E402
from studies.misuse.matrix import Matrix  # noqa: E402

DOUBLE, READ = "double-free at-once 16 one", "use-after-free-read used-again 16 one"
RIGHT = "no-fault calloc 16 one"


class AnOutcome(unittest.TestCase):
    def outcome(self, lines: str, code: int, said: str = "") -> str:
        return runs.read(lines, said, code).outcome

    def test_is_told_from_the_lines_and_the_end(self) -> None:
        self.assertEqual(self.outcome("fault 0x10\n", -6), runs.AT)
        self.assertEqual(self.outcome("fault 0x10\npassed\n", -11), runs.LATER)
        self.assertEqual(self.outcome("fault 0x10\npassed\nsilent x\n", 0), runs.SILENT)
        self.assertEqual(self.outcome("fault 0x10\npassed\nharmless x\n", 0), runs.HARMLESS)

    def test_of_what_never_reached_its_fault_is_nobodys_merit(self) -> None:
        self.assertEqual(self.outcome("", -6), runs.BROKEN)
        self.assertEqual(self.outcome("", 2), runs.BROKEN)
        self.assertEqual(self.outcome("broken no memory\n", 0), runs.BROKEN)

    def test_of_an_end_by_exit_is_that_of_a_stop(self) -> None:
        self.assertEqual(self.outcome("fault 0x10\n", 1), runs.AT)

    def test_keeps_what_an_allocator_prints_between(self) -> None:
        ending = runs.read("fault 0x10\n[ABORTING] heap\n", "", -6)
        self.assertEqual((ending.outcome, ending.said), (runs.AT, "[ABORTING] heap\n"))
        self.assertEqual(matrix.letter(ending), "A")
        self.assertEqual(matrix.letter(runs.read("fault 0x10\n", "", -6)), "a")


def of(**outcomes: dict[str, str]) -> Matrix:
    """A matrix from allocator → case → letters."""
    cases = dict.fromkeys(case for found in outcomes.values() for case in found)
    rows = [
        {"case": case, "outcomes": {name: found[case] for name, found in outcomes.items()}}
        for case in cases
    ]
    return Matrix(rows, list(outcomes))


class TheMatrix(unittest.TestCase):
    def text(self, letters: str) -> str:
        return of(a={DOUBLE: letters}).cell("double-free", "a").text()

    def test_leaves_harmless_runs_out(self) -> None:
        self.assertEqual(self.text("AaLlH"), "always")
        self.assertEqual(self.text("SSXH"), "never")
        self.assertEqual(self.text("HH"), "no harm")
        self.assertEqual(self.text("AHHS"), "50 %")

    def test_calls_nothing_always_or_never_that_is_not(self) -> None:
        self.assertEqual(self.text("A" * 999 + "S"), "99 %")
        self.assertEqual(self.text("S" * 999 + "A"), "1 %")

    def test_counts_a_case_that_was_quiet_once(self) -> None:
        found = of(a={DOUBLE: "AAS", READ: "HHH"}, b={DOUBLE: "AAA", READ: "SSS"})
        self.assertEqual(found.never_quiet("a", found.cases()), 1)
        self.assertEqual(found.stoppable(), [DOUBLE])
        self.assertEqual(found.never_quiet("b", found.stoppable()), 1)

    def test_names_right_programs_that_were_stopped(self) -> None:
        found = of(a={RIGHT: "HHA"}, b={RIGHT: "HHH"})
        self.assertEqual([found.false_alarms(name) for name in "ab"], [1, 0])
        self.assertEqual(found.cases(), [])

    def test_refuses_a_kind_that_it_has_no_row_for(self) -> None:
        with self.assertRaisesRegex(StudyError, "new-kind"):
            of(a={"new-kind x 16 one": "A"})


class TheCost(unittest.TestCase):
    def test_is_the_mean_of_ratios_of_a_round(self) -> None:
        samples = [
            {"row": row, "allocator": name, "round": number, "seconds": base * factor}
            for row, factors in (("x", (1, 2)), ("y", (1, 8)))
            for name, factor in zip(("glibc", "a"), factors, strict=True)
            for number, base in enumerate((1.0, 3.0, 2.0))
        ]
        found = cost.ratio(samples, "a", "seconds")
        assert found is not None
        self.assertAlmostEqual(found, 4.0)
        lacks = [one for one in samples if (one["row"], one["allocator"]) != ("y", "a")]
        self.assertIsNone(cost.ratio(lacks, "a", "seconds"))


class TheStudy(unittest.TestCase):
    def test_shows_each_allocator_once(self) -> None:
        record = Record("misuse", {}, {}, [Allocator(name) for name in ("glibc", "brimful", "own")])
        outcomes = {"glibc": "S", "brimful": "A", "own": "H"}
        record.results["cases"] = [{"case": DOUBLE, "outcomes": outcomes}]
        told = "\n".join(study.told(record))
        for head in ("| fault | brimful |", "| fault | glibc |", "| fault | own |"):
            self.assertEqual(told.count(head), 1)

    def test_takes_in_what_only_the_probe_refuses(self) -> None:
        with mock.patch.object(allocators, "build_folder", lambda: ROOT / "bench"):
            record = Record("misuse", {}, {}, [Allocator(study.ISOALLOC, missing="flaw")])
            self.assertEqual(study.flawed(Run(study.STUDY, Namespace(), record)), [])


if __name__ == "__main__":
    unittest.main()
