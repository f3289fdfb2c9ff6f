#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The measuring tools measure what they say: peaks that are the child's own, proofs that can fail.

No speed is judged here. libm stands in for an allocator library where only "was it mapped" matters.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "cli")]

from brimful.bench import building, launch  # noqa: E402
from brimful.bench.model import Allocator  # noqa: E402
from brimful.bench.study.model import LIBRARY  # noqa: E402
from studies.demo.programs import proof  # noqa: E402
from studies.pairs.study import CALLS, SOURCE  # noqa: E402

RIVAL = Path("/usr/lib") / f"{platform.machine()}-linux-gnu" / "libjemalloc.so.2"


def measured(*command: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """What measure says of a command."""
    line = [launch.launcher(), *options, "--", *command]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@unittest.skipUnless(shutil.which("gcc"), "gcc is not installed")
class TheLauncherThatMeasures(unittest.TestCase):
    def test_it_reports_exit_codes_and_signals(self) -> None:
        self.assertEqual(measured("sh", "-c", "exit 7")["exit_code"], 7)
        self.assertEqual(measured("sh", "-c", "kill -9 $$")["signal"], 9)
        self.assertEqual(measured("/no/such/program")["exit_code"], 127)

    def test_the_peak_is_the_commands_own_not_the_callers(self) -> None:
        ballast = bytearray(200 << 20)
        peak = measured("/bin/true")["peak_rss_kib"]
        self.assertLess(peak, 20 << 10)
        self.assertEqual(len(ballast), 200 << 20)

    def test_the_peak_includes_grandchildren(self) -> None:
        program = "x = bytearray(100 << 20)"
        peak = measured("sh", "-c", f"{sys.executable} -c '{program}'; true")["peak_rss_kib"]
        self.assertGreater(peak, 100 << 10)

    def test_it_ends_a_command_that_takes_too_long(self) -> None:
        result = measured("sh", "-c", "sleep 30 & wait", options=("--timeout", "0.3"))
        self.assertTrue(result["timed_out"])
        self.assertLess(result["wall_s"], 5)

    def test_it_sees_a_grandchild_under_the_name_it_goes_by(self) -> None:
        result = measured("sh", "-c", "sleep 0.3; true")
        self.assertEqual({p["name"] for p in result["processes"]}, {"sh", "sleep"})

    @unittest.skipUnless(RIVAL.exists(), f"{RIVAL} is not installed")
    def test_it_names_a_preloaded_allocator_in_every_process(self) -> None:
        result = measured("sh", "-c", "sleep 0.3; true", options=("--preload", str(RIVAL)))
        for process in result["processes"]:
            self.assertIn(str(RIVAL.resolve()), process["allocators"])

    def test_the_callers_own_preload_does_not_leak_into_the_system_run(self) -> None:
        line = [launch.launcher(), "--stdout", "/dev/stderr", "--", "env"]
        environment = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": "/lib/x86_64-linux-gnu/libm.so.6"}
        done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=60)
        self.assertIn("PATH=", done.stderr)
        self.assertNotIn("LD_PRELOAD", done.stderr)


class TheProof(unittest.TestCase):
    """The demonstration counts a run only if the maps show what they should."""

    path = "/somewhere/libbrimful.so"
    library = Allocator("brimful", library=path)
    system = Allocator("system")

    def proof(self, allocator: Allocator, **processes: list[str]) -> str:
        data = {"processes": [{"name": n, "allocators": a} for n, a in processes.items()]}
        return proof("cc1plus", allocator, self.path, data)

    def test_a_run_with_the_library_everywhere_counts(self) -> None:
        mapped = [self.path, "/lib/libc.so.6"]
        self.assertEqual(self.proof(self.library, cc1plus=mapped, **{"g++": mapped}), "")

    def test_a_run_without_the_library_in_the_worker_does_not(self) -> None:
        mapped = [self.path]
        self.assertIn("cc1plus", self.proof(self.library, cc1plus=["/lib/libc.so.6"]))
        self.assertIn("never saw", self.proof(self.library, **{"g++": mapped}))

    def test_a_run_of_the_system_with_the_library_does_not(self) -> None:
        self.assertIn("libbrimful.so", self.proof(self.system, cc1plus=[self.path]))
        self.assertEqual(self.proof(self.system, cc1plus=["/lib/libc.so.6"]), "")


@unittest.skipUnless(LIBRARY.exists() and shutil.which("g++"), "make lib was not called")
class TheDemo(unittest.TestCase):
    """What `make run` starts."""

    def demo(self, *arguments: str) -> list[str]:
        return [str(ROOT / "brimful"), "bench", "study", "demo", *arguments]

    def test_a_program_that_does_not_exist_is_wrong_usage(self) -> None:
        done = subprocess.run(
            self.demo("--only", "nosuch"), capture_output=True, text=True, timeout=120
        )
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(
            done.stderr.splitlines()[-1], "error: no part 'nosuch'; there are: compiler, "
        )

    def test_a_row_that_fails_is_named_and_fails_the_whole(self) -> None:
        # A library that is there and can't be preloaded: whatever runs, runs without it.
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "libbrimful.so"
            library.write_bytes(LIBRARY.resolve().read_bytes()[:64])
            done = subprocess.run(
                self.demo("--only", "pymalloc", "--seconds", "1", "--lib", str(library)),
                capture_output=True,
                text=True,
                timeout=600,
            )
        self.assertEqual(done.returncode, 1)
        self.assertIn("python3, pymalloc: FAILED: brimful: python3 ran without", done.stdout)
        self.assertNotIn("Traceback", done.stderr)

    def test_an_interrupt_shows_what_was_measured(self) -> None:
        with subprocess.Popen(
            self.demo("--only", "pymalloc"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            first = [process.stdout.readline() for _ in range(2)]  # both runs of the first round
            os.killpg(process.pid, signal.SIGINT)
            rest, errors = process.communicate(timeout=120)
        self.assertIn("[2/10]", first[1])
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("wall time", rest)
        self.assertIn("Interrupted: the figures are those measured", rest)
        self.assertNotIn("Traceback", errors)


@unittest.skipUnless(shutil.which("g++"), "g++ is not installed")
class ThePairs(unittest.TestCase):
    def test_one_sample_gives_plausible_figures_and_the_library_that_was_there(self) -> None:
        for call, size in itertools.product(("malloc", *CALLS), ("64", "mixed")):
            line = [str(building.program(SOURCE)), call, "64", size, "0.01", "1"]
            done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
            data = json.loads(done.stdout)
            self.assertGreater(data["ns_per_pair"], data["ns_loop"])
            self.assertGreater(data["ns_loop"], 0.05)

    def test_wrong_arguments_are_refused(self) -> None:
        binary = str(building.program(SOURCE))
        wrong = (
            "malloc 0 64 1 1",
            "malloc 8 4 1 1",
            "malloc 8 64 0 1",
            "none 8 64 1 1",
            "8 64 1 1",
        )
        for arguments in ("", *wrong):
            with self.subTest(arguments=arguments):
                command = [binary, *arguments.split()]
                done = subprocess.run(command, capture_output=True, timeout=60)
                self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
