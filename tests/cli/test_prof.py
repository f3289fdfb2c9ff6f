#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`brimful prof` on programs that run: switching on and off, what is seen, files, and what bad input gets.

The program under test allocates from functions of known names and prints how much it did exactly, so
that estimates can be held against it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BRIMFUL = ROOT / "brimful"
LIBRARY = ROOT / "build" / "release" / "libbrimful.so"
OBSERVER = ROOT / "build" / "release" / "brimful-observer"

PROGRAM = r"""
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define APART __attribute__((noinline, noclone))
static unsigned long total, held;
static void* made;
APART void* small_ones(void) { void* p = malloc(100); total += malloc_usable_size(p); return p; }
APART void* big_ones(void) { void* p = malloc(60000); total += malloc_usable_size(p); return p; }
APART void* keeper(void) { void* p = malloc(20000); held += malloc_usable_size(p); total += 20000; return p; }
APART int at_depth(int depth) {
  char room[512];
  memset(room, depth, sizeof room);
  int sum = depth > 0 ? at_depth(depth - 1) : (free(big_ones()), 0);
  return sum + room[17];
}
APART void round_of(int i) {
  for (int j = 0; j < 1000; j++) free(small_ones());
  free(big_ones());
  if (i % 4 == 0) made = keeper();
  if (i % 8 == 0) at_depth(100);
}
int main(int count, char** words) {
  int rounds = count > 1 ? atoi(words[1]) : 1 << 30;
  int pause = count > 2 ? atoi(words[2]) : 0;
  for (int i = 0; i < rounds; i++) {
    round_of(i);
    if (pause) usleep(pause);
  }
  printf("%lu %lu\n", total, held);
  fflush(stdout);
  return count > 3 ? atoi(words[3]) : 0;
}
"""


def clean_environment(**extra: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "BRIMFUL_CONF")}
    return kept | extra


