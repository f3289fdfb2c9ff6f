#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each public header compiles by itself, as C11 and as C++, with the warnings that users may have on."""

from __future__ import annotations

import shutil
import subprocess
import unittest
from pathlib import Path

from _tree import Tree

INCLUDE = Path(__file__).resolve().parents[2] / "include"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wstrict-prototypes", "-Werror"]
LANGUAGES = {
    "c": (["gcc", "clang"], ["-std=c11", "-std=c2x"]),
    "cpp": (["g++", "clang++"], ["-std=c++11", "-std=c++20"]),
}


class Headers(Tree):
    def faults(self, include: Path, header: str) -> str:
        """What the compilers say of a file that includes the header twice and nothing else."""
        said = ""
        for suffix, (compilers, standards) in LANGUAGES.items():
            # A translation unit must not be empty for a pedant.
            lines = f"#include <{header}>\n" * 2 + "extern int not_empty;\n"
            source = self.write(f"alone.{suffix}", lines)
            warnings = [w for w in WARNINGS if suffix == "c" or w != "-Wstrict-prototypes"]
            for compiler in filter(shutil.which, compilers):
                for standard in standards:
                    command = [compiler, standard, *warnings, "-fsyntax-only", f"-I{include}"]
                    done = subprocess.run(
                        [*command, str(source)], capture_output=True, text=True, check=False
                    )
                    said += done.stderr if done.returncode else ""
        return said

    def test_every_public_header_compiles_alone(self) -> None:
        headers = sorted((INCLUDE / "brimful").glob("*.h"))
        self.assertGreaterEqual(len(headers), 5)
        for header in headers:
            with self.subTest(header.name):
                self.assertEqual(self.faults(INCLUDE, f"brimful/{header.name}"), "")

    def test_a_header_that_leans_on_another_is_found(self) -> None:
        self.write("bad.h", "#pragma once\nsize_t brimful_x(void);\n")
        self.assertIn("size_t", self.faults(self.root, "bad.h"))

    def test_a_header_that_is_c_only_is_found(self) -> None:
        self.write("bad.h", "#pragma once\nint brimful_x(int class);\n")
        self.assertIn("class", self.faults(self.root, "bad.h"))


if __name__ == "__main__":
    unittest.main()
