#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Nobody's mistake ends in a traceback: full disks, closed outputs, Ctrl-C, terminals that lack letters.

Every test starts the real launcher in a fresh process and looks at its exit code and at everything it said.
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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = str(ROOT / "brimful")
GUARDED = """
import sys
sys.path.insert(0, sys.argv[1])
from brimful import terminal

def main():
    {body}
    return 0

sys.exit(terminal.guarded("test", main))
"""


def shell(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a line of bash says in which "$0" is the launcher."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line, LAUNCHER],
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def guarded(body: str, **options: object) -> subprocess.CompletedProcess[str]:
    """A process whose main function has this body."""
    return subprocess.run(  # type: ignore[call-overload]
        [sys.executable, "-c", GUARDED.format(body=body), str(ROOT / "cli")],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        **{"stdout": subprocess.PIPE, **options},
    )


class AFullDisk(unittest.TestCase):
    def test_under_the_output_costs_one_line(self) -> None:
        for command in ("--help", "run --help", "--version"):
            with self.subTest(command=command):
                done = shell(f'"$0" {command} > /dev/full')
                self.assertEqual(done.stderr, "brimful: No space left on device\n")
                self.assertEqual(done.returncode, 1)

    def test_names_the_file_that_could_not_be_written(self) -> None:
        done = guarded('raise OSError(28, "No space left on device", "/mnt/results.json")')
        self.assertEqual(done.stderr, "test: No space left on device: /mnt/results.json\n")
        self.assertEqual(done.returncode, 1)

    @unittest.skipIf(os.getuid() != 0, "a small file system to fill is root's to mount")
    def test_keeps_the_old_result_and_no_half_one(self) -> None:
        sys.path.insert(0, str(ROOT / "cli"))
        from brimful.bench import model

        with tempfile.TemporaryDirectory() as name:
            mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", name]
            if subprocess.run(mount, capture_output=True).returncode != 0:
                self.skipTest("nothing can be mounted here")
            try:
                path = Path(name) / "results.json"
                path.write_text("the old one")
                (Path(name) / "filler").write_bytes(b"x" * 12288)
                result = model.Result(
                    environment={"x": "y" * 9000}, options={}, allocators=[], cells=[]
                )
                with self.assertRaises(OSError) as caught:
                    model.save(result, path)
                self.assertEqual(caught.exception.filename, str(path))
                self.assertEqual(path.read_text(), "the old one")
                self.assertEqual(sorted(os.listdir(name)), ["filler", "results.json"])
            finally:
                subprocess.run(["umount", name], check=True)


class TheOutput(unittest.TestCase):
    def test_may_be_closed(self) -> None:
        for closed in (">&-", "2>&-", ">&- 2>&-"):
            with self.subTest(closed=closed):
                done = shell(f'"$0" --version {closed}')
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_may_lose_its_reader(self) -> None:
        with subprocess.Popen(["true"], stdin=subprocess.PIPE) as reader:
            assert reader.stdin is not None
            reader.wait()
            done = guarded("print('x' * 100000)", stdout=reader.stdin.fileno())
        self.assertEqual((done.returncode, done.stderr), (141, ""))

    def test_may_be_a_terminal_that_lacks_letters(self) -> None:
        for coding in ("ascii", "latin-1"):
            with self.subTest(coding=coding):
                done = guarded(
                    "print('1.5 × … 0.9')",
                    env=os.environ | {"PYTHONIOENCODING": coding},
                    errors="replace",
                )
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertRegex(done.stdout, r"^1\.5 . \? 0\.9\n$")

    def test_may_be_narrow_dumb_or_without_colours(self) -> None:
        for variables in (
            {"COLUMNS": "40"},
            {"COLUMNS": "1"},
            {"TERM": "dumb"},
            {"NO_COLOR": "1"},
            {"TERM": ""},
            {"LC_ALL": "C"},
            {"LC_ALL": "no_SUCH.locale"},
            {"HOME": "/nonexistent"},
            {"PYTHONPATH": "/nonexistent", "PYTHONHOME": "/nonexistent", "PYTHONSTARTUP": "/x"},
            {"PATH": ""},
        ):
            with self.subTest(variables=variables):
                done = subprocess.run(
                    [LAUNCHER, "bench", "--help"],
                    env=os.environ | variables,
                    capture_output=True,
                    text=True,
                    timeout=60,
                )
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertNotIn("\x1b", done.stdout)

    def test_of_a_usage_error_is_one_line(self) -> None:
        for arguments in (
            ["frobnicate"],
            ["--frobnicate"],
            ["bench", "frobnicate"],
            ["bench", "--frob"],
        ):
            with self.subTest(arguments=arguments):
                done = subprocess.run(
                    [LAUNCHER, *arguments], capture_output=True, text=True, timeout=60
                )
                self.assertEqual(done.returncode, 2)
                self.assertRegex(
                    done.stderr, r"^brimful: No such .*[^.] \(see `brimful( bench)? --help`\)\n$"
                )


class CtrlC(unittest.TestCase):
    def test_at_any_moment_ends_quietly(self) -> None:
        # Over the imports to the question put to the library. Where python itself was not up yet, it dies
        # of the signal or calls it a fatal error: those moments are its own, and don't count.
        generator = random.Random(11)
        counted = 0
        while counted < 20:
            delay = generator.uniform(0.015, 0.4)
            with self.subTest(delay=delay):
                process = subprocess.Popen(
                    [LAUNCHER, "--version"],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                time.sleep(delay)
                process.send_signal(signal.SIGINT)
                _, said = process.communicate(timeout=60)
                if "Fatal Python error" in said or (
                    process.returncode == -signal.SIGINT and not said
                ):
                    continue
                counted += 1
                self.assertIn(process.returncode, (0, 130))
                self.assertNotIn("Traceback", said)


if __name__ == "__main__":
    unittest.main()
