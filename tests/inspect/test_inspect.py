#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`brimful inspect`: sums that add up, every kind of address told for what it is, bad input in one line.

Environment: BRIMFUL_BUILD, the folder of the build.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BRIMFUL_BUILD", ROOT / "build/release")).resolve()
LIBRARY = BUILD / "libbrimful.so"
OBSERVER = BUILD / "brimful-observer"
SKIP = 77
PAGE = 4096
PLAIN = os.environ | {"BRIMFUL_OBSERVER": str(OBSERVER), "NO_COLOR": "1", "COLUMNS": "80"}
FOREIGN_SCHEMA = r"""
#include <unistd.h>
struct { char magic[16]; unsigned schema, entries; char version[32]; } volatile table =
    {"brimful:anatomy", 99, 0, "9.9.9"};
int main(void) { write(1, "x\n", 2); char byte; table.entries = 0; read(0, &byte, 1); return 0; }
"""


def compiled(source: Path, folder: Path, *options: str) -> Path:
    program = folder / source.stem
    command = ["gcc", "-O1", "-fno-builtin", "-pthread", str(source), *options, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def inspect(*arguments: object, command: str = "") -> subprocess.CompletedProcess[str]:
    program = [command] if command else [str(ROOT / "brimful"), "inspect"]
    return subprocess.run(
        [*program, *map(str, arguments)], capture_output=True, text=True, env=PLAIN, timeout=60
    )


class Held:
    """held.c at its wait, with the addresses that it names."""

    def __init__(
        self, program: Path, *arguments: str, preload: bool = True, conf: str = ""
    ) -> None:
        environment = os.environ | {"BRIMFUL_CONF": f"reserve:64M,{conf}"}
        if preload:
            environment["LD_PRELOAD"] = str(LIBRARY)
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [program, *arguments], stdin=pipe, stdout=pipe, text=True, env=environment
        )
        assert self.process.stdout is not None
        self.at: dict[str, str] = {}
        for line in self.process.stdout:
            name, address = line.split()
            self.at[name] = address
            if name == "code":
                break

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    @property
    def pid(self) -> int:
        return self.process.pid

    def see(self, name: str) -> dict[str, Any]:
        return json.loads(inspect(self.pid, "--address", self.at[name], "--json").stdout)


