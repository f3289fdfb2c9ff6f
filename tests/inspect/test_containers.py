#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""inspect, leaks and prof of a process in a container: its number and its files are others there.

The process is the first of its own PID namespace, and its program and the library lie in a file system
that only its mount namespace has: from outside they are there below /proc/PID/root.

Environment: BRIMFUL_BUILD, the folder of the build.
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

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BRIMFUL_BUILD", ROOT / "build/release")).resolve()
LIBRARY = BUILD / "libbrimful.so"
OBSERVER = BUILD / "brimful-observer"
SKIP = 77
PLANTED = ROOT / "tests/leaks/planted"
INSIDE = """
mount -t tmpfs none "$1" && cp -L "$2" "$3" "$1"/ || exit 99
cd "$1" && exec env BRIMFUL_CONF=prof:1,reserve:64M LD_PRELOAD="$1/libbrimful.so" ./lost_chain wait
"""


def unshared() -> list[str]:
    """The command that starts another in namespaces of its own; empty where that is not permitted."""
    for rights in ([], ["--user", "--map-root-user"]):
        command = ["unshare", *rights, "--pid", "--mount", "--fork", "--kill-child"]
        script = 'mount -t tmpfs none "$0"'
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([*command, "sh", "-c", script, folder], capture_output=True)
        if done.returncode == 0:
            return command
    return []


def brimful(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "brimful"), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"BRIMFUL_OBSERVER": str(OBSERVER), "NO_COLOR": "1"},
    )


class Containers(unittest.TestCase):
    command: list[str]
    started: subprocess.Popen[str]
    pid: int

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        program = Path(folder.name) / "lost_chain"
        mounted = Path(folder.name) / "mounted"
        mounted.mkdir()
        options = ["-g", "-O1", "-fno-builtin", "-pthread", f"-I{PLANTED}"]
        subprocess.run(["gcc", *options, PLANTED / "lost_chain.c", "-o", program], check=True)
        cls.started = subprocess.Popen(
            [*cls.command, "sh", "-c", INSIDE, "sh", mounted, program, LIBRARY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        cls.addClassCleanup(cls.end)
        assert cls.started.stdout is not None
        lines = iter(cls.started.stdout.readline, "")
        if not any(line == "ready\n" for line in lines):
            raise AssertionError("the program did not start in its container")
        # Built anew at the place that it has outside: what is found there must not count.
        program.unlink()
        pid = cls.started.pid
        cls.pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        assert not list(mounted.iterdir())

    @classmethod
    def end(cls) -> None:
        cls.started.kill()  # and its child with it
        cls.started.communicate()

    def test_it_is_the_first_process_of_its_namespace(self) -> None:
        status = Path(f"/proc/{self.pid}/status").read_text()
        self.assertIn(f"NSpid:\t{self.pid}\t1\n", status)

    def test_inspect_reads_its_heap(self) -> None:
        said = brimful("inspect", "--json", self.pid)
        self.assertEqual(said.returncode, 0, said.stderr)
        picture = json.loads(said.stdout)
        self.assertEqual(picture["target"]["pid"], self.pid)
        self.assertGreaterEqual(picture["totals"]["live_objects"], 100)

    def test_leaks_names_the_stack_by_files_that_only_the_container_has(self) -> None:
        said = brimful("leaks", "--json", self.pid)
        self.assertEqual(said.returncode, 1, said.stderr)
        [group] = json.loads(said.stdout)["groups"]
        self.assertEqual(group["stack"][0], "plant (lost_chain)")
        self.assertIn("main (lost_chain)", group["stack"])

    def test_prof_names_the_stack_and_the_line(self) -> None:
        said = brimful("prof", "--seconds", "0.1", "--folded", "-", self.pid)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertRegex(said.stdout, r"main;.*plant \d+")


def main() -> int:
    if not OBSERVER.exists() or shutil.which("gcc") is None:
        print("needs brimful-observer (nlohmann-json3-dev, libdw-dev, libiberty-dev) and gcc")
        return SKIP
    Containers.command = unshared() if shutil.which("unshare") else []
    if not Containers.command:
        print("namespaces of its own are not permitted to this user here (unshare --pid --mount)")
        return SKIP
    return 0 if unittest.main(exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
