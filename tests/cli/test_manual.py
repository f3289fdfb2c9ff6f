#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The manual page tells the truth: it formats without complaint and names what really exists.

The options of the library are read from their one table in src/config/options.h, those of `run` from
its parser, so that a new option without a word in the manual fails here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "man" / "brimful.1"
TABLE = ROOT / "src" / "config" / "options.h"
sys.path.insert(0, str(ROOT / "cli"))

from brimful import program, run  # noqa: E402


class Manual(unittest.TestCase):
    def test_it_formats_without_a_warning(self) -> None:
        if not shutil.which("man"):
            self.skipTest("man is not installed")
        done = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-Tutf8", "-l", str(PAGE)],
            capture_output=True,
            text=True,
            env=os.environ | {"MANROFFSEQ": "", "MANWIDTH": "80"},
            timeout=60,
        )
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr, "")
        self.assertIn("BRIMFUL(1)", done.stdout)

    def test_mandoc_finds_nothing_to_criticise(self) -> None:
        if not shutil.which("mandoc"):
            self.skipTest("mandoc is not installed")
        done = subprocess.run(
            ["mandoc", "-T", "lint", "-W", "warning", str(PAGE)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.stdout, "")

    def test_it_names_every_option_of_the_library_with_its_values_and_default(self) -> None:
        page = PAGE.read_text()
        found = re.findall(r'\{"(\w+)", &Options::\w+, (nullptr|"[^"]*")', TABLE.read_text())
        self.assertGreater(len(found), 3, "the table's form changed: adapt this test")
        for name, words in found:
            with self.subTest(option=name):
                line = next(
                    (line for line in page.splitlines() if line.startswith(f".It Cm {name} ")), ""
                )
                self.assertTrue(line, f"{name} is not in the manual")
                if words != "nullptr":
                    self.assertIn(words.strip('"').replace("|", " | "), line)

    def test_it_names_no_option_that_does_not_exist(self) -> None:
        table = TABLE.read_text()
        for name in re.findall(r"^\.It Cm (\w+) :", PAGE.read_text(), re.MULTILINE):
            with self.subTest(option=name):
                self.assertIn(f'{{"{name}", &Options::', table)

    def test_it_names_every_option_and_exit_code_of_run(self) -> None:
        page = PAGE.read_text()
        for option in run.OPTIONS:
            self.assertIn(f".It Fl Fl {option.removeprefix('--')} ", page)
        for code in (run.EXIT_FAILURE, program.EXIT_CANNOT_RUN, program.EXIT_NOT_FOUND):
            self.assertIn(f".It {code}\n", page)


if __name__ == "__main__":
    unittest.main()
