#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs built from the authors' archives: what is fetched is what the table says, once, and one that
cannot be had is named and stops no other.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "programs"), str(ROOT / "cli")]

import build_programs  # noqa: E402

from brimful.bench.programs import row  # noqa: E402
from rivals import build, recipes, sources  # noqa: E402
from rivals.catalog import Upstream  # noqa: E402


class AnArchiveOfDebian(unittest.TestCase):
    """apt is a script here; what it would download is a small archive."""

    ARCHIVE = "some_1.0.orig.tar.gz"

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.shell = recipes.Shell(self.folder / "log", self.folder)
        (self.folder / "some-1.0").mkdir()
        (self.folder / "some-1.0" / "Makefile").write_text("all:\n")
        (self.folder / "pool").mkdir()
        self.archive = self.folder / "pool" / self.ARCHIVE
        line = ["tar", "-czf", str(self.archive), "-C", str(self.folder), "some-1.0"]
        subprocess.run(line, check=True, timeout=60)
        # As `apt-get download --print-uris` and `apt-helper download-file ADDRESS FILE`.
        self.put(
            "apt-get", f"echo \"'file:{self.folder}/pool/some_1.0_all.deb' some_1.0_all.deb 9\""
        )
        self.put("apt-helper", 'cp "${2#file:}" "$3"')
        path = mock.patch.dict("os.environ", PATH=f"{self.folder}:{os.environ['PATH']}")
        helper = mock.patch.object(sources, "APT_HELPER", str(self.folder / "apt-helper"))
        for patch in (path, helper):
            patch.start()
            self.addCleanup(patch.stop)

    def put(self, name: str, line: str) -> None:
        script = self.folder / name
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)

    def fetch(self, checksum: str = "") -> Path:
        digest = checksum or build.sha256(self.archive)
        return sources.fetch(Upstream("some", self.ARCHIVE, digest), self.folder, self.shell)

    def test_lies_beside_the_binary_package_and_is_unpacked(self) -> None:
        self.assertEqual((self.fetch() / "Makefile").read_text(), "all:\n")

    def test_is_fetched_once(self) -> None:
        self.fetch()
        self.put("apt-helper", "exit 1")
        self.assertTrue((self.fetch() / "Makefile").exists())

    def test_with_another_checksum_is_refused(self) -> None:
        with self.assertRaisesRegex(recipes.BuildError, "another checksum"):
            self.fetch("0" * 64)
        self.assertFalse((self.folder / "some" / "unpacked").exists())

    def test_that_apt_does_not_know_is_a_reason(self) -> None:
        self.put("apt-get", "echo 'E: Unable to locate package some' >&2; exit 100")
        with self.assertRaisesRegex(recipes.BuildError, "apt does not know some: .*locate package"):
            self.fetch()

    def test_becomes_a_program_and_a_failure_stops_no_other(self) -> None:
        def make(source: Path, program: Path, shell: recipes.Shell) -> None:
            shutil.copyfile(source / "Makefile", program)

        good = Upstream("some", self.ARCHIVE, build.sha256(self.archive))
        table = (
            build_programs.Program("bad", "Bad", Upstream("some", "no.tar.gz", ""), make),
            build_programs.Program("good", "Good", good, make),
        )
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = build_programs.main(build.Workshop(self.folder / "built"), table)
        self.assertEqual(code, 1)
        self.assertRegex(output.getvalue(), r"Bad could not be built: .*log: .*logs/bad.log")
        self.assertEqual((self.folder / "built" / "good").read_text(), "all:\n")


class TheTable(unittest.TestCase):
    def test_builds_what_the_rows_of_the_bench_look_for(self) -> None:
        names = [program.name for program in build_programs.PROGRAMS]
        self.assertEqual(names, [row.REDIS_LIBC])

    def test_has_a_checksum_for_each(self) -> None:
        for program in build_programs.PROGRAMS:
            self.assertRegex(program.origin.sha256, "^[0-9a-f]{64}$")


if __name__ == "__main__":
    unittest.main()
