#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The manual page tells the truth: it formats without complaint and names what really exists.

The options of `run` are read from its parser. Those of the library are compared by
tools/check_options.py, those of the other commands by tools/check_commands.py, and the examples run
in tests/pages/.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "man" / "brimful.1"
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

    def test_it_names_every_option_and_exit_code_of_run(self) -> None:
        page = PAGE.read_text()
        for option in run.OPTIONS:
            self.assertIn(f".It Fl Fl {option.removeprefix('--')} ", page)
        for code in (run.EXIT_FAILURE, program.EXIT_CANNOT_RUN, program.EXIT_NOT_FOUND):
            self.assertIn(f".It {code}\n", page)


if __name__ == "__main__":
    unittest.main()
