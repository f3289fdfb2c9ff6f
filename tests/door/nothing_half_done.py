#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a clone does on a machine that lacks something: names it and leaves nothing half done.

A machine without a package is a PATH without its commands, and for the test framework a CMake that is
told not to find it. Nothing is installed: whoever calls here may not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import _clone

NOBODY = 65534
TASKS = (
    "run",
    "lib",
    "lib-locked",
    "test",
    "test-long",
    "bench",
    "rivals",
    "lint",
    "format",
    "install",
)


class WithoutTheTools(unittest.TestCase):
    """No compiler, CMake, Ninja or sudo, and not root."""

    place: Path
    folder: Path
    path: Path
    user: list[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.place = Path(tempfile.mkdtemp(prefix="brimful-door-"))
        cls.addClassCleanup(shutil.rmtree, cls.place, ignore_errors=True)
        cls.place.chmod(0o755)
        cls.folder = _clone.clone(cls.place / "brimful")
        cls.path = cls.place / "bin"
        cls.path.mkdir()
        for program in Path("/usr/bin").iterdir():
            if not re.search(r"g\+\+|clang|^c(\+\+|make)$|^ninja$|^sudo$|^doas$", program.name):
                (cls.path / program.name).symlink_to(program)
        cls.user = []
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(cls.folder)], check=True)
            who = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            cls.user = ["setpriv", *who]

    def make(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.user, "make", "--no-print-directory", *arguments],
            cwd=self.folder,
            env=_clone.environment(PATH=str(self.path), HOME="/nonexistent"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )

    def test_each_task_names_the_packages_and_builds_nothing(self) -> None:
        for task in TASKS:
            with self.subTest(task=task):
                done = self.make(task)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertEqual(_clone.complaint(done.returncode, done.stdout), "", done.stdout)
                named = done.stdout.split("apt-get install --no-install-recommends ")[1].split(
                    "\n"
                )[0]
                self.assertLessEqual({"g++", "cmake", "ninja-build"}, set(named.split()))
                left = [str(path) for path in (self.folder / "build").rglob("*") if path.is_file()]
                self.assertEqual(left, [])

    def test_a_cross_build_names_its_compiler(self) -> None:
        self.assertIn("g++-aarch64-linux-gnu", self.make("lib", "PRESET=aarch64").stdout)
        self.assertRegex(self.make("lib", "CXX=clang++", "CC=clang").stdout, r" clang\n")

    def test_the_list_of_tasks_needs_nothing(self) -> None:
        done = self.make()
        self.assertEqual(done.returncode, 0)
        self.assertIn("make run", done.stdout)


@unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja"), "cmake or ninja is missing")
class WithoutTheTestFramework(unittest.TestCase):
    """`make run` and `make lib` install no GoogleTest; configuring must not ask for it."""

    def configured(self, folder: str, *options: str) -> str:
        done = subprocess.run(
            ["cmake", "--preset", "release", "-S", str(_clone.ROOT), "-B", folder, *options],
            env=_clone.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_the_libraries_are_configured_all_the_same_and_the_tests_when_it_has_come(self) -> None:
        with tempfile.TemporaryDirectory(prefix="brimful-door-") as folder:
            said = self.configured(folder, "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON")
            self.assertIn("libgtest-dev", said)
            ninja = ["ninja", "-C", folder, "-t", "query"]
            library = subprocess.run([*ninja, "libbrimful.so"], capture_output=True, text=True)
            self.assertEqual(library.returncode, 0, library.stderr)
            self.assertNotIn(
                "libgtest-dev", self.configured(folder, "-UCMAKE_DISABLE_FIND_PACKAGE_GTest")
            )
            self.assertTrue((Path(folder) / "tests" / "CTestTestfile.cmake").exists())


if __name__ == "__main__":
    unittest.main()
