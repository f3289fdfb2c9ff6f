#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The shares of the study `share`: each sample counts once, for what it belongs to, and a machine
without perf is told so.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "cli")]

from brimful.bench import proof  # noqa: E402
from brimful.bench.model import Allocator, Cell  # noqa: E402
from brimful.bench.study import command, records  # noqa: E402
from studies.share import profile, study  # noqa: E402

# As perf script prints: a sample in the library, one in the program, a page fault that clears, one that
# does not, memory mapped, the end of a process, a read, and one of the launcher's.
SCRIPT = """\
swapper     0

my program 12
                   15c51 malloc (/lib/libtest.so)
                       0 [unknown] ([unknown])

my program 12
                   15c51 main (/bin/program)

my program 12
        ffffffff81b6ab30 clear_page_erms ([kernel.kallsyms])
        ffffffff81b6ab31 handle_mm_fault ([kernel.kallsyms])
        ffffffff81b6ab32 asm_exc_page_fault ([kernel.kallsyms])
                   15c51 malloc (/lib/libtest.so)

my program 12
        ffffffff81b6ab30 lru_add ([kernel.kallsyms])
        ffffffff81b6ab31 handle_mm_fault ([kernel.kallsyms])
        ffffffff81b6ab33 __x64_sys_madvise ([kernel.kallsyms])

my program 12
        ffffffff81b6ab30 zap_pte_range ([kernel.kallsyms])
        ffffffff81b6ab33 __x64_sys_munmap ([kernel.kallsyms])

my program 12
        ffffffff81b6ab30 zap_pte_range ([kernel.kallsyms])
        ffffffff81b6ab33 exit_mmap ([kernel.kallsyms])

my program 12
        ffffffff81b6ab30 copy_page_to_iter ([kernel.kallsyms])
        ffffffff81b6ab33 ksys_read ([kernel.kallsyms])

measure 11
                  401000 main (/bin/measure)
"""
NAMES = """\
0000000000094500 0000000000000010 T timer_settime@@GLIBC_2.34
0000000000096030 0000000000000010 T __default_morecore@GLIBC_2.2.5
0000000000098930 0000000000000100 T malloc@@GLIBC_2.2.5
000000000009a300 0000000000000040 W malloc_info@@GLIBC_2.10
000000000009a340 0000000000000010 T mcheck_check_all@@GLIBC_2.2.5
"""
BUSY = r"""
#include <stdlib.h>
int main(void) {
  void* volatile p[64] = {0};
  for (int i = 0; i < 30000000; i++) {
    free(p[i % 64]);
    p[i % 64] = malloc(2000 + i % 64);
  }
}
"""


class ASample(unittest.TestCase):
    def test_counts_once_for_what_it_belongs_to(self) -> None:
        found = profile.counted(SCRIPT.splitlines(), profile.Code("/lib/libtest.so"))
        wanted = {"allocator": 1, "program": 1, "fault": 2, "clear": 1, "mapping": 2, "kernel": 1}
        self.assertEqual(dict(found), wanted)
        self.assertEqual(study.total(found), 7)
        self.assertAlmostEqual(study.percent(found, "fault"), 200 / 7)

    def test_outside_the_allocators_part_of_a_file_is_the_programs(self) -> None:
        for begin, end, part in ((0, 0x15C51, "program"), (0x15C51, 0x15C52, "allocator")):
            found = profile.counted(
                SCRIPT.splitlines(), profile.Code("/lib/libtest.so", begin, end)
            )
            self.assertEqual(found[part], 1 if part == "allocator" else 2)

    def test_with_addresses_of_memory_is_refused_and_not_counted_as_the_programs(self) -> None:
        lines = SCRIPT.replace("           15c51 malloc", "    7feb30fa0000 malloc").splitlines()
        with self.assertRaisesRegex(profile.ProfileError, "addresses of memory"):
            profile.counted(lines, profile.Code("/lib/libtest.so"))


class TheCLibrary(unittest.TestCase):
    def test_holds_malloc_from_its_first_name_to_the_end_of_its_last(self) -> None:
        self.assertEqual(profile.span(NAMES), (0x96030, 0x9A340))
        without = NAMES.replace("__default_morecore", "something")
        self.assertEqual(profile.span(without), (0x98930, 0x9A340))

    def test_without_these_names_is_refused(self) -> None:
        with self.assertRaisesRegex(profile.ProfileError, "does not export malloc"):
            profile.span("")

    def test_of_this_machine_has_all_of_malloc_there(self) -> None:
        code = profile.code_of("", proof.c_library())
        self.assertLess(1000, code.end - code.begin)
        self.assertLess(code.end - code.begin, 100_000)


class TheStudy(unittest.TestCase):
    def run_study(self, *words: str) -> tuple[int, str]:
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.redirect_stdout(io.StringIO()) as said,
            mock.patch.object(command, "WORK", Path(folder)),
        ):
            options = command._parsed(study.STUDY, words)
            code = command.measure(study.STUDY, options)
        return code, said.getvalue()

    def test_without_perf_says_so_in_one_line(self) -> None:
        with mock.patch.dict(os.environ, PATH="/nowhere"):
            code, said = self.run_study("--short")
        line = "all of it: not measured: perf is not installed (Debian package linux-perf)\n"
        self.assertEqual((code, said), (1, line))

    def test_that_may_not_record_says_why(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            perf = Path(folder) / "perf"
            perf.write_text("#!/bin/sh\necho 'Access is limited.' >&2; exit 255\n")
            perf.chmod(0o755)
            with mock.patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"):
                self.assertEqual(
                    profile.objection(), "perf may not record here: Access is limited."
                )

    def test_finds_a_program_that_does_nothing_but_allocate(self) -> None:
        if reason := profile.objection():
            self.skipTest(reason)
        with tempfile.TemporaryDirectory() as folder:
            source, binary = Path(folder) / "busy.c", Path(folder) / "busy"
            source.write_text(BUSY)
            line = ["gcc", "-O1", "-fno-builtin", "-o", str(binary), str(source)]
            subprocess.run(line, check=True, timeout=60)
            cell = Cell("busy", "busy", "program", command=(str(binary),))
            taken = study.take(cell, Allocator("glibc"), 499)
        self.assertGreater(study.total(taken["samples"]), 50)
        self.assertGreater(study.percent(taken["samples"], "allocator"), 50)

    def test_shows_a_row_for_each_program_that_has_all_and_names_the_others(self) -> None:
        record = records.Record("share", {}, {})
        record.allocators = [Allocator("glibc"), Allocator("brimful", ours=True)]
        some = {"cpu_s": [1.0, 2.0], "samples": {"allocator": 25, "program": 75, "fault": 0}}
        more = {
            "cpu_s": [3.0],
            "samples": {"allocator": 10, "fault": 10, "clear": 5, "program": 80},
        }
        both = {"glibc": some, "brimful": more}
        record.results["rows"] = {"a": both, "b": {"glibc": some}}
        record.fail("b under brimful", "crashed")
        told = "\n".join(study.tables(record))
        wanted = "| a | 25.0 | 0.0 | 0.0 | 0.0 | 10.0 | 10.0 | 5.0 | 0.0 | 1.50 / 3.00 | 100 |"
        self.assertIn(wanted, told)
        self.assertNotIn("| b |", told)
        self.assertIn("Not measured: b under brimful: crashed", told)


if __name__ == "__main__":
    unittest.main()
