#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The gate: each exit code is reached by a pair of results that deserves it, and only by those."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import unittest
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cli"))

from fake_results import constructed

from brimful.bench import gate, model
from brimful.bench.compare import main_compare
from brimful.bench.gate import Outcome, compare
from brimful.bench.model import MEMORY, Result, Status
from brimful.bench.tables import FIGURE, OTHER

CRASH = (Status.CRASHED, "killed by signal 6")
TRUTH = {
    name: {"glibc": 1.0, "jemalloc": 0.9, "snmalloc": 0.7, "brimful": 0.75}
    for name in ("larson", "cfrac", "redis", "lua")
}


def changed(
    factor: float, *cells: str, allocator: str = "brimful", truth: Any = None
) -> dict[str, dict[str, float]]:
    """TRUTH with one allocator slower by `factor` in these cells (in all if none is named)."""
    return {
        cell: {
            k: v * factor if k == allocator and cell in (cells or TRUTH) else v
            for k, v in row.items()
        }
        for cell, row in (truth or TRUTH).items()
    }


def run(times: Mapping[str, Mapping[str, float]] = TRUTH, seed: int = 1, **more: Any) -> Result:
    return constructed(times, seed=seed, **({"spread": 0.003} | more))


class TheExitCode(unittest.TestCase):
    """main_compare on real files: the code and what it prints."""

    def gate(self, a: Result, b: Result, fail_over: float = 0.03, **more: Any) -> tuple[int, str]:
        """The code and what was printed, of results in files."""
        with tempfile.TemporaryDirectory() as folder:
            paths = Path(folder, "a.json"), Path(folder, "b.json")
            for result, path in zip((a, b), paths, strict=True):
                model.save(result, path)
            return self.of_files(*paths, fail_over, **more)

    def of_files(
        self, a: Path, b: Path, fail_over: float = 0.03, columns: str = "150", **more: Any
    ) -> tuple[int, str]:
        text = io.StringIO()
        wide = mock.patch.dict(os.environ, COLUMNS=columns)
        with wide, contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            code = main_compare(a, b, fail_over, **more)
        return code, text.getvalue()

    def test_is_0_if_nothing_changed(self) -> None:
        code, text = self.gate(run(seed=1), run(seed=2))
        self.assertEqual(code, gate.FINE, text)
        self.assertIn("FINE", text)

    def test_no_figure_is_cut_off_where_a_pipe_has_80_columns(self) -> None:
        times = {"thread-sweep@2048": TRUTH["lua"]}
        worse = {"thread-sweep@2048": TRUTH["lua"] | {"brimful": 12.5}}
        larger = {"thread-sweep@2048": {"brimful": 123456.0}}
        a, b = run(times, seed=1, spread=0.05), run(worse, seed=2, spread=0.05, memory=larger)
        _, text = self.gate(a, b, columns="80")
        self.assertIn("thread-sweep@2048", text)
        self.assertRegex(text, r"thread-sweep@2048 ×1\d\.\d\d .*REGRESSION ×1\d\.\d\d .*REGRESSION")
        self.assertNotIn("…", text)

    def test_is_0_if_it_became_faster(self) -> None:
        self.assertEqual(self.gate(run(seed=1), run(changed(0.8), seed=2))[0], gate.FINE)

    def test_is_0_for_a_change_below_the_limit(self) -> None:
        self.assertEqual(self.gate(run(seed=1), run(changed(1.01), seed=2))[0], gate.FINE)

    def test_is_1_if_one_row_became_slower_than_the_limit_allows(self) -> None:
        code, text = self.gate(run(seed=1), run(changed(1.1, "cfrac"), seed=2))
        self.assertEqual(code, gate.REGRESSED)
        lines = {line.split()[0]: line for line in text.splitlines() if line.split()}
        self.assertIn("REGRESSION", lines["cfrac"])
        self.assertNotIn("REGRESSION", lines["larson"])

    def test_is_1_if_it_became_larger(self) -> None:
        larger = {"lua": {"brimful": 11000.0}}
        self.assertEqual(self.gate(run(seed=1), run(seed=2, memory=larger))[0], gate.REGRESSED)

    def test_is_1_if_what_worked_fails_now(self) -> None:
        code, text = self.gate(run(seed=1), run(seed=2, failures={("redis", "brimful"): CRASH}))
        self.assertEqual(code, gate.REGRESSED)
        self.assertIn("BROKEN redis: crashed in B: killed by signal 6", text)

    def test_is_2_for_a_file_that_cannot_be_read_or_is_no_result(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.json")
            code, text = self.of_files(path, path)
            self.assertEqual((code, text.count("\n")), (gate.USAGE, 1))
            self.assertIn("cannot read", text)
            path.write_text('{"schema": "something/9"}')
            self.assertEqual(self.of_files(path, path)[0], gate.USAGE)

    def test_is_2_if_there_is_nothing_in_common(self) -> None:
        others = {"elsewhere": TRUTH["lua"]}
        self.assertEqual(self.gate(run(), run(others))[0], gate.USAGE)
        self.assertEqual(self.gate(run(ours=()), run(ours=()))[0], gate.USAGE)
        self.assertEqual(self.gate(run(), run(), allocators=["nobody"])[0], gate.USAGE)
        alone = {cell: {"brimful": 1.0} for cell in TRUTH}
        self.assertEqual(self.gate(run(alone), run(alone))[0], gate.USAGE)
        self.assertEqual(self.gate(run(alone), run(alone, 2), absolute=True, fail_over=0.2)[0], 0)

    def test_is_3_if_the_interval_holds_the_limit(self) -> None:
        code, text = self.gate(run(seed=1, spread=0.3), run(seed=2, spread=0.3))
        self.assertEqual(code, gate.TOO_NOISY)
        self.assertIn("TOO NOISY to say", text)

    def test_is_3_if_there_are_too_few_rounds(self) -> None:
        self.assertEqual(self.gate(run(rounds=4), run(seed=2, rounds=4))[0], gate.TOO_NOISY)

    def test_is_1_even_if_other_rows_are_too_noisy(self) -> None:
        noisy = run(seed=2, spread=0.3, failures={("redis", "brimful"): CRASH})
        self.assertEqual(self.gate(run(seed=1, spread=0.3), noisy)[0], gate.REGRESSED)

    def test_is_0_if_only_a_few_rows_are_too_noisy(self) -> None:
        code, text = self.gate(*self.with_one_wild_row(0.2))
        self.assertIn("2 too noisy", text)  # its time and its size
        self.assertEqual(code, gate.FINE)

    def test_is_3_if_one_row_is_so_noisy_that_the_mean_is_too(self) -> None:
        code, text = self.gate(*self.with_one_wild_row(1.5))
        self.assertRegex(text, "mean of times .*TOO NOISY")
        self.assertEqual(code, gate.TOO_NOISY)

    def with_one_wild_row(self, spread: float) -> tuple[Result, Result]:
        many = {f"row{k}": TRUTH["lua"] for k in range(12)}
        a, b = run(many, seed=1), run(many, seed=2)
        wild = run({"row0": TRUTH["lua"]}, seed=3, spread=spread)
        b.samples = [s for s in b.samples if s.cell != "row0"] + wild.samples
        return a, b


class AComparison(unittest.TestCase):
    def test_a_slower_machine_is_no_regression_unless_asked_for(self) -> None:
        slow_day = {cell: {k: 1.3 * v for k, v in row.items()} for cell, row in TRUTH.items()}
        a, b = run(seed=1, drift=0.01), run(slow_day, seed=2, drift=0.01)
        self.assertEqual(compare(a, b, 0.03).exit_code, gate.FINE)
        absolute = compare(a, b, 0.03, absolute=True)
        times = [c for c in absolute.changes if c.metric == FIGURE and c.ratio]
        for change in times:
            self.assertAlmostEqual(change.ratio.median if change.ratio else 0, 1.3, delta=0.03)
            # The unchanged rivals moved as far: the floor keeps it from being called brimful's.
            self.assertGreater(change.floor, 0.25)

    def test_absolute_sees_a_regression_on_a_steady_machine(self) -> None:
        a, b = run(seed=1, drift=0.002), run(changed(1.1), seed=2, drift=0.002)
        self.assertEqual(compare(a, b, 0.03, absolute=True).exit_code, gate.REGRESSED)
        self.assertEqual(compare(a, a, 0.03, absolute=True).exit_code, gate.FINE)

    def test_a_rival_that_changed_is_no_reference(self) -> None:
        b = run(changed(2.0, allocator="jemalloc"), seed=2, sha256={"jemalloc": "f" * 64})
        found = compare(run(seed=1), b, 0.03)
        self.assertEqual(found.references, ("glibc", "snmalloc"))
        self.assertIn("jemalloc is another library in B, so it is no reference", found.warnings)
        self.assertEqual(found.exit_code, gate.FINE)

    def test_what_unchanged_rivals_do_too_is_not_called_a_regression(self) -> None:
        # snmalloc is the same library and yet 30 % slower in cfrac: the row is not to be trusted.
        odd = changed(1.2, "cfrac", truth=changed(1.3, "cfrac", allocator="snmalloc"))
        change = next(
            c for c in compare(run(seed=1), run(odd, seed=2), 0.03).changes if c.cell == "cfrac"
        )
        self.assertGreater(change.ratio.low if change.ratio else 0, 1.03)
        self.assertGreater(change.floor, 0.25)
        self.assertIsNot(change.outcome, Outcome.REGRESSION)

    def test_a_reference_that_fails_in_one_row_is_left_out_of_that_row_in_both(self) -> None:
        b = run(seed=2, failures={("lua", "snmalloc"): CRASH})
        found = compare(run(seed=1), b, 0.03)
        self.assertEqual(found.exit_code, gate.FINE)
        self.assertEqual(len([c for c in found.changes if c.cell == "lua"]), 2)

    def test_rows_that_cannot_be_compared_are_named_with_the_reason(self) -> None:
        a = run(seed=1, failures={("lua", "brimful"): CRASH})
        b = run({cell: TRUTH[cell] for cell in ("larson", "cfrac", "lua")}, seed=2)
        b.cells[1] = replace(b.cells[1], command=("cfrac", "--other"))
        left_out = {(cell, name): reason for cell, name, reason in compare(a, b, 0.03).left_out}
        self.assertEqual(left_out["redis", ""], "only in A")
        self.assertEqual(left_out["cfrac", ""], "another command or figure in A than in B")
        self.assertEqual(left_out["lua", "brimful"], "crashed in A: killed by signal 6")

    def test_the_same_program_in_another_folder_is_the_same_work(self) -> None:
        a, b = run(seed=1), run(seed=2)
        for result, folder in ((a, "/one"), (b, "/two")):
            result.cells = [replace(c, command=(f"{folder}/{c.name}", "7")) for c in result.cells]
        self.assertEqual(compare(a, b, 0.03).left_out, ())

    def test_another_machine_is_a_warning(self) -> None:
        b = run(seed=2)
        b.environment["kernel"] = "7.0.0"
        b.finished = False
        warnings = compare(run(seed=1), b, 0.03).warnings
        self.assertIn("another kernel: 6.1.0 in A, 7.0.0 in B", warnings)
        self.assertTrue(any("B did not run to its end" in line for line in warnings))

    def test_a_figure_that_is_no_time_is_judged_by_itself(self) -> None:
        results = [run(seed=1), run(seed=2)]
        for result, value in zip(results, (30.0, 60.0), strict=True):
            result.cells[0] = replace(result.cells[0], figure="resident_idle_end_mib")
            result.samples = [
                replace(
                    s, extra={"resident_idle_end_mib": value if s.allocator == "brimful" else 9.0}
                )
                for s in result.samples
            ]
        found = compare(results[0], results[1], 0.03)
        metrics = {c.metric: c.outcome for c in found.changes if c.cell == "larson"}
        self.assertEqual(metrics, {OTHER: Outcome.REGRESSION, MEMORY: Outcome.FINE})
        self.assertEqual(found.left_out, ())

    def test_any_allocator_can_be_gated_by_name(self) -> None:
        found = compare(
            run(seed=1),
            run(changed(1.2, allocator="jemalloc"), seed=2),
            0.03,
            allocators=["jemalloc"],
        )
        self.assertNotIn("jemalloc", found.references)
        self.assertEqual(found.exit_code, gate.REGRESSED)
        self.assertEqual({o.metric: o.outcome for o in found.overall}[MEMORY], Outcome.FINE)

    def test_runs_of_the_same_thing_seldom_look_like_a_regression(self) -> None:
        rows = {f"row{k}": TRUTH["lua"] for k in range(60)}
        found = compare(run(rows, seed=5, spread=0.03), run(rows, seed=6, spread=0.03), 0.01)
        regressions = [c for c in found.changes if c.outcome is Outcome.REGRESSION]
        self.assertLessEqual(len(regressions), 1)


if __name__ == "__main__":
    unittest.main()
