# SPDX-License-Identifier: MIT
"""A throw-away source tree, and a checker of tools/ run on it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"


class Tree(unittest.TestCase):
    """Each test starts with an empty folder."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run_checker(self, name: str, *arguments: str) -> tuple[int, str]:
        """Exit code and output of tools/NAME; nothing of this run's environment reaches it."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BRIMFUL_")}
        done = subprocess.run(
            [sys.executable, str(TOOLS / name), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=environment,
        )
        return done.returncode, done.stdout + done.stderr


class CheckedTree(Tree):
    """A tree that `checker` accepts, to be damaged in one place at a time."""

    checker: str

    def check(self) -> tuple[int, str]:
        return self.run_checker(self.checker, "--root", str(self.root))

    def rejects(self, name: str, old: str, new: str, reason: str) -> None:
        with self.subTest(name=name, new=new):
            text = (self.root / name).read_text()
            self.assertIn(old, text)
            self.write(name, text.replace(old, new))
            code, output = self.check()
            self.assertEqual(code, 1, output)
            self.assertIn(reason, output)
            self.write(name, text)
