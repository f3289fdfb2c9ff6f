#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`brimful-observer stats`: what it reads is what the library says of itself, and what the program did.

Environment: BRIMFUL_BUILD, the folder of the build.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BRIMFUL_BUILD", ROOT / "build/release")).resolve()
LIBRARY = BUILD / "libbrimful.so"
OBSERVER = BUILD / "brimful-observer"
SKIP = 77

# Makes and frees what its arguments say, prints the library's own statistics, and waits for standard
# input: with each byte it makes `calls` more objects.
PROGRAM = r"""
#include <brimful/brimful.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char** words) {
  long calls = atol(words[1]);
  enum { kKept = 1000 };
  static void* kept[kKept];
  char* large = malloc(100000);
  memset(large, 1, 100000);
  char byte;
  do {
    for (long i = 0; i < calls; i++) {
      free(kept[i % kKept]);
      kept[i % kKept] = memset(malloc(16 + i % 3000), 1, 16);
    }
    for (int i = 0; i < count - 2; i++) free(malloc((size_t)atol(words[2 + i])));
    brimful_print_stats(1, BRIMFUL_FORMAT_JSON);
  } while (read(0, &byte, 1) == 1);
  return 0;
}
"""


class Program:
    """PROGRAM at its wait."""

    def __init__(self, path: Path, calls: int, *sizes: int, conf: str = "") -> None:
        environment = os.environ | {
            "LD_PRELOAD": str(LIBRARY),
            "BRIMFUL_CONF": f"reserve:64M,{conf}",
        }
        self.calls = calls
        words = [str(path), str(calls), *map(str, sizes)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, env=environment)
        self.said = self._line()

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def again(self) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(b"x")
        self.process.stdin.flush()
        self.said = self._line()
        return self.said

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    @property
    def pid(self) -> int:
        return self.process.pid


def observe(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [OBSERVER, "stats", *map(str, arguments)], capture_output=True, text=True, timeout=60
    )


def one(*arguments: object) -> dict[str, Any]:
    done = observe(*arguments)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["schema"] == "brimful-stats-1" and not answer["errors"]
    (process,) = answer["processes"]
    return process


