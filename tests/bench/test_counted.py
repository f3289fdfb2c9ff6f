#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counted rows: whose instructions a profile says they are, and what the gate makes of two counts.

test_hot_rows.py counts and compares; here no program runs.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cli"))

from brimful.bench import catalog, counted, gate, model
from brimful.bench.compare import main_compare
from brimful.bench.model import COUNTED, Allocator, Cell, Result, Sample, Status

# Two objects; the line behind `calls=` is what the called function cost in all.
PROFILE = """\
positions: line
ob=(1) /opt/one.so
fn=(1) first
10 100
+2 20
cob=(2) /opt/two.so
cfn=(2) second
calls=3 7
* 5000
-1 3
ob=(2)
fn=(2)
7 4000
* 1000
totals: 5123
"""


def result(**figures: float) -> Result:
    """Counts of rows by name."""
    ours = Allocator("brimful", library="/b.so", ours=True)
    cells = [Cell(name, name, "single", figure=COUNTED) for name in figures]
    samples = [
        Sample(name, "brimful", 0, Status.OK, extra={COUNTED: figure})
        for name, figure in figures.items()
    ]
    return Result({}, {}, [ours], cells, samples, finished=True)


def gated(a: Result, b: Result) -> tuple[int, str]:
    """The exit code at 1 %, and what was printed."""
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "a.json"), Path(folder, "b.json")
        for one, path in zip((a, b), paths, strict=True):
            model.save(one, path)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = main_compare(*paths, 0.01)
    return code, printed.getvalue()


class AProfile(unittest.TestCase):
    def test_gives_each_object_what_ran_in_it_and_not_what_it_called(self) -> None:
        self.assertEqual(counted.by_object(PROFILE), {"/opt/one.so": 123, "/opt/two.so": 5000})


class TheRows(unittest.TestCase):
    def test_are_ten_of_the_catalog(self) -> None:
        self.assertEqual(len(counted.ROWS), 10)
        known = {
            work.cell.name
            for name in counted.ROWS
            for work in catalog.asked_for(catalog.PRESETS["full"], name)
        }
        self.assertLessEqual(set(counted.ROWS), known)


class TheGate(unittest.TestCase):
    def test_fails_for_one_row_of_two_percent_with_both_figures(self) -> None:
        code, text = gated(result(cfrac=50.0, calloc=90.0), result(cfrac=51.0, calloc=90.0))
        self.assertEqual(code, gate.REGRESSED, text)
        self.assertIn("REGRESSION cfrac: 50.00 → 51.00 instructions_per_operation", text)
        self.assertNotIn("REGRESSION calloc", text)

    def test_needs_neither_further_samples_nor_another_allocator(self) -> None:
        code, text = gated(result(cfrac=50.0), result(cfrac=50.4))
        self.assertEqual(code, gate.FINE, text)
        self.assertIn("+0.80%", text)

    def test_lets_a_row_become_cheaper(self) -> None:
        self.assertEqual(gated(result(cfrac=50.0), result(cfrac=40.0))[0], gate.FINE)


if __name__ == "__main__":
    unittest.main()
