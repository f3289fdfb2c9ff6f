#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A league can be stopped anywhere and goes on; what it says of rows has enough rounds behind it.

No allocator runs here: sample.run is replaced by one that knows each allocator's true time. The test
that kills a league does so to a process of its own, in the middle of a round.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "cli")]

from fake_results import constructed  # noqa: E402

from brimful.bench import catalog, checkpoint, model, passes, statistics, summary  # noqa: E402
from brimful.bench.model import Allocator, Cell, Curve, Result, Sample, Status  # noqa: E402
from brimful.bench.study import pages, registry  # noqa: E402
from brimful.bench.tables import FIGURE  # noqa: E402
from brimful.bench.wording import counted  # noqa: E402
from studies.league import front_page  # noqa: E402

PRESET = catalog.PRESETS["league"]
ALLOCATORS = [
    Allocator("glibc", sha256="0"),
    Allocator("rival", library="/r.so", sha256="1"),
    Allocator("slow", library="/s.so", sha256="2"),
    Allocator("brimful", library="/b.so", sha256="3", ours=True),
]
TIMES = {"glibc": 1.0, "rival": 0.8, "slow": 9.0, "brimful": 0.7}
HEAD = Result({"cpu": "x", "memory_mib": 1000}, {"baseline": "glibc", "seed": 1}, ALLOCATORS, [])


class FakeRuns:
    """Stands for sample.run. Rows named "noisy…" vary by half; after `stop_after` calls Ctrl-C."""

    def __init__(self, stop_after: int = 10**9, pause_s: float = 0.0) -> None:
        self.calls: list[tuple[str, str, int]] = []
        self.stop_after = stop_after
        self.pause_s = pause_s
        self.chance = random.Random(7)

    def __call__(
        self, cell: Cell, allocator: Allocator, number: int, **how: Any
    ) -> tuple[Sample, Curve | None, list[Any]]:
        self.calls.append((cell.name, allocator.name, number))
        if len(self.calls) > self.stop_after:
            raise KeyboardInterrupt
        time.sleep(self.pause_s)
        spread = 0.5 if cell.name.startswith("noisy") else 0.001
        seconds = TIMES[allocator.name] * (1 + spread * self.chance.uniform(-1, 1))
        metrics = {"seconds": seconds, "wall_s": seconds, "peak_rss_kib": 1000.0}
        again = bool(how.get("again"))
        taken = Sample(cell.name, allocator.name, number, Status.OK, again=again, metrics=metrics)
        return taken, None, []


def works(*names: str) -> list[catalog.Work]:
    return [catalog.Work(Cell(name, name, "single", command=("true",)), 10) for name in names]


def league(folder: str, *names: str) -> passes.League:
    return passes.League(checkpoint.Folder(Path(folder)), HEAD, works(*names), PRESET)


def run(games: passes.League, runs: FakeRuns, budget_s: float = 1e9) -> tuple[bool, list[str]]:
    """Whether it came to its end, and "pass row rounds" of each row that got its rounds."""
    log: list[str] = []

    def done(step: passes.Done) -> None:
        log.append(f"{step.number} {step.row.name} {step.row.kept.rounds}")

    with mock.patch("brimful.bench.sample.run", runs):
        return games.run(budget_s, lambda step: None, done), log


class InAFolder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name


class Passes(InAFolder):
    def test_every_row_gets_its_least_rounds_before_a_noisy_one_gets_more(self) -> None:
        games = league(self.folder, "noisy", "calm")
        complete, log = run(games, FakeRuns())
        self.assertTrue(complete)
        self.assertEqual(log, ["1 noisy 5", "1 calm 5", "2 noisy 10"])

    def test_who_is_far_slower_sits_out_the_later_rounds_and_is_named(self) -> None:
        runs = FakeRuns()
        games = league(self.folder, "noisy")
        run(games, runs)
        rounds = {number for _, name, number in runs.calls if name == "slow"}
        self.assertEqual(rounds, set(range(5)))
        (result,) = dict(games.results()).values()
        self.assertEqual(result.options["sat_out"], {"noisy": ["slow"]})

    def test_the_plan_is_what_was_measured_times_what_is_left(self) -> None:
        games = league(self.folder, "noisy", "calm")
        unmeasured = 5 * passes.USUAL_WORKLOAD_S * (len(ALLOCATORS) + 1)
        self.assertEqual(games.left_s(), (2 * unmeasured, 2 * unmeasured))
        noisy = games.rows[0]
        with mock.patch("brimful.bench.sample.run", FakeRuns()):
            games.run(0.0, lambda step: None, lambda done: None)
        self.assertEqual(noisy.kept.rounds, 0)  # no time, nothing measured
        run(games, FakeRuns())
        noisy.kept.rounds, noisy.kept.cost_s = 5, 10.0
        self.assertEqual(games.left_s(), (0.0, 5 * 2.0))