@contextlib.contextmanager
def watching(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [str(OBSERVER), "stats", *map(str, arguments)]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as watcher:
        try:
            yield watcher
        finally:
            watcher.kill()


class Stats(unittest.TestCase):
    folder: Path
    program: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="brimful-stats-"))
        source = cls.folder / "program.c"
        source.write_text(PROGRAM)
        cls.program = cls.folder / "program"
        command = ["gcc", "-O1", "-fno-builtin", f"-I{ROOT / 'include'}", str(source)]
        command += ["-o", str(cls.program), f"-L{BUILD}", "-lbrimful", f"-Wl,-rpath,{BUILD}"]
        subprocess.run(command, check=True)

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(cls.folder)

    def test_its_sums_are_those_of_the_library(self) -> None:
        for conf in ("", "front_end:thread", "tier:hardened", "purge_delay_ms:0,limit:1G"):
            with self.subTest(conf=conf), Program(self.program, 20000, 70000, conf=conf) as program:
                seen, said = one(program.pid), program.said
                classes = {
                    str(use["bytes"]): {key: use[key] for key in ("live", "free", "slabs")}
                    for use in seen["heap"]["classes"]
                }
                self.assertEqual(classes, said["classes"])
                self.assertEqual(seen["heap"]["allocated"], said["bytes"]["live"])
                self.assertEqual(seen["heap"]["live_blocks"], said["large"]["blocks"])
                self.assertEqual(seen["events"], said["events"])
                self.assertEqual(seen["contexts"], said["contexts"])
                self.assertEqual(seen["front_end"], said["front_end"])
                self.assertEqual(seen["options"]["tier"], said["tier"])
                self.assertEqual(seen["version"], said["version"])
                pages, told = seen["pages"], said["bytes"]
                self.assertEqual(pages["metadata"], told["metadata"])
                self.assertEqual(pages["committed"] + pages["huge"], told["committed"])
                self.assertEqual(pages["reserved"] + pages["huge"], told["reserved"])
                for key in ("hard", "soft", "refusals"):
                    self.assertEqual(seen["limits"][key], said["limits"][key])
                self.assertEqual(seen["misuse"], said["misuse"])
                for key in ("advised", "populated"):
                    self.assertEqual(seen["backing"][key], said["backing"][key])
                self.assertEqual(seen["locks"]["central"], said["locks"]["central"])
                self.assertEqual(seen["locks"]["context"], said["locks"]["context"])
                # The statistics themselves took it between reading the counters and printing them.
                taken = (
                    seen["locks"]["heap"]["acquisitions"] - said["locks"]["heap"]["acquisitions"]
                )
                self.assertIn(taken, range(1, 10))

    def test_where_the_resident_memory_is_adds_up(self) -> None:
        with Program(self.program, 20000) as program:
            heap = one(program.pid)["heap"]
        parts = ("live", "free_in_slabs", "free_runs", "metadata")
        self.assertEqual(sum(heap[part] for part in parts), heap["resident"])
        self.assertLessEqual(heap["resident"], heap["anonymous"] + 64 * 1024)
        self.assertGreater(heap["live"], 100_000)
        self.assertEqual(heap["moving_bytes"], 0)

    def test_calls_of_malloc_and_free_are_known_without_being_counted(self) -> None:
        """Also when they are sampled, and over slots that were emptied meanwhile."""
        for conf in ("", "front_end:thread", "prof:4K", "prof:1", "purge_delay_ms:0"):
            with self.subTest(conf=conf), Program(self.program, 200_000, conf=conf) as program:
                before = one(program.pid)
                program.again()
                time.sleep(0.02)  # what is free goes back, and slots are emptied for it
                program.again()
                after = one(program.pid)
                made = after["calls"]["mallocs"] - before["calls"]["mallocs"]
                made -= after["heap"]["offered"] - before["heap"]["offered"]
                delta = 100  # exact, but counts may be lost when threads change places
                self.assertAlmostEqual(made, 400_000, delta=delta)
                freed = after["heap"]["frees"] - before["heap"]["frees"]
                self.assertAlmostEqual(freed, 400_000, delta=delta)

    def test_large_blocks_that_come_from_stacks_are_calls_too(self) -> None:
        sizes = [100_000] * 3000
        with Program(self.program, 0, *sizes) as program:
            before = one(program.pid)["calls"]
            program.again()
            after = one(program.pid)["calls"]
        self.assertAlmostEqual(after["mallocs"] - before["mallocs"], 3000, delta=100)

    def test_options_are_told_by_name(self) -> None:
        conf = "purge_delay_ms:250,limit:1G,thp:never,prof:on"
        with Program(self.program, 100, conf=conf) as program:
            seen = one("--light", program.pid)
        self.assertNotIn("heap", seen)
        options = seen["options"]
        self.assertEqual((options["purge_delay_ms"], options["limit"]), (250, 1 << 30))
        self.assertEqual((options["thp"], options["prof"]), ("never", 512 << 10))
        expected = ["limit", "prof", "purge_delay_ms", "reserve", "thp"]
        self.assertEqual(sorted(seen["options_set"]), expected)
        self.assertEqual(seen["sampling"]["interval"], 512 << 10)

    def test_it_finds_every_process_that_runs_the_library(self) -> None:
        with Program(self.program, 100) as first, Program(self.program, 100) as second:
            found = {one["pid"] for one in json.loads(observe("--light").stdout)["processes"]}
        self.assertLessEqual({first.pid, second.pid}, found)
        self.assertNotIn(os.getpid(), found)

    def test_it_goes_on_and_sees_processes_come_and_go(self) -> None:
        with watching("--light", "--every", 0.05) as watcher:
            assert watcher.stdout is not None

            def numbers() -> set[int]:
                assert watcher.stdout is not None
                return {one["pid"] for one in json.loads(watcher.stdout.readline())["processes"]}

            numbers()
            with Program(self.program, 100) as program:
                for _ in range(100):
                    if program.pid in numbers():
                        break
                self.assertIn(program.pid, numbers())
            for _ in range(20):
                if program.pid not in numbers():
                    break
            self.assertNotIn(program.pid, numbers())

    def test_a_process_that_ends_is_told_once_and_ends_the_watch_of_it_alone(self) -> None:
        with (
            Program(self.program, 100) as program,
            watching("--every", 0.05, program.pid) as watcher,
        ):
            assert watcher.stdout is not None
            json.loads(watcher.stdout.readline())
            program.process.kill()
            program.process.wait()
            lines = [json.loads(line) for line in watcher.stdout]
            self.assertEqual(watcher.wait(timeout=20), 1)
        errors = [error for line in lines for error in line["errors"]]
        self.assertEqual([error["pid"] for error in errors], [program.pid])
        self.assertIn("ended", errors[0]["error"])

    def test_the_whole_heap_is_looked_at_for_a_twentieth_of_the_time(self) -> None:
        with (
            Program(self.program, 200_000) as program,
            watching("--every", 0.02, program.pid) as watcher,
        ):
            assert watcher.stdout is not None
            seen = [json.loads(watcher.stdout.readline())["processes"][0] for _ in range(40)]
        costs = [one["heap"]["processor_seconds"] for one in seen]
        took = seen[-1]["at_seconds"] - seen[0]["at_seconds"]
        whole = {one["heap"]["at_seconds"] for one in seen}
        self.assertGreater(len(whole), 1)
        self.assertLessEqual((len(whole) - 2) * min(costs) / 0.05, took)

    def test_bad_input_gets_one_line(self) -> None:
        ended = subprocess.Popen(["true"])
        ended.wait()
        done = observe(ended.pid)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, f"brimful-observer stats: there is no process {ended.pid}\n")
        with subprocess.Popen(["sleep", "60"]) as other:
            done = observe(other.pid)
            other.send_signal(signal.SIGKILL)
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not use brimful", done.stderr)
        for wrong in (["x"], ["--every", "0"], ["--every"], ["--none"], ["0"], ["-5"]):
            self.assertEqual(observe(*wrong).returncode, 2, wrong)


if __name__ == "__main__":
    if not OBSERVER.exists():
        print(
            f"no {OBSERVER}: install nlohmann-json3-dev, libdw-dev and libiberty-dev, and build again"
        )
        sys.exit(SKIP)
    if shutil.which("gcc") is None:
        print("gcc is not installed, which compiles the program that is looked at")
        sys.exit(SKIP)
    unittest.main()