@unittest.skipUnless(OBSERVER.exists(), "brimful-observer is not built (libdw-dev, libiberty-dev)")
@unittest.skipUnless(LIBRARY.exists(), "the release library is not built")
@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class Profiles(unittest.TestCase):
    folder: Path
    program: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="brimful-prof-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        source = cls.folder / "program.c"
        source.write_text(PROGRAM)
        cls.program = cls.folder / "program"
        subprocess.run(["cc", "-O1", "-g", "-o", cls.program, source], check=True)

    def prof(self, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BRIMFUL), "prof", *map(str, words)],
            env=clean_environment(COLUMNS="100"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            **options,
        )

    def answer(self, *words: object) -> dict[str, Any]:
        result = self.prof(*words, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    @contextlib.contextmanager
    def running(self, *words: object, conf: str = "") -> Iterator[subprocess.Popen[bytes]]:
        environment = clean_environment(LD_PRELOAD=str(LIBRARY), BRIMFUL_CONF=conf)
        process = subprocess.Popen(
            [str(self.program), *map(str, words)], env=environment, stdout=subprocess.PIPE
        )
        try:
            deadline = time.monotonic() + 20
            maps = Path(f"/proc/{process.pid}/maps")
            while "libbrimful" not in maps.read_text() and time.monotonic() < deadline:
                time.sleep(0.01)
            yield process
        finally:
            process.kill()
            process.communicate()

    def is_sampling(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether it samples, by what our own profiler finds: it keeps an interval that is in force."""
        found = self.answer(process.pid, "--seconds", "0.1", "--interval", "12345")
        return found["interval"] != 12345

    def functions(self, found: dict[str, Any]) -> dict[str, float]:
        return {f["name"]: f["flat"] for f in found["functions"]}

    # --- a process that runs -----------------------------------------------------------------------

    def test_a_stock_process_is_sampled_and_left_as_it_was(self) -> None:
        with self.running(1 << 30, 500) as process:
            found = self.answer(
                process.pid, "--seconds", "1", "--interval", "64k", "--view", "allocated"
            )
            flat = self.functions(found)
            self.assertGreater(flat.get("big_ones", 0), 0, found)
            self.assertGreater(flat.get("small_ones", 0), 0, found)
            chains = ["<".join(s["functions"]) for s in found["stacks"]]
            self.assertTrue(any(c.startswith("small_ones<round_of<main<") for c in chains), chains)
            self.assertFalse(self.is_sampling(process))

    def test_sampling_that_was_on_stays_on_with_its_interval(self) -> None:
        with self.running(1 << 30, 500, conf="prof:98304") as process:
            found = self.answer(process.pid, "--seconds", "0.3", "--interval", "64k")
            self.assertEqual(found["interval"], 98304)
            self.assertTrue(self.is_sampling(process))

    def test_of_two_profilers_at_once_the_longer_one_sees_to_its_end(self) -> None:
        with self.running(1 << 30, 500) as process:
            words = [str(BRIMFUL), "prof", str(process.pid), "--json", "--interval", "32k"]
            words += ["--view", "allocated"]
            quiet: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            first = subprocess.Popen([*words, "--seconds", "0.5"], **quiet)
            second = subprocess.Popen([*words, "--seconds", "2.5"], **quiet)
            answers = [json.loads(p.communicate(timeout=30)[0]) for p in (first, second)]
            # Five times as long: if the first had switched it off for both, there would be about as many.
            self.assertGreater(answers[1]["bytes"], 2 * answers[0]["bytes"])
            self.assertFalse(self.is_sampling(process))

    def test_ctrl_c_shows_what_was_seen_and_switches_off(self) -> None:
        with self.running(1 << 30, 500) as process:
            words = [str(BRIMFUL), "prof", str(process.pid), "--json", "--view", "allocated"]
            prof = subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
            # Until the observer runs, which may take long where there is much else to do.
            children = Path(f"/proc/{prof.pid}/task/{prof.pid}/children")
            until = time.monotonic() + 20
            while not children.read_text() and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(1.5)
            os.killpg(prof.pid, signal.SIGINT)
            output, errors = prof.communicate(timeout=20)
            self.assertEqual(prof.returncode, 0, errors)
            found = json.loads(output)
            self.assertEqual(found["ended"], "interrupt")
            self.assertIn("big_ones", self.functions(found))
            self.assertFalse(self.is_sampling(process))

    def test_a_process_that_ends_meanwhile_leaves_what_was_seen(self) -> None:
        with self.running(2000, 500) as process:
            found = self.answer(
                process.pid, "--seconds", "0", "--interval", "64k", "--view", "allocated"
            )
            self.assertEqual(found["ended"], "exit")
            self.assertIn("big_ones", self.functions(found))

    # --- a command, a file -------------------------------------------------------------------------

    def test_estimates_are_within_three_errors_of_the_exact_totals(self) -> None:
        # Two errors hold 95 times of 100, three 997 of 1000, and a test is run often.
        result = self.prof(
            "--json", "--view", "allocated", "--interval", "256k", "--", self.program, 3000
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        exact, rest = result.stdout.split("\n", 1)
        found = json.loads(rest)
        distance = abs(found["bytes"] - int(exact.split()[0])) / found["standard_error"]
        self.assertLess(distance, 3.0, f"{exact} {found['bytes']} ± {found['standard_error']}")

    def test_in_use_adds_up_by_stack_by_class_and_with_the_program(self) -> None:
        result = self.prof("--json", "--interval", "64k", "--", self.program, 4000)
        self.assertEqual(result.returncode, 0, result.stderr)
        exact, rest = result.stdout.split("\n", 1)
        found = json.loads(rest)
        self.assertAlmostEqual(found["bytes"], sum(s["bytes"] for s in found["stacks"]), delta=1)
        self.assertAlmostEqual(found["bytes"], sum(c["bytes"] for c in found["classes"]), delta=1)
        self.assertAlmostEqual(found["bytes"], sum(f["flat"] for f in found["functions"]), delta=1)
        kept = self.functions(found)["keeper"]
        self.assertLess(abs(kept - int(exact.split()[1])), 3 * found["standard_error"])

    def test_the_exit_code_is_the_commands(self) -> None:
        self.assertEqual(self.prof("--", self.program, 10, 0, 3).returncode, 3)
        self.assertEqual(self.prof("--", self.folder / "nothing").returncode, 127)

    def test_a_stack_deeper_than_the_copy_says_so_and_is_right_up_to_there(self) -> None:
        result = self.prof("--json", "--view", "allocated", "--", self.program, 2000)
        found = json.loads(result.stdout.split("\n", 1)[1])
        deep = [s["functions"] for s in found["stacks"] if "at_depth" in s["functions"]]
        self.assertTrue(deep)
        for names in deep:
            self.assertEqual(names[0], "big_ones")
            self.assertEqual(set(names[1:-1]), {"at_depth"})
            self.assertIn("deeper than", names[-1])

    def test_what_the_library_wrote_at_exit_is_read(self) -> None:
        raw = self.folder / "samples.raw"
        environment = clean_environment(
            LD_PRELOAD=str(LIBRARY), BRIMFUL_CONF=f"prof:on,prof_file:{raw}"
        )
        subprocess.run(
            [str(self.program), "2000"], env=environment, check=True, stdout=subprocess.DEVNULL
        )
        found = self.answer(raw)
        self.assertIn("keeper", self.functions(found))
        self.assertEqual(found["program"], str(self.program))
        cut = self.folder / "cut.raw"
        cut.write_bytes(raw.read_bytes()[:100_000])
        result = self.prof(cut)
        self.assertEqual(result.returncode, 1)
        self.assertIn("ends too early", result.stderr)

    def test_a_file_that_is_another_one_by_now_gives_no_names(self) -> None:
        program = self.folder / "changed"
        shutil.copy(self.program, program)
        raw = self.folder / "changed.raw"
        environment = clean_environment(
            LD_PRELOAD=str(LIBRARY), BRIMFUL_CONF=f"prof:on,prof_file:{raw}"
        )
        subprocess.run(
            [str(program), "2000"], env=environment, check=True, stdout=subprocess.DEVNULL
        )
        time.sleep(1.1)  # times of change are compared in seconds
        program.unlink()
        shutil.copy(self.program, program)
        other = self.folder / "between"  # takes the inode that has become free
        other.write_text("x")
        if program.stat().st_ctime <= raw.stat().st_mtime + 1:
            self.skipTest("the copy has not got a later time")
        names = self.functions(self.answer(raw))
        self.assertNotIn("keeper", names)
        self.assertTrue(any(name.startswith("changed+0x") for name in names), names)

    # --- outputs, and differences --------------------------------------------------------------------

    def test_files_are_written_and_compared(self) -> None:
        if subprocess.run(
            ["/usr/bin/python3", "-c", "import google.protobuf"], check=False
        ).returncode:
            self.skipTest("python3-protobuf is not installed")
        paths = [self.folder / "a.pb.gz", self.folder / "b.pb.gz"]
        for path, rounds in zip(paths, (2000, 6000), strict=True):
            words = [
                "--out",
                path,
                "--interval",
                "64k",
                "--html",
                f"{path}.html",
                "--folded",
                f"{path}.txt",
            ]
            result = self.prof(*words, "--", self.program, rounds)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("keeper", Path(f"{path}.html").read_text())
            self.assertRegex(Path(f"{path}.txt").read_text(), r"main;round_of;keeper \d+\n")
        changes = self.answer("diff", *paths)
        self.assertEqual(changes["stacks"][0]["functions"][0], "keeper")
        self.assertGreater(changes["bytes"], 4000 / 4 * 20000 / 2)
        table = self.prof("diff", *paths)
        self.assertEqual(table.returncode, 0, table.stderr)
        self.assertIn("keeper", table.stdout)

    def test_a_narrow_terminal_gets_whole_numbers(self) -> None:
        environment = clean_environment(COLUMNS="60")
        words = [str(BRIMFUL), "prof", "--", str(self.program), "2000"]
        result = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^ *\d[\d.]* MiB +\d+\.\d% +\d[\d.]* MiB +keeper")

    # --- bad input -----------------------------------------------------------------------------------

    def refused(self, words: list[object], code: int, text: str) -> None:
        result = self.prof(*words)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(text, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertEqual(result.stdout, "")

    def test_bad_targets_get_one_line(self) -> None:
        other = subprocess.Popen(["sleep", "30"], env=clean_environment())
        try:
            time.sleep(0.2)
            self.refused([other.pid], 1, "brimful")
        finally:
            other.kill()
            other.wait()
        self.refused([other.pid], 1, "no process")
        self.refused([self.folder / "nothing"], 1, "No such file")
        self.refused([self.program], 1, "not a file of samples")
        self.refused(["diff", self.program, self.program], 1, "not a file of samples")
        self.refused([], 2, "one PID")
        self.refused(["--view", "all", "1"], 2, "--view all")
        self.refused(["--interval", "much", "1"], 2, "--interval much")


if __name__ == "__main__":
    unittest.main()
