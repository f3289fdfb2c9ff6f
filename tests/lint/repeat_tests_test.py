#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`make repeat` finds a test that fails now and then, keeps what it knows, and goes on from there."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools/repeat_tests.py"
TESTS = """
add_test(x.good "/bin/sh" "-c" "echo >> {folder}/good")
add_test(x.third "/bin/sh" "-c" "echo >> {folder}/third; test $(wc -l < {folder}/third) -ne 3")
add_test(x.absent "/bin/sh" "-c" "exit 77")
set_tests_properties(x.absent PROPERTIES SKIP_RETURN_CODE "77")
add_test(x.late "/bin/sh" "-c" "sleep 60")
set_tests_properties(x.late PROPERTIES TIMEOUT "1")
add_test(x.logic "/bin/sh" "-c" "exit 1")
set_tests_properties(x.logic PROPERTIES LABELS "lint")
"""


class Repeats(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "CTestTestfile.cmake").write_text(TESTS.replace("{folder}", folder.name))

    def repeat(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(TOOL), str(self.folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def runs(self, name: str) -> int:
        return len((self.folder / name).read_text().splitlines())

    def test_find_the_run_that_fails_and_keep_what_it_said(self) -> None:
        done = self.repeat("-n", "5", "-R", "good|third|absent|logic")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("FAILED   x.third, run 3", done.stdout)
        self.assertIn(
            "1 of 3 tests ran 5 times (8 runs in all), 1 can't run here, 1 failed", done.stdout
        )
        self.assertEqual(self.runs("good"), 5)
        self.assertEqual(self.runs("third"), 3)
        self.assertTrue((self.folder / "repeats/x.third.3.txt").exists())

    def test_go_on_where_they_were_stopped(self) -> None:
        self.assertEqual(self.repeat("-n", "2", "-R", "good").returncode, 0)
        with (self.folder / "repeats.jsonl").open("a") as file:
            file.write('{"test": "x.go')  # the disk was full
        self.assertEqual(self.repeat("-n", "5", "-R", "good").returncode, 0)
        self.assertEqual(self.runs("good"), 5)
        self.assertIn("0 of 1 tests are to run", self.repeat("-n", "5", "-R", "good").stdout)

    def test_begin_anew_when_something_has_changed(self) -> None:
        self.assertEqual(self.repeat("-n", "2", "-R", "good").returncode, 0)
        tally = self.folder / "repeats.jsonl"
        visit = json.loads(tally.read_text())
        tally.write_text(json.dumps(visit | {"digest": "another"}) + "\n")
        self.assertEqual(self.repeat("-n", "2", "-R", "good").returncode, 0)
        self.assertEqual(self.runs("good"), 4)

    def test_end_a_test_that_takes_too_long(self) -> None:
        done = self.repeat("-n", "1", "-R", "late")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("killed after 1 s", (self.folder / "repeats/x.late.1.txt").read_text())

    def test_name_no_test(self) -> None:
        self.assertEqual(self.repeat("-R", "nothing").returncode, 2)


if __name__ == "__main__":
    unittest.main()
