#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""print_stats end to end: what programs of every kind leave on standard error when they exit, in both
front ends, preloaded and linked statically.

The awkward ones are programs that close or replace descriptor 2 before they end, whose stderr nobody reads,
that fork, and that never come to exit().
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("BRIMFUL_LIB", ROOT / "build/release/libbrimful.so")).resolve()
MARK = "brimful-stats: "

# Does what its first argument says, with large blocks counted by the second.
SOURCE = r"""
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void* volatile block;
static void use(int large) {
  for (int i = 0; i < large; ++i) { block = malloc(100000); free(block); }
  block = malloc(100);
}
static void* churn(void* unused) {
  for (int i = 0; i < 20000; ++i) free(malloc(100000));
  return unused;
}
static void leave(int number) { (void)number; exit(3); }
static void say_bye(void) { if (write(1, "bye\n", 4) != 4) abort(); close(2); }
int main(int count, char** argument) {
  const char* what = count > 1 ? argument[1] : "";
  use(count > 2 ? atoi(argument[2]) : 0);
  if (strcmp(what, "threads") == 0) {
    pthread_t thread[3];
    for (int i = 0; i < 3; ++i) pthread_create(&thread[i], NULL, churn, NULL);
    for (int i = 0; i < 3; ++i) pthread_join(thread[i], NULL);
  }
  if (strcmp(what, "close") == 0) close(2);
  if (strcmp(what, "close-all") == 0) for (int i = 0; i < 4096; ++i) close(i);
  if (strcmp(what, "replace") == 0) {
    for (int i = 2; i < 1100; ++i) close(i);
    for (int i = 2; i < 1010; ++i) if (open("data", O_CREAT | O_WRONLY | O_APPEND, 0600) < 0) break;
  }
  if (strcmp(what, "dup2") == 0) dup2(open("data", O_CREAT | O_WRONLY, 0600), 2);
  if (strcmp(what, "handler") == 0) atexit(say_bye);
  if (strcmp(what, "fork") == 0) {
    if (fork() == 0) { use(10); exit(0); }
    wait(NULL);
  }
  if (strcmp(what, "_exit") == 0) _exit(0);
  if (strcmp(what, "quick_exit") == 0) quick_exit(0);
  if (strcmp(what, "signal-exit") == 0) {
    signal(SIGALRM, leave);
    ualarm(2000, 0);
    for (;;) free(malloc(100000));
  }
  return strcmp(what, "seven") == 0 ? 7 : 0;
}
"""


