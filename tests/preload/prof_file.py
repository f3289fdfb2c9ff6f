#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""prof_file end to end: what a program's samples say, against what it allocated.

Two programs of known totals (of small objects, and of small and large ones), in both front ends and
sampled once in 64 KiB: the estimates of bytes and blocks must lie within 4 standard errors. Then the
form of the file, as docs/design/0031 has it.
"""

from __future__ import annotations

import math
import os
import shutil
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("BRIMFUL_LIB", ROOT / "build/release/libbrimful.so")).resolve()
INTERVAL = 65536
MAGIC = b"brimful samples 1\n".ljust(32, b"\0")
CONTROL = struct.Struct("<QII14Q")  # meta::SampleControl
RECORD = struct.Struct("<II7QII")  # meta::SampleRecord up to its stacks
STACK = struct.Struct("<8Q4I")  # meta::SampleStack up to its addresses
STACK_BYTES = STACK.size + 64 * 8
LIVE, FREED = 1, 2

# Its first request is a large block, before anything is read or begun.
FIRST = r"""
#include <stdio.h>
#include <stdlib.h>
static char* first;
__attribute__((constructor)) static void begin(void) { first = malloc(100000); }
int main(void) { return first == NULL; }
"""

# Prints what it allocated while it was sampled: blocks, bytes, and the variance of the estimate's bytes.
SOURCE = r"""
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char** argument) {
  const size_t most = count > 1 ? (size_t)atol(argument[1]) : 500;
  void* held[500] = {0};
  double bytes = 0, variance = 0;
  const long blocks = 300000;
  unsigned random = 1;
  for (long i = 0; i < blocks; ++i) {
    random = random * 1664525 + 1013904223;
    void** place = &held[(random >> 8) % 500];
    free(*place);
    *place = malloc(1 + (random >> 10) % most);
    const double usable = (double)malloc_usable_size(*place);
    const double p = -expm1(-usable / 65536);
    bytes += usable;
    variance += usable * usable * (1 - p) / p;
  }
  printf("%ld %.0f %.0f\n", blocks, bytes, variance);
  return 0;
}
"""


def sections(data: bytes) -> list[tuple[str, bytes]]:
    """The parts of a file of samples."""
    found = []
    at = len(MAGIC)
    while at < len(data):
        name = data[at : at + 8].decode().strip()
        (size,) = struct.unpack_from("<Q", data, at + 8)
        at += 16
        if name == "MAPS":
            size = len(data) - at
        found.append((name, data[at : at + size]))
        at += -(-size // 8) * 8
    return found


@unittest.skipUnless(shutil.which("gcc"), "gcc is not installed")
class ProfFile(unittest.TestCase):
    """A program and the file that it leaves."""

    folder: tempfile.TemporaryDirectory[str]
    program: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        source = Path(cls.folder.name, "known.c")
        source.write_text(SOURCE)
        cls.program = source.with_suffix("")
        command = ["gcc", "-O1", "-fno-builtin", "-o", str(cls.program), str(source), "-lm"]
        subprocess.run(command, check=True)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def run_sampled(self, conf: str, most: int) -> tuple[list[float], list[tuple[str, bytes]]]:
        """What the program printed, and its file."""
        for old in Path(self.folder.name).glob("*.samples"):
            old.unlink()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BRIMFUL_")}
        environment["BRIMFUL_CONF"] = f"{conf},prof_file:{self.folder.name}/%p.samples"
        environment["LD_PRELOAD"] = str(LIBRARY)
        command = [str(self.program), str(most)]
        process = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )
        self.assertEqual(process.stderr, "")
        (path,) = Path(self.folder.name).glob("*.samples")
        self.assertTrue(path.stem.isdigit(), "%p is the number of the process")
        self.assertEqual(path.stat().st_mode & 0o777, 0o600, "stacks are nobody else's business")
        data = path.read_bytes()
        self.assertEqual(data[: len(MAGIC)], MAGIC)
        return [float(word) for word in process.stdout.split()], sections(data)

    def test_estimates_are_those_of_the_program(self) -> None:
        for front_end in ("percpu", "thread"):
            for most in (500, 30000, 200000):
                with self.subTest(front_end=front_end, most=most):
                    conf = f"prof:{INTERVAL},front_end:{front_end}"
                    (blocks, total, variance), parts = self.run_sampled(conf, most)
                    control = CONTROL.unpack(dict(parts)["CONTROL"])
                    error = (control[13] - total) / math.sqrt(variance)
                    self.assertLess(abs(error), 5, f"{control[13]} of {total} bytes")
                    self.assertLess(abs(control[14] / 1024 / blocks - 1), 0.2)
                    self.assertEqual(control[11], 0, "none is lost")

    def test_the_very_first_block_may_be_a_sample(self) -> None:
        source = Path(self.folder.name, "first.c")
        source.write_text(FIRST)
        program = source.with_suffix("")
        subprocess.run(["gcc", "-fno-builtin", "-o", str(program), str(source)], check=True)
        for front_end in ("percpu", "thread"):
            path = Path(self.folder.name, f"{front_end}.first")
            conf = f"prof:1,front_end:{front_end},prof_file:{path}"
            environment = {"LD_PRELOAD": str(LIBRARY), "BRIMFUL_CONF": conf}
            subprocess.run([str(program)], env=environment, check=True)
            control = CONTROL.unpack(dict(sections(path.read_bytes()))["CONTROL"])
            self.assertGreaterEqual(control[13], 100000, front_end)

    def test_records_are_whole_and_their_stacks_begin_in_the_library(self) -> None:
        _, parts = self.run_sampled("prof:4096", 500)
        self.assertEqual([parts[0][0], parts[-1][0]], ["CONTROL", "MAPS"])
        library = [
            [int(end, 16) for end in line.split()[0].split("-")]
            for line in parts[-1][1].decode().splitlines()
            if "libbrimful" in line and "x" in line.split()[1]
        ]
        records = [content for name, content in parts if name == "SAMPLE"]
        self.assertGreater(len(records), 1000)
        numbers = set()
        live = []
        for content in records:
            sequence, state, number, address, requested, usable, interval, born, died, _, _ = (
                RECORD.unpack_from(content)
            )
            self.assertEqual(sequence % 2, 0)
            self.assertIn(state, (LIVE, FREED))
            self.assertEqual(interval, 4096)
            self.assertLessEqual(requested, usable)
            numbers.add(number)
            live += [address] if state == LIVE else []
            self.assertEqual(died >= born, state == FREED)
            for place in range(1 if state == LIVE else 2):
                stack = STACK.unpack_from(content, RECORD.size + place * STACK_BYTES)
                ip, copied, offset = stack[0], stack[10], stack[11]
                self.assertTrue(any(start <= ip < end for start, end in library))
                self.assertGreater(copied, 100)
                self.assertLessEqual(offset + copied, len(content))
        self.assertEqual(len(numbers), len(records))
        self.assertEqual(len(set(live)), len(live), "live blocks lie apart")

    def test_a_path_that_cannot_be_written_is_said(self) -> None:
        environment = {"LD_PRELOAD": str(LIBRARY), "BRIMFUL_CONF": "prof_file:/no/such/folder"}
        process = subprocess.run(
            [str(self.program)], env=environment, capture_output=True, text=True, check=True
        )
        self.assertIn('brimful: prof_file: "/no/such/folder" can\'t be written', process.stderr)


if __name__ == "__main__":
    unittest.main()
