#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`make run` works the first time, where a clone may lie and whoever calls it: fresh clones, built and run.

Two at once, because nothing may be shared between them that only one may hold. Together they try: a
path with blanks and umlauts, no HOME, a HOME that can't be written to, no network, not root, `make -j8`
and several tasks in one call. That what is missing is named is tried by nothing_half_done.py, which
needs no build.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import _clone

NOBODY = 65534
LONGEST_S = 3600
PROGRAMS = ("C++ compiler", "python3, malloc", "python3, pymalloc")


class Call:
    """A make under way in a folder, its output in a file beside the folder."""

    def __init__(self, folder: Path, command: list[str], environment: dict[str, str]) -> None:
        self.log = folder.parent / f"{folder.name}.log"
        with self.log.open("w") as file:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def end(self) -> tuple[int, str]:
        """Exit code and output."""
        code = self.process.wait(LONGEST_S)
        return code, self.log.read_text(errors="replace")


class TheFirstRun(unittest.TestCase):
    def setUp(self) -> None:
        # Everybody may go through it: not root's clone lies in here, too.
        self.folder = Path(tempfile.mkdtemp(prefix="brimful-door-"))
        self.folder.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def check_ran(self, call: Call) -> None:
        code, said = call.end()
        self.assertEqual(_clone.complaint(code, said, may_lack=False), "", said[-3000:])
        self.assertNotIn("FAILED", said)
        for program in PROGRAMS:
            self.assertIn(f"{program}: ", said)
        self.assertRegex(said, r"Raw data: build/run/demo-.*\.json\n")

    def test_two_clones_at_once_one_in_a_path_with_blanks_and_one_without_network(self) -> None:
        blanks = _clone.clone(self.folder / "Meine Bücher & co" / "brim: ful")
        plain = _clone.clone(self.folder / "plain")
        home = self.folder / "home"
        home.mkdir(mode=0o555)
        alone = (
            ["unshare", "--net"] if os.getuid() == 0 else ["unshare", "--map-root-user", "--net"]
        )
        if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
            alone = []
            print("no network namespace can be made here: that is not tried", flush=True)
        calls = [
            Call(
                blanks,
                ["make", "-j8", "run", "lib", "RUN_SECONDS=1"],
                _clone.environment(HOME=None, XDG_CACHE_HOME=None),
            ),
            Call(
                plain,
                [*alone, "make", "run", "RUN_SECONDS=1"],
                _clone.environment(HOME="/proc/nonexistent", XDG_CACHE_HOME=str(home), LC_ALL="C"),
            ),
        ]
        for call in calls:
            self.check_ran(call)

    @unittest.skipIf(os.getuid() != 0, "only root can become somebody else")
    def test_by_somebody_who_may_install_nothing(self) -> None:
        folder = _clone.clone(self.folder / "brimful")
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(folder)], check=True)
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        self.check_ran(
            Call(
                folder,
                [*command, "make", "run", "RUN_SECONDS=1"],
                _clone.environment(HOME="/nonexistent", PATH="/usr/local/bin:/usr/bin:/bin"),
            )
        )


if __name__ == "__main__":
    if shutil.which("g++") is None or shutil.which("cmake") is None:
        _clone.skip("g++ or cmake is not installed")
    unittest.main(verbosity=2)