class GoingOn(InAFolder):
    def test_after_ctrl_c_the_whole_rounds_are_there_and_no_part_of_one(self) -> None:
        first = FakeRuns(stop_after=1 + 2 * 5 + 3)  # the warm-up, two rounds, three of the third
        with self.assertRaises(KeyboardInterrupt):
            run(league(self.folder, "calm"), first)
        games = league(self.folder, "calm")
        self.assertEqual(games.rows[0].kept.rounds, 2)
        self.assertEqual({taken.round for taken in games.rows[0].kept.result.samples}, {0, 1})
        second = FakeRuns()
        complete, _ = run(games, second)
        self.assertTrue(complete)
        self.assertEqual({number for _, _, number in second.calls}, {2, 3, 4})
        (result,) = dict(games.results()).values()
        of_brimful = [taken.round for taken in result.samples if taken.allocator == "brimful"]
        self.assertEqual(of_brimful, [0, 1, 2, 3, 4])
        self.assertTrue(result.finished)

    def test_a_kill_in_the_middle_of_a_round_costs_that_round(self) -> None:
        child = subprocess.Popen([sys.executable, __file__, "--endless", self.folder])
        path = Path(self.folder) / "rows" / "noisy.json"
        until = time.monotonic() + 60
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait()
        row = league(self.folder, "noisy").rows[0]
        self.assertEqual(row.why_anew, "")
        self.assertIn(row.kept.rounds, range(1, 10))
        self.assertEqual(len(row.kept.result.samples), 5 * row.kept.rounds)

    def test_a_row_of_another_program_or_a_damaged_file_begins_anew_and_says_so(self) -> None:
        run(league(self.folder, "calm", "noisy"), FakeRuns())
        with mock.patch.object(checkpoint, "files_of", lambda cell: f"other {cell.name == 'calm'}"):
            games = league(self.folder, "calm", "noisy")
        self.assertEqual([row.kept.rounds for row in games.rows], [0, 0])
        self.assertIn("program", games.rows[0].why_anew)
        path = Path(self.folder) / "rows" / "calm.json"
        path.write_text(path.read_text()[:100])
        row = league(self.folder, "calm").rows[0]
        self.assertEqual((row.kept.rounds, row.why_anew), (0, "its file is damaged"))

    def test_another_library_machine_or_mode_is_refused_and_another_commit_is_not(self) -> None:
        def unlike(**change: Any) -> list[str]:
            return checkpoint.differences(HEAD, replace(HEAD, **change))

        rebuilt = [*ALLOCATORS[:3], replace(ALLOCATORS[3], sha256="4")]
        self.assertIn("brimful: another library", unlike(allocators=rebuilt)[0])
        self.assertIn("slow: not there now", unlike(allocators=ALLOCATORS[:2] + ALLOCATORS[3:])[0])
        percpu = [*ALLOCATORS[:3], replace(ALLOCATORS[3], mode="per thread")]
        self.assertIn("another mode", unlike(allocators=percpu)[0])
        self.assertIn("another CPU", unlike(environment={"cpu": "y", "memory_mib": 1000})[0])
        same = {"cpu": "x", "memory_mib": 1001, "commit": "other"}
        self.assertEqual(unlike(environment=same), [])

    def test_two_leagues_in_one_folder_do_not_mix(self) -> None:
        folder = checkpoint.Folder(Path(self.folder))
        other = checkpoint.Folder(Path(self.folder))
        refused = self.assertRaisesRegex(checkpoint.CheckpointError, "another league")
        with folder.held(), refused, other.held():
            self.fail("both were let in")


class EnoughRounds(unittest.TestCase):
    def test_ten_rounds_or_five_that_agree(self) -> None:
        def ratio(pairs: int, width: float) -> statistics.Ratio:
            return statistics.Ratio(0.5, 0.5 / (1 + width), 0.5 * (1 + width), pairs)

        self.assertTrue(statistics.enough_rounds(ratio(10, 0.5)))
        self.assertTrue(statistics.enough_rounds(ratio(5, 0.029)))
        self.assertFalse(statistics.enough_rounds(ratio(9, 0.031)))
        self.assertFalse(statistics.enough_rounds(ratio(4, 0.001)))

    def test_a_row_with_few_noisy_rounds_is_neither_won_nor_lost_but_counted(self) -> None:
        times = {"a": {"glibc": 1.0, "brimful": 0.3}, "b": {"glibc": 1.0, "brimful": 3.0}}
        result = constructed(times, rounds=6, spread=0.08)
        few = summary.summarize(result).verdicts("brimful", FIGURE)
        self.assertEqual((len(few.wins), len(few.losses), len(few.open)), (0, 0, 2))
        found = summary.summarize(constructed(times, rounds=10, spread=0.08))
        many = found.verdicts("brimful", FIGURE)
        self.assertEqual([one.cell for one in (*many.wins, *many.losses)], ["a", "b"])
        self.assertIn("shown to win in 1, to lose in 1", counted(found, "brimful")[0])


class TheFrontPage(unittest.TestCase):
    def test_it_shows_the_means_and_how_many_rows_are_won_and_lost(self) -> None:
        times = {f"r{k}": {"glibc": 1.0, "rival": 0.5, "brimful": 0.8} for k in range(6)}
        files = {"league": ROOT / "bench" / "results" / "league-2026.json"}
        text = "\n".join(front_page.block({"league": constructed(times)}, files))
        self.assertIn("| **brimful** | 0.8", text)
        self.assertIn("shown to win in 0 of 6, to lose in 6", text)
        self.assertIn("[league-2026.json](bench/results/league-2026.json)", text)

    def test_it_is_a_page_of_the_study(self) -> None:
        study = registry.load("league")
        assert study.figures is not None
        self.assertIn("README.md", study.pages)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "league-2026.json"
            times = {f"r{k}": {"glibc": 1.0, "rival": 0.5, "brimful": 0.8} for k in range(6)}
            model.save(constructed(times), file)
            made = study.figures(pages.Place(ROOT / "README.md"), {"league": file})
        self.assertIn("docs/img/league-frontier-light.svg", made[""][0])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--endless"]:
        run(league(sys.argv[2], "noisy"), FakeRuns(pause_s=0.02))
        os._exit(0)
    unittest.main()