class Inspect(unittest.TestCase):
    folder: Path
    held: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="brimful-inspect-"))
        cls.held = compiled(ROOT / "tests/inspect/held.c", cls.folder)

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(cls.folder)

    def observe(self, target: object, *options: str) -> dict[str, Any]:
        done = subprocess.run(
            [OBSERVER, "inspect", *options, str(target)], capture_output=True, text=True, timeout=60
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def fails(self, target: object, *texts: str) -> None:
        done = inspect(target)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)

    def test_the_sums_add_up_to_what_the_kernel_says(self) -> None:
        for conf in ("", "tier:hardened", "front_end:thread", "prof:16K"):
            with Held(self.held, conf=conf) as held:
                seen = self.observe(held.pid, "--check")
            totals = seen["totals"]
            parts = ("live", "free_in_slabs", "free_runs", "metadata")
            self.assertEqual(sum(totals[part] for part in parts), totals["resident"])
            self.assertLessEqual(abs(seen["check"]["difference"]), PAGE, conf)
            self.assertEqual(seen["moving"]["slabs"], 0)
            for key in ("live", "free_in_slabs", "resident"):
                in_cells = sum(cell[key] for cell in seen["hugepages"])
                self.assertLessEqual(in_cells, totals[key])
                self.assertGreater(in_cells, 0)
            self.assertGreaterEqual(totals["live_objects"], 10000)

    def test_an_object_is_told_for_what_it_is(self) -> None:
        with Held(self.held) as held:
            live = held.see("live")
            self.assertEqual((live["what"], live["state"], live["offset"]), ("object", "live", 0))
            self.assertEqual(live["class_bytes"], 112)
            self.assertEqual(live["start"], int(held.at["live"], 16))
            self.assertEqual(live["end"] - live["start"], 112)
            freed = held.see("freed")
            self.assertEqual((freed["state"], freed["offset"]), ("free", 0))
            self.assertIn("freed", freed["free_as"])
            self.assertEqual(held.see("foreign")["state"], "free")
            large = held.see("large")
            self.assertEqual((large["what"], large["state"]), ("large block", "live"))
            self.assertEqual(held.see("stack")["what"], "stack")
            self.assertEqual(held.see("code")["what"], "file")
            inner = inspect(held.pid, "--address", hex(int(held.at["live"], 16) + 16))
            self.assertIn("is 16 bytes into a live 112-byte object", inner.stdout)
            self.assertIn("not mapped", inspect(held.pid, "--address", "0x10").stdout)

    def test_a_freed_object_of_another_thread_lies_in_a_magazine(self) -> None:
        with Held(self.held, conf="front_end:thread") as held:
            foreign = held.see("foreign")
            self.assertEqual((foreign["state"], foreign["free_as"]), ("free", "magazine"))
            self.assertNotEqual(foreign["context"], foreign["slab"]["context"])

    def test_a_sampled_object_names_who_allocated_it(self) -> None:
        with Held(self.held, conf="prof:1") as held:
            live = held.see("live")
            self.assertEqual(live["slab"]["owner"], "sampled")
            self.assertEqual(live["sample"]["requested"], 100)
            self.assertTrue(live["sample"]["allocated_by"]["frames"])
            self.assertIn("freed_by", held.see("freed")["sample"])

    def test_the_picture_fits_the_terminal_without_colour(self) -> None:
        with Held(self.held) as held:
            done = inspect(held.pid)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("\x1b", done.stdout)
            self.assertLessEqual(max(map(len, done.stdout.splitlines()[1:])), 80)
            self.assertIn("each letter is 2 MiB", done.stdout)

    def test_svg_and_html_are_whole_and_need_no_network(self) -> None:
        with Held(self.held) as held:
            svg, html = self.folder / "heap.svg", self.folder / "heap.html"
            self.assertEqual(inspect(held.pid, "--svg", svg, "--html", html).returncode, 0)
            cells = json.loads(inspect(held.pid, "--json").stdout)["hugepages"]
        root = ElementTree.parse(svg).getroot()
        titles = [one for one in root.iter() if one.tag.endswith("title")]
        self.assertEqual(len(titles), len(cells))
        text = html.read_text()
        self.assertIn("<svg", text)
        self.assertNotIn("src=", text)
        self.assertNotIn("href=", text)

    def test_what_moves_is_said_to_move_and_the_sums_still_add_up(self) -> None:
        with Held(self.held, "churn") as held:
            moved = 0
            for _ in range(20):
                seen = self.observe(held.pid)
                totals = seen["totals"]
                parts = ("live", "free_in_slabs", "free_runs", "metadata")
                self.assertEqual(sum(totals[part] for part in parts), totals["resident"])
                moved += seen["moving"]["slabs"]
        self.assertGreater(moved, 0)

    def test_a_process_that_ends_meanwhile_is_told_in_one_line(self) -> None:
        for delay in (0, 0.001, 0.003, 0.01):
            with Held(self.held, "churn") as held:
                done = subprocess.Popen(
                    [OBSERVER, "inspect", str(held.pid)], stdout=-1, stderr=-1, text=True
                )
                time.sleep(delay)
                held.process.kill()
                out, said = done.communicate()
            if done.returncode != 0:
                self.assertEqual((done.returncode, out), (1, ""))
                self.assertEqual(len(said.splitlines()), 1, said)

    def test_static_and_stripped_programs_are_known(self) -> None:
        archive = BUILD / "libbrimful.a"
        if not archive.exists():
            self.skipTest("libbrimful.a is not built")
        folder = self.folder / "static"
        folder.mkdir()
        program = compiled(ROOT / "tests/inspect/held.c", folder, "-static", "-s", str(archive))
        with Held(program, preload=False) as held:
            self.assertEqual(held.see("live")["state"], "live")

    def test_processes_that_cant_be_read_are_told_in_one_line(self) -> None:
        with Held(self.held, preload=False) as held:
            self.fails(held.pid, f"process {held.pid}", "does not use brimful")
        ended = subprocess.Popen(["true"])
        ended.wait()
        self.fails(ended.pid, f"no process {ended.pid}")
        self.fails("/nowhere/core", "/nowhere/core", "No such file")
        self.fails(ROOT / "README.md", "no core file")
        self.fails(shutil.which("true"), "no core file")
        source = self.folder / "version.c"
        source.write_text(FOREIGN_SCHEMA)
        with subprocess.Popen([compiled(source, self.folder)], stdin=-1, stdout=-1) as other:
            assert other.stdout is not None
            other.stdout.readline()
            self.fails(other.pid, "brimful 9.9.9", "schema 99")
            other.kill()

    def test_a_process_of_another_user_is_told_in_one_line(self) -> None:
        if os.geteuid() != 0:
            self.fails(1, "process 1", "may not be read")
            return
        with Held(self.held) as held:
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(OBSERVER)]
            reachable = subprocess.run([*command, "inspect"], capture_output=True)
            if reachable.returncode != 2:
                self.skipTest("another user can't start the observer here")
            done = subprocess.run(
                [*command, "inspect", str(held.pid)], capture_output=True, text=True
            )
        self.assertEqual(done.returncode, 1)
        self.assertIn("may not be read", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_wrong_usage_is_code_2(self) -> None:
        self.assertEqual(inspect().returncode, 2)
        self.assertEqual(inspect(1, "--address", "here").returncode, 2)
        self.assertEqual(inspect(1, "--address", "0x10", "--svg", "x").returncode, 2)

    def test_a_core_says_what_the_process_said(self) -> None:
        if not shutil.which("gdb"):
            self.skipTest("gdb is not installed, which writes the core")
        core = self.folder / "core"
        script = ROOT / "observer/gdb/brimful_address.py"
        gdb = [
            "gdb",
            "-nx",
            "-batch",
            "-iex",
            "set debuginfod enabled off",
            "-ex",
            f"source {script}",
        ]
        environment = PLAIN | {"BRIMFUL": str(ROOT / "brimful")}
        with Held(self.held) as held:
            ask = ["-ex", f"brimful-address {held.at['live']}", "-ex", f"gcore {core}"]
            done = subprocess.run(
                [*gdb, "-p", str(held.pid), *ask], capture_output=True, text=True, env=environment
            )
            if not core.exists():
                self.skipTest(f"gdb can't attach here: {done.stderr[-200:]}")
            alive = {name: held.see(name) for name in ("live", "freed", "large")}
            self.assertIn("0 bytes into a live 112-byte object", done.stdout)
            at = held.at
        for name, seen in alive.items():
            dead = self.observe(core, "--address", at[name])
            for key in ("what", "state", "start", "end", "offset"):
                self.assertEqual(dead[key], seen[key], name)
        self.assertEqual(self.observe(core)["residency"], "unknown")
        done = subprocess.run(
            [*gdb, "-c", str(core), "-ex", f"brimful-address {at['live']}"],
            capture_output=True,
            text=True,
            env=environment,
        )
        self.assertIn("0 bytes into a live 112-byte object", done.stdout, done.stderr)
        data = core.read_bytes()
        short = self.folder / "short"
        short.write_bytes(data[: len(data) // 2])
        self.fails(short, "is cut off")


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
