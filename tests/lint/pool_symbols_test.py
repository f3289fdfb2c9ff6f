#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check_pool_symbols.py on small archives compiled here, each wrong in one way."""

from __future__ import annotations

import subprocess
import unittest

from _tree import Tree

LOCK = "namespace brimful::pools { struct Lock { void lock(); }; void Lock::lock() {} }"
POOL = """
extern "C" void* memcpy(void*, const void*, unsigned long);
namespace brimful::pools { struct Lock { void lock(); }; }
static int helper() { return 1; }
extern "C" int brimful_pool_use(void* to, const void* from) {
  brimful::pools::Lock().lock();
  memcpy(to, from, 4096);
  return helper();
}
"""
HOST = 'extern "C" { int getpid(); int brimful_pool_host() { return getpid(); } }'


class PoolSymbols(Tree):
    def check(self, **code: str) -> tuple[int, str]:
        """The checker on an archive with a member NAME.cpp.o for each NAME=code."""
        objects = []
        for name, text in ({"lock": LOCK, "pool": POOL, "host_linux": HOST} | code).items():
            source = self.write(f"{name}.cpp", text)
            objects.append(self.root / f"{name}.cpp.o")
            flags = ["-std=c++20", "-O1", "-ffreestanding", "-fPIC", "-fno-stack-protector", "-c"]
            subprocess.run(["g++", *flags, "-o", objects[-1], source], check=True)
        archive = self.root / "libpools.a"
        subprocess.run(["ar", "rcs", archive, *objects], check=True)
        return self.run_checker("check_pool_symbols.py", str(archive))

    def assert_rejected(self, result: tuple[int, str], reason: str) -> None:
        self.assertEqual(result[0], 1, result[1])
        self.assertIn(reason, result[1])

    def test_an_archive_that_stands_alone_passes(self) -> None:
        code, output = self.check()
        self.assertEqual(code, 0, output)

    def test_a_call_of_libc_is_rejected(self) -> None:
        result = self.check(bad='extern "C" { void abort(); void brimful_x() { abort(); } }')
        self.assert_rejected(result, "asks for abort")

    def test_leaning_on_the_member_for_linux_is_rejected(self) -> None:
        code = 'extern "C" { int brimful_pool_host(); int brimful_x() { return brimful_pool_host(); } }'
        self.assert_rejected(self.check(bad=code), "asks for brimful_pool_host")

    def test_a_name_that_is_not_ours_is_rejected(self) -> None:
        result = self.check(bad='extern "C" int helper() { return 1; }')
        self.assert_rejected(result, "defines helper")

    def test_a_hidden_name_that_is_not_ours_is_rejected(self) -> None:
        code = '__attribute__((visibility("hidden"))) int helper() { return 1; }'
        self.assert_rejected(self.check(bad=code), "defines _Z6helperv")

    def test_code_before_main_is_rejected(self) -> None:
        code = "namespace brimful { struct A { A(); int a; }; A::A() : a(1) {} A variable; }"
        self.assert_rejected(self.check(bad=code), "runs before main")

    def test_a_thread_local_variable_is_rejected(self) -> None:
        code = "namespace brimful { thread_local int variable = 1; }"
        self.assert_rejected(self.check(bad=code), "thread-local variables")

    def test_an_archive_of_the_member_for_linux_alone_is_rejected(self) -> None:
        source = self.write("host_linux.cpp", HOST)
        target = self.root / "host_linux.cpp.o"
        subprocess.run(["g++", "-c", "-o", target, source], check=True)
        archive = self.root / "libpools.a"
        subprocess.run(["ar", "rcs", archive, target], check=True)
        result = self.run_checker("check_pool_symbols.py", str(archive))
        self.assert_rejected(result, "nothing to check")


if __name__ == "__main__":
    unittest.main()
