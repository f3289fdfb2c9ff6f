#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The real programs are real: their input is the same everywhere, their scripts notice wrong results,
and of a server that a driver starts only the server is measured.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cli"))

from passing_on import ALLOCATOR  # noqa: E402

from brimful.bench import programs, sample  # noqa: E402
from brimful.bench.model import Allocator, Cell, Sample, Status  # noqa: E402

SCRIPTS = ROOT / "bench" / "programs"
DIGESTS = {
    "corpus.txt": "aa5daef6bd8faed5482f8e7f974a76a62d34b31f06846934dc8b8ef58b7c3b9f",
    "records.json": "d667aea38737654be92e8109e46eb2f49773ed5cc2d12574c1b78ed2c9e75623",
    "puzzle.smt2": "c0750c70460d8c842273b785b3d99950203a00496708ba8aa022e068086f8b83",
}
# Rows that take a few seconds at most; the others differ from these in their arguments only.
SHORT = ("redis-lists", "postgres-select", "rocksdb-read", "sqlite3", "lua")

# A driver with a server of 30 MiB that does as argv[1] says, and a client of 200 MiB.
DRIVER = f"""
import sys
sys.path.insert(0, {str(SCRIPTS)!r})
import serving
HOW = sys.argv[1]
SERVER = '''
import os, signal, sys, time
how, folder = sys.argv[1:]
if how == "refuse":
    sys.exit("no such luck")
block = bytearray(30 << 20)
open(folder + "/ready", "w").close()
while not os.path.exists(folder + "/end"):
    time.sleep(0.01)
if how == "segv":
    os.kill(os.getpid(), signal.SIGSEGV)
if how == "hang":
    time.sleep(60)
sys.exit(3 if how == "exit" else 0)
'''
CLIENT = '''
import sys
block = bytearray(200 << 20)
assert "libtestmalloc" not in open("/proc/self/maps").read(), "the client is preloaded"
sys.exit("the client is not amused" if sys.argv[1] == "client" else 0)
'''

def start(folder):
    return serving.Server([{sys.executable!r}, "-c", SERVER, HOW, str(folder)], folder)

def load(server, folder):
    server.wait_until((folder / "ready").exists)
    serving.client([{sys.executable!r}, "-c", CLIENT, HOW])
    (folder / "end").touch()
    if HOW == "segv":
        raise serving.ServingError("connection lost")
    return {{"operations": 1, "seconds": 0.125, "extra": {{"get_us": 2}}}}

sys.exit(serving.main("fake", start, load))
"""


class Built:
    folder: tempfile.TemporaryDirectory[str]
    allocator: Allocator
    driver: str


def setUpModule() -> None:
    if shutil.which("gcc") is None:
        raise unittest.SkipTest("gcc is not installed")
    Built.folder = tempfile.TemporaryDirectory(prefix="brimful-test-")
    folder = Path(Built.folder.name)
    folder.chmod(0o755)  # a server that runs as another user must be able to read the library
    library = folder / "libtestmalloc.so"
    (folder / "allocator.c").write_text(ALLOCATOR)
    line = ["gcc", "-shared", "-fPIC", "-o", str(library), str(folder / "allocator.c")]
    subprocess.run(line, check=True, timeout=120)
    Built.allocator = Allocator("test", library=str(library))
    driver = folder / "serve_fake.py"
    driver.write_text(DRIVER)
    Built.driver = str(driver)


def tearDownModule() -> None:
    Built.folder.cleanup()


class TheRows(unittest.TestCase):
    def test_each_has_a_name_of_its_own_and_can_run_or_says_why_not(self) -> None:
        cells = programs.cells()
        self.assertEqual(len({cell.name for cell in cells}), len(cells))
        for cell in cells:
            self.assertEqual(cell.family, "program")
            self.assertTrue(cell.title and cell.source and cell.shows, cell.name)
            self.assertTrue(cell.missing or Path(cell.command[0]).is_absolute(), cell.name)

    def test_what_is_not_installed_is_a_row_with_its_reason(self) -> None:
        with mock.patch.object(programs, "_is_there", lambda _: False):
            for cell in programs.cells():
                self.assertRegex(cell.missing, r"^not installed: .* \(make real-programs\)$")
                package = cell.source.removeprefix("Debian package ")
                self.assertIn(package, cell.missing)

    def test_short_ones_run_on_the_systems_malloc_even_if_they_bring_another(self) -> None:
        for cell in programs.cells():
            if cell.name not in SHORT or cell.missing:
                continue
            with self.subTest(cell=cell.name):
                good = sample.run(cell, Allocator("glibc"), 0, timeout_s=120)[0]
                self.assertEqual((good.status, good.reason), (Status.OK, ""))
                self.assertGreater(good.metrics["seconds"], 0.05)


