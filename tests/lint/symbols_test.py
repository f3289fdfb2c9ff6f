#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check_symbols.py on small libraries compiled here, each wrong in one way."""

from __future__ import annotations

import subprocess
import unittest
from pathlib import Path

from _tree import Tree

GOOD = """
void* malloc(unsigned long n) { (void)n; return 0; }
void free(void* p) { (void)p; }
"""
SONAME = "-Wl,-soname,libbrimful.so.1"


class Symbols(Tree):
    def setUp(self) -> None:
        super().setUp()
        # A libc with three functions of the family stands for the real one: one fault per test.
        self.libc = self.build(
            "libc.so",
            GOOD + "int malloc_trim(unsigned long n) { return (int)n; } int freeaddrinfo;",
        )
        self.exports = ["malloc", "free"]
        self.not_interposed = ["malloc_trim is left out by this test"]
        self.undefined = ["write", "pthread_atfork weak"]

    def build(self, name: str, code: str, *flags: str) -> Path:
        source = self.write(f"{name}.c", code)
        library = self.root / name
        subprocess.run(
            [
                "gcc",
                "-shared",
                "-fPIC",
                "-nostdlib",
                "-fno-builtin",
                "-o",
                str(library),
                str(source),
            ]
            + list(flags),
            check=True,
            capture_output=True,
        )
        return library

    def check(self, code: str = GOOD, *flags: str) -> tuple[int, str]:
        library = self.build("lib.so", code, *(flags or (SONAME,)))
        for name, lines in {
            "exports": self.exports,
            "undefined": self.undefined,
            "not-interposed": self.not_interposed,
        }.items():
            self.write(f"{name}.txt", "# comment\n" + "\n".join(lines) + "\n")
        return self.run_checker(
            "check_symbols.py",
            *("--lib", str(library)),
            *("--allowlist", str(self.root)),
            *("--libc", str(self.libc)),
        )

    def assert_rejected(self, result: tuple[int, str], reason: str) -> None:
        self.assertEqual(result[0], 1, result[1])
        self.assertIn(reason, result[1])

    def test_a_library_as_listed_passes(self) -> None:
        code, output = self.check(
            GOOD + "long write(); long brim() __attribute__((visibility"
            '("hidden"))); long brim() { return write(); }'
        )
        self.assertEqual(code, 0, output)

    def test_a_symbol_too_many_is_rejected(self) -> None:
        self.assert_rejected(self.check(GOOD + "int helper;"), "not in exports.txt: helper")

    def test_a_symbol_too_few_is_rejected(self) -> None:
        self.exports.append("calloc")
        self.assert_rejected(self.check(), "not exported: calloc")

    def test_an_unlisted_import_is_rejected(self) -> None:
        code = (
            GOOD
            + 'int printf(); __attribute__((visibility("hidden"))) int f() { return printf(); }'
        )
        self.assert_rejected(self.check(code), "not in undefined.txt: printf")

    def test_a_strong_import_of_a_weak_name_is_rejected(self) -> None:
        code = GOOD + (
            "int pthread_atfork();"
            '__attribute__((visibility("hidden"))) int f() { return pthread_atfork(); }'
        )
        self.assert_rejected(self.check(code), "weak reference only: pthread_atfork")

    def test_a_function_of_libcs_family_that_is_not_ours_is_rejected(self) -> None:
        self.not_interposed.clear()
        result = self.check()
        self.assert_rejected(result, "malloc_trim is not interposed")
        self.assertNotIn("freeaddrinfo", result[1])

    def test_leaving_one_out_needs_a_reason(self) -> None:
        self.not_interposed = ["malloc_trim"]
        self.assert_rejected(self.check(), "malloc_trim is not interposed")

    def test_a_stale_reason_is_rejected(self) -> None:
        self.not_interposed.append("malloc because")
        self.assert_rejected(self.check(), "yet exported: malloc")

    def test_a_further_library_is_rejected(self) -> None:
        self.assert_rejected(
            self.check(GOOD, SONAME, "-Wl,--no-as-needed", "-lm"), "needs libm.so.6"
        )

    def test_a_wrong_soname_is_rejected(self) -> None:
        self.assert_rejected(self.check(GOOD, "-Wl,-soname,libbrimful.so.2"), "SONAME is")

    def test_an_executable_stack_is_rejected(self) -> None:
        self.assert_rejected(self.check(GOOD, SONAME, "-Wl,-z,execstack"), "executable stack")


if __name__ == "__main__":
    unittest.main()