class PrintStats(unittest.TestCase):
    folder: Path
    programs: dict[str, Path]

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="brimful-print-stats-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        (cls.folder / "program.c").write_text(SOURCE)
        cls.programs = {}
        for kind, flags in (
            ("preload", []),
            ("static", ["-static", str(LIBRARY.parent / "libbrimful.a")]),
        ):
            cls.programs[kind] = cls.folder / kind
            command = ["gcc", "-O1", "-w", "-fno-builtin", "-pthread", "-o"]
            command += [str(cls.programs[kind]), str(cls.folder / "program.c"), *flags]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)

    def start(
        self, kind: str, conf: str, *arguments: str, command: list[str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BRIMFUL_")}
        environment["BRIMFUL_CONF"] = conf
        if kind == "preload":
            environment["LD_PRELOAD"] = str(LIBRARY)
        return subprocess.run(
            command or [str(self.programs[kind]), *arguments],
            env=environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def statistics(self, text: str) -> list[dict[str, Any]]:
        """Each line of statistics in a program's stderr, parsed; there must be nothing else."""
        lines = text.splitlines()
        for line in lines:
            self.assertTrue(line.startswith(MARK), text)
        return [json.loads(line.removeprefix(MARK)) for line in lines]

    def run_json(
        self, kind: str, *arguments: str, front_end: str = "percpu", also: str = "verbose:0"
    ) -> dict[str, Any]:
        done = self.start(kind, f"print_stats:json,front_end:{front_end},{also}", *arguments)
        self.assertEqual(done.returncode, 0)
        (found,) = self.statistics(done.stderr)
        return found

    def test_nothing_is_printed_when_off(self) -> None:
        for kind in self.programs:
            for conf in ("print_stats:off", "verbose:0"):
                with self.subTest(kind=kind, conf=conf):
                    done = self.start(kind, conf, "seven")
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "", ""))

    def test_the_heap_lock_counts_large_blocks_in_json(self) -> None:
        for kind in self.programs:
            for front_end in ("percpu", "thread"):
                with self.subTest(kind=kind, front_end=front_end):
                    # Nothing is kept for the next request, so each block takes the lock twice at least.
                    also = "purge_delay_ms:0"
                    few = self.run_json(kind, "", "10", front_end=front_end, also=also)
                    many = self.run_json(kind, "", "1010", front_end=front_end, also=also)
                    grown = (
                        many["locks"]["heap"]["acquisitions"] - few["locks"]["heap"]["acquisitions"]
                    )
                    self.assertGreaterEqual(
                        grown, 1990
                    )  # ticks try the lock in one run or the other
                    self.assertLess(grown, 2500)
                    self.assertIn(many["front_end"], (front_end, "thread"))
                    self.assertGreaterEqual(many["contexts"], 1)

    def test_json_names_everything_and_its_sums_agree(self) -> None:
        found = self.run_json("preload", "threads", "5")
        self.assertGreater(found["pid"], 1)
        self.assertGreater(found["seconds"], 0)
        self.assertLess(found["seconds"], 60)
        counters = {"acquisitions", "contended", "sleeps", "wait_ns", "busy"}
        central = found["locks"]["central"]
        self.assertEqual(set(found["locks"]), {"heap", "central", "context", "user_heap"})
        for name, lock in found["locks"].items():
            self.assertEqual(set(lock) - {"classes"}, counters, name)
            self.assertLessEqual(lock["contended"], lock["acquisitions"])
        for counter in counters:
            total = sum(lock[counter] for lock in central["classes"].values())
            self.assertEqual(total, central[counter])
        names = {"live", "slab_free", "dirty", "metadata", "committed", "hugetlb", "reserved"}
        self.assertEqual(set(found["bytes"]), names)
        limits = {"hard": 0, "soft": 0, "refusals": 0, "memory_is_short": 0}
        self.assertEqual(found["misuse"], {"reports": 0})
        self.assertEqual(found["limits"] | {"memory_is_short": 0}, limits)
        for size, use in found["classes"].items():
            self.assertEqual(int(size) % 16, 0)
            self.assertGreater(use["slabs"], 0)
        live = sum(int(size) * use["live"] for size, use in found["classes"].items())
        live += found["large"]["bytes"] + found["huge"]["bytes"]
        live += found["guarded"]["bytes"]
        self.assertEqual(live, found["bytes"]["live"])
        self.assertGreater(found["events"]["refill_new"], 0)

    def test_exit_prints_tables(self) -> None:
        for kind in self.programs:
            with self.subTest(kind=kind):
                done = self.start(kind, "print_stats:exit", "", "3")
                self.assertRegex(done.stderr, r"^brimful: statistics of process \d+, \d+\.\d{3} s ")
                self.assertRegex(done.stderr, r"\n  heap +\d+ +\d+ +\d+ +\d+ +\d+\n")
                self.assertRegex(done.stderr, r"\n  context +\d+ +\d+ +\d+ +\d+ +\d+\n")
                self.assertTrue(done.stderr.endswith("\n"))

    def test_a_program_that_closes_stderr_is_heard(self) -> None:
        for kind in self.programs:
            for how in ("close", "handler"):
                with self.subTest(kind=kind, how=how):
                    self.run_json(kind, how)

    def test_a_program_that_replaces_stderr_finds_nothing_in_its_file(self) -> None:
        for how, heard in (("dup2", 1), ("replace", 0), ("close-all", 0)):
            with self.subTest(how=how):
                (self.folder / "data").unlink(missing_ok=True)
                done = self.start("preload", "print_stats:json", how)
                self.assertEqual(done.returncode, 0)
                self.assertEqual(len(self.statistics(done.stderr)), heard)
                if how != "close-all":
                    self.assertEqual((self.folder / "data").read_text(), "")

    def test_each_forked_child_that_exits_prints_its_own(self) -> None:
        done = self.start("preload", "print_stats:json", "fork", "100")
        child, parent = self.statistics(done.stderr)
        self.assertNotEqual(child["pid"], parent["pid"])
        # The child went on from its parent's counts, and used ten blocks more.
        grown = child["locks"]["heap"]["acquisitions"] - parent["locks"]["heap"]["acquisitions"]
        self.assertGreater(grown, 0)

    def test_a_process_that_does_not_run_exit_prints_nothing(self) -> None:
        for how in ("_exit", "quick_exit"):
            with self.subTest(how=how):
                done = self.start("preload", "print_stats:json", how)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_exit_in_a_handler_that_interrupted_malloc_keeps_its_code(self) -> None:
        for _ in range(30):
            done = self.start("preload", "print_stats:json", "signal-exit")
            self.assertEqual(done.returncode, 3)
            if not done.stderr.startswith("brimful: no statistics: a signal handler"):
                self.assertEqual(len(self.statistics(done.stderr)), 1)

    def test_a_stderr_that_nobody_reads_does_not_change_the_exit_code(self) -> None:
        readable, writable = os.pipe()
        os.close(readable)
        environment = {"LD_PRELOAD": str(LIBRARY), "BRIMFUL_CONF": "print_stats:json"}
        done = subprocess.run(
            [str(self.programs["preload"]), "seven"],
            env=environment,
            stderr=writable,
            timeout=60,
            check=False,
        )
        os.close(writable)
        self.assertEqual(done.returncode, 7)

    def test_real_programs_print(self) -> None:
        # sort closes its stderr in an exit handler; python's child leaves by _exit.
        script = "import os; b = [bytes(100000) for _ in range(50)]; os.fork() or os._exit(0)"
        for command in (["sort", "/etc/passwd"], [sys.executable, "-c", script]):
            with self.subTest(command=command[0]):
                done = self.start("preload", "print_stats:json", command=command)
                self.assertEqual(done.returncode, 0)
                self.assertEqual(len(self.statistics(done.stderr)), 1)


if __name__ == "__main__":
    if not shutil.which("gcc"):
        print("skip: gcc is not installed")
        sys.exit(77)
    unittest.main()
