#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command line of the bench, as a user types it: real processes, small work.

What must never happen is that something that went wrong looks like a figure: here a library that
crashes, one that hangs, one that is not preloaded and a rival that is missing are put in.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BRIMFUL = str(ROOT / "brimful")
SHORT = ["--rounds", "1:1", "--budget", "40s", "--seed", "1", "--allocators", "glibc"]

CRASHES = "#include <stdlib.h>\nvoid *malloc(size_t n) { (void)n; abort(); }\n"
HANGS = "#include <unistd.h>\n__attribute__((constructor)) static void hang(void) { for (;;) pause(); }\n"
NO_MALLOC = "int nothing_to_do_with_malloc;\n"


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BRIMFUL, "bench", *arguments], capture_output=True, text=True, timeout=240, check=False
    )


class WrongUsage(unittest.TestCase):
    def test_costs_one_clear_line_and_exit_code_2(self) -> None:
        for arguments, reason in (
            (["--quick", "--full"], "--quick and --full exclude each other"),
            (["--quick", "--", "ls"], "--quick and -- COMMAND exclude each other"),
            (["--"], "-- needs a COMMAND"),
            (["--", "/no/such/program"], "/no/such/program: not found"),
            (["--budget", "soon"], "--budget 'soon'"),
            (["--rounds", "9:3"], "--rounds '9:3'"),
            (["--target", "-1%"], "'-1%' is not a percentage"),
            (["--allocators", "nonsense"], "no allocator 'nonsense'"),
            (["--allocators", ","], "--allocators: the list is empty"),
            (["--baseline", "nonsense"], "no allocator 'nonsense'"),
            (["--workloads", "nonsense"], "no workload 'nonsense'"),
            (["--lib", "nonsense"], "NAME=PATH"),
            (["--pin", "abc"], "a list of CPUs"),
            (["--pin", "3-1"], "the CPUs that can be used here"),
            (["--pin", "9999", "--", "ls"], "the CPUs that can be used here"),
            (["--lib", "glibc=/x.so"], "there is an allocator glibc already"),
            (
                ["--lib", "x=/x.so", "--baseline", "x", "--allocators", "x"],
                "none of the allocators",
            ),
            (["--nonsense"], "--nonsense"),
            (["nonsense"], "nonsense"),
            (["compare", "/no/a.json", "/no/b.json"], "/no/a.json"),
            (["report", "/no/a.json"], "/no/a.json"),
        ):
            with self.subTest(arguments=arguments):
                done = bench(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(reason, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


class ARun(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "out"

    def results(self) -> dict[str, list[dict[str, object]]]:
        found: dict[str, list[dict[str, object]]] = json.loads(
            (self.out / "results.json").read_text()
        )
        return found

    def library(self, source: str) -> str:
        (self.folder / "lib.c").write_text(source)
        path = self.folder / "libtest.so"
        command = ["gcc", "-shared", "-fPIC", "-o", str(path), str(self.folder / "lib.c")]
        subprocess.run(command, check=True)
        return str(path)

    def test_writes_three_files_that_say_the_same(self) -> None:
        done = bench(*SHORT, "--workloads", "cold-start", "--out", str(self.out))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        samples = self.results()["samples"]
        self.assertEqual({sample["status"] for sample in samples}, {"ok"})
        with (self.out / "results.csv").open() as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["cell"] for row in rows}, {"cold-start"})
        self.assertIn("cold-start", (self.out / "report.html").read_text())
        self.assertIn("cold-start", done.stdout)

    def test_shows_a_result_again_as_it_was(self) -> None:
        bench(*SHORT, "--workloads", "cold-start", "--out", str(self.out))
        before = (self.out / "results.csv").read_text()
        (self.out / "results.csv").unlink()
        done = bench("report", str(self.out / "results.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.out / "results.csv").read_text(), before)
        again = bench("report", str(self.out / "results.json"), "--markdown")
        self.assertIn("| cold-start |", again.stdout)

    def test_declares_a_library_that_crashes_hangs_or_has_no_malloc(self) -> None:
        for source, status in (
            (CRASHES, "crashed"),
            (HANGS, "timed out"),
            (NO_MALLOC, "not loaded"),
        ):
            with self.subTest(status=status):
                wrong = self.library(source)
                command = ["--lib", f"wrong={wrong}", "--timeout", "5", "--out", str(self.out)]
                done = bench(*SHORT, *command, "--", "ls", "/")
                self.assertEqual(done.returncode, 1, done.stdout)
                found = [s for s in self.results()["samples"] if s["allocator"] == "wrong"]
                self.assertEqual([sample["status"] for sample in found], [status])
                self.assertEqual([sample["metrics"] for sample in found], [{}])
                self.assertIn("wrong", done.stdout)

    def test_declares_a_rival_that_is_missing_and_goes_on(self) -> None:
        gone = f"gone={self.folder}/libgone.so"
        done = bench(*SHORT, "--lib", gone, "--out", str(self.out), "--", "ls", "/")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        by = {str(s["allocator"]): s["status"] for s in self.results()["samples"]}
        self.assertEqual(by, {"glibc": "ok", "gone": "missing"})
        self.assertIn("libgone.so", done.stdout)

    def test_a_command_that_fails_is_a_failed_cell(self) -> None:
        false = shutil.which("false") or "false"
        done = bench(*SHORT, "--out", str(self.out), "--", false)
        self.assertEqual(done.returncode, 1)
        self.assertEqual({s["status"] for s in self.results()["samples"]}, {"failed"})

    def test_an_interruption_leaves_what_was_measured(self) -> None:
        command = [
            BRIMFUL,
            "bench",
            "--rounds",
            "50:50",
            "--budget",
            "240s",
            "--allocators",
            "glibc",
        ]
        command += ["--workloads", "cold-start,cfrac", "--out", str(self.out)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        # Two rounds are behind it, however busy the machine is.
        third = next((line for line in process.stdout if re.match(r"round ([3-9]|\d\d)", line)), "")
        self.assertTrue(third)
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        self.assertNotIn("Traceback", said)
        self.assertFalse(self.results()["finished"])
        self.assertGreater(len(self.results()["samples"]), 1)
        self.assertTrue((self.out / "report.html").exists())

    def test_the_list_names_what_there_is(self) -> None:
        done = bench("--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("glibc", "brimful", "larson", "cold-start"):
            self.assertIn(name, done.stdout)


if __name__ == "__main__":
    unittest.main()
