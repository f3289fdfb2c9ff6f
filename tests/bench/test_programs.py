#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The real programs are real: their input is the same everywhere, their scripts notice wrong results,
and of a server that a driver starts only the server is measured.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "cli"), str(ROOT / "bench" / "programs")]

import serve_memcached  # noqa: E402
import serve_nginx  # noqa: E402
import serving  # noqa: E402
from passing_on import ALLOCATOR  # noqa: E402

from brimful.bench import programs, sample  # noqa: E402
from brimful.bench.model import Allocator, Cell, Sample, Status  # noqa: E402
from brimful.bench.programs import row as rows  # noqa: E402

SCRIPTS = ROOT / "bench" / "programs"
DIGESTS = {
    "corpus.txt": "aa5daef6bd8faed5482f8e7f974a76a62d34b31f06846934dc8b8ef58b7c3b9f",
    "records.json": "d667aea38737654be92e8109e46eb2f49773ed5cc2d12574c1b78ed2c9e75623",
    "records.xml": "af8814f7e7febe064addc031a500f1d63c13a99f3531c766ff55302b0c382a05",
    "program.cpp": "b2e78567075a4b87931d28683f8e014dd6a76d6f6a0e7ade386f73949c149b71",
    "history.fi": "f7bea03a4962747751e9d23072838cad6f2bde110b5d9b4ef9cd433b45bfb3ca",
    "puzzle.smt2": "c0750c70460d8c842273b785b3d99950203a00496708ba8aa022e068086f8b83",
}
# Rows that take a few seconds at most; the others differ from these in their arguments only.
SHORT = ("redis-lists", "postgres-select", "rocksdb-read", "sqlite3", "lua")
# Rows whose work is done by a server, its worker, or a dozen processes; and how each is shortened.
PROVED = {
    "redis-plain-1k": ("--requests", "20000"),
    "memcached": ("--rounds", "1"),
    "nginx": ("--requests", "300"),
    "git-gc": None,
}

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
        self.assertGreaterEqual(len(cells), 24)
        self.assertEqual(len({cell.name for cell in cells}), len(cells))
        for cell in cells:
            self.assertEqual(cell.family, "program")
            self.assertTrue(cell.title and cell.source and cell.shows, cell.name)
            self.assertTrue(cell.missing or Path(cell.command[0]).is_absolute(), cell.name)

    def test_what_is_not_there_is_a_row_that_says_how_to_get_it(self) -> None:
        with mock.patch.object(rows, "is_there", lambda _: False):
            for cell in programs.cells():
                self.assertRegex(cell.missing, r"^not there: .* \(make real-programs\)$")
                package = cell.source.removeprefix("Debian package ")
                if package != cell.source:
                    self.assertIn(package, cell.missing)

    def test_a_program_of_our_own_build_is_there_when_it_is_built(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / rows.REDIS_LIBC
            with mock.patch.object(rows, "made_program", lambda _: file):
                self.assertFalse(rows.is_there(rows.REDIS_LIBC))
                file.touch()
                self.assertTrue(rows.is_there(rows.REDIS_LIBC))

    def test_short_ones_run_on_the_systems_malloc_even_if_they_bring_another(self) -> None:
        for cell in programs.cells():
            if cell.name not in SHORT or cell.missing:
                continue
            with self.subTest(cell=cell.name):
                good = sample.run(cell, Allocator("glibc"), 0, timeout_s=120)[0]
                self.assertEqual((good.status, good.reason), (Status.OK, ""))
                self.assertGreater(good.metrics["seconds"], 0.05)

    def test_the_allocator_is_proved_where_the_work_is_done(self) -> None:
        for cell in programs.cells():
            if cell.name not in PROVED or cell.missing:
                continue
            with self.subTest(cell=cell.name):
                short = replace(cell, command=shortened(cell.command, PROVED[cell.name]))
                good = sample.run(short, Built.allocator, 0, timeout_s=120)[0]
                self.assertEqual((good.status, good.reason), (Status.OK, ""))
                self.assertIn(Built.allocator.library, good.served_by)


def shortened(command: Sequence[str], option: tuple[str, str] | None) -> tuple[str, ...]:
    """The command with another value of one option."""
    words = list(command)
    if option:
        words[words.index(option[0]) + 1] = option[1]
    return tuple(words)


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

    def changed(self, name: str, right: str, wrong: str, *command: str) -> str:
        """What a script that expects something else says of a small input."""
        text = (SCRIPTS / name).read_text()
        self.assertIn(right, text)
        with tempfile.TemporaryDirectory() as folder:
            script, given = Path(folder) / name, Path(folder) / "input"
            script.write_text(text.replace(right, wrong))
            given.write_text(INPUT_OF[script.suffix])
            return self.fails(*command, str(script), str(given))

    @unittest.skipUnless(shutil.which("perl"), "perl is not installed")
    def test_in_perl_ends_it_with_1(self) -> None:
        said = self.changed("text.pl", "2**($depth + 1) - 1", "2**($depth + 1)", "perl")
        self.assertIn("a tree lost a node", said)

    @unittest.skipUnless(Path("/usr/bin/ruby").exists(), "ruby is not installed")
    def test_in_ruby_ends_it_with_1(self) -> None:
        said = self.changed("text.rb", "2**(depth + 1) - 1", "2**(depth + 1)", "/usr/bin/ruby")
        self.assertIn("a tree lost a node", said)

    @unittest.skipUnless(shutil.which("php"), "php is not installed")
    def test_in_php_ends_it_with_1(self) -> None:
        said = self.changed("records.php", "4 * count", "5 * count", "php", "-n")
        self.assertIn("tags were lost", said)

    @unittest.skipUnless(shutil.which("java"), "java is not installed")
    def test_in_java_ends_it_with_1(self) -> None:
        said = self.changed("Words.java", "sum == words.length", "sum != words.length", "java")
        self.assertIn("words were lost", said)

    @unittest.skipUnless(shutil.which("xsltproc"), "xsltproc is not installed")
    def test_in_libxslt_ends_it_with_1(self) -> None:
        said = self.changed("report.xsl", "!= 4 *", "!= 5 *", "xsltproc")
        self.assertIn("tags were lost", said)


# What each kind of script reads, as short as it may be.
WORDS = "one two\nthree fourteen\n"
INPUT_OF = {
    ".pl": WORDS,
    ".rb": WORDS,
    ".java": WORDS,
    ".php": '[{"id": 1, "name": "a", "note": "b c", "tags": {"p": 1, "q": 2, "r": 3, "s": 4}}]',
    ".xsl": '<records><record id="1"><name>a</name><tag name="p">1</tag></record></records>',
}


class AClient(unittest.TestCase):
    def told_by(self, server: socket.socket, answer: bytes) -> None:
        with server:
            server.recv(1 << 16)
            server.sendall(answer)

    def test_of_memcached_compares_every_byte(self) -> None:
        asked, told = serve_memcached.batches(8, random.Random(1))[0]
        for answer, message in (
            (told, ""),
            (told[:-9] + b"?" + told[-8:], "another answer"),
            (told[:-1], "closed the connection"),
        ):
            ours, theirs = socket.socketpair()
            server = threading.Thread(target=self.told_by, args=(theirs, answer))
            server.start()
            exchange = functools.partial(serve_memcached.exchange, ours, asked, told)
            with self.subTest(message=message), ours:
                if not message:
                    exchange()
                else:
                    with self.assertRaisesRegex(serving.ServingError, message):
                        exchange()
            server.join()

    def test_of_nginx_unpacks_what_it_got(self) -> None:
        packed = gzip.compress(b"page two")
        told = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\npage one"
        told += b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n"
        told += b"5\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (packed[:5], len(packed) - 5, packed[5:])
        self.assertEqual(serve_nginx.bodies(told), [b"page one", b"page two"])


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