class TheInput(unittest.TestCase):
    def test_it_is_the_same_on_every_machine(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            line = [sys.executable, str(SCRIPTS / "make_inputs.py"), folder]
            subprocess.run(line, check=True, timeout=120)
            for name, digest in DIGESTS.items():
                content = (Path(folder) / name).read_bytes()
                self.assertEqual(hashlib.sha256(content).hexdigest(), digest, name)


class AWrongResult(unittest.TestCase):
    def fails(self, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    @unittest.skipUnless(shutil.which("sqlite3"), "sqlite3 is not installed")
    def test_in_sqlite_ends_it_with_1(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            wrong = Path(folder) / "wrong.sql"
            text = (SCRIPTS / "queries.sql").read_text()
            wrong.write_text(text.replace("count(*) = 100000", "count(*) = 100001"))
            said = self.fails("sqlite3", ":memory:", f".read {wrong}")
            self.assertIn("CHECK constraint failed", said)

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_in_node_ends_it_with_1(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            wrong = Path(folder) / "wrong.json"
            wrong.write_text('[{"id": 1, "name": "a", "tags": {"b": 1}}]')
            self.assertIn("tags were lost", self.fails("node", f"{SCRIPTS}/objects.js", str(wrong)))

    @unittest.skipUnless(shutil.which("lua5.4"), "lua5.4 is not installed")
    def test_in_lua_ends_it_with_1(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script, text = Path(folder) / "text.lua", Path(folder) / "text"
            lines = (SCRIPTS / "text.lua").read_text()
            script.write_text(lines.replace("2 ^ (depth + 1) - 1", "2 ^ (depth + 1)"))
            text.write_text("one two\nthree\n")
            self.assertIn("a tree lost a node", self.fails("lua5.4", str(script), str(text)))


class ADriver(unittest.TestCase):
    def taken(self, how: str, timeout_s: float = 30) -> Sample:
        command = (sys.executable, Built.driver, how)
        cell = Cell("fake", "fake", "program", command=command, threads=0)
        return sample.run(cell, Built.allocator, 0, timeout_s=timeout_s)[0]

    def test_it_gives_the_clients_time_and_the_servers_memory(self) -> None:
        good = self.taken("well")
        self.assertEqual((good.status, good.reason), (Status.OK, ""))
        self.assertEqual(good.metrics["seconds"], 0.125)
        self.assertEqual(good.extra, {"get_us": 2, "operations": 1})
        self.assertGreater(good.metrics["peak_rss_kib"], 30 << 10)
        self.assertLess(good.metrics["peak_rss_kib"], 100 << 10)

    def test_memory_over_time_is_the_servers(self) -> None:
        cell = Cell("fake", "fake", "program", command=(sys.executable, Built.driver, "well"))
        _, curve, _ = sample.run(cell, Built.allocator, 0, timeout_s=30, sample_ms=10)
        assert curve is not None
        self.assertGreater(max(curve.rss_kib), 30 << 10)
        self.assertLess(max(curve.rss_kib), 100 << 10)

    def test_a_server_that_crashes_is_a_crash(self) -> None:
        bad = self.taken("segv")
        self.assertEqual(bad.status, Status.CRASHED)
        self.assertIn("SIGSEGV", bad.reason)

    def test_a_server_that_fails_is_a_failure(self) -> None:
        failed = self.taken("exit")
        self.assertEqual((failed.status, failed.reason[:11]), (Status.FAILED, "exit code 3"))
        refused = self.taken("refuse")
        self.assertEqual(refused.status, Status.FAILED)
        self.assertIn("no such luck", refused.reason)

    def test_a_client_that_fails_is_a_failure(self) -> None:
        bad = self.taken("client")
        self.assertEqual(bad.status, Status.FAILED)
        self.assertIn("the client is not amused", bad.reason)

    def test_a_server_that_hangs_is_ended_with_everything_around_it(self) -> None:
        bad = self.taken("hang", timeout_s=3)
        self.assertEqual(bad.status, Status.TIMED_OUT)
        folder = Path(Built.folder.name)
        self.assertFalse(
            [path for path in Path("/proc").glob("[0-9]*/cmdline") if _runs(path, folder)]
        )

    def test_without_a_launcher_it_says_so(self) -> None:
        done = subprocess.run(
            [sys.executable, f"{SCRIPTS}/serve_redis.py", "--tests", "get", "--size", "1"]
            + ["--keys", "1", "--requests", "1"],
            capture_output=True,
            text=True,
            timeout=60,
            env={"PATH": "/usr/bin:/bin"},
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("brimful bench", done.stderr)


def _runs(path: Path, folder: Path) -> bool:
    """Whether a process still has `folder` in its command line."""
    try:
        return str(folder).encode() in path.read_bytes()
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main()
