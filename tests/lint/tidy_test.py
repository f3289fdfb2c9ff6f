#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""lint_tidy.py finds in files that it reads together what it finds in each by itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import unittest

from _tree import TOOLS, Tree

CLEAN = "// clean\nint twice(int a);\nint twice(int a) { return 2 * a; }\n"
FAULTS = {
    "misc-unused-using-decls": "namespace b { int foo(int x); }\nusing b::foo;\n",
    "misc-redundant-expression": "bool go(int a) { return a == a; }\n",
    "readability-non-const-parameter": "int get(int* p) { return *p; }\n",
}


@unittest.skipUnless(shutil.which("clang-tidy"), "clang-tidy is not installed")
class Tidy(Tree):
    def lint(self) -> tuple[int, str]:
        files = sorted((self.root / "src").rglob("*.cpp"))
        commands = [
            {"directory": str(self.root), "file": str(file), "command": f"c++ -c {file} -o x.o"}
            for file in files
        ]
        self.write("build/compile_commands.json", json.dumps(commands))
        shutil.copy(TOOLS.parent / ".clang-tidy", self.root)
        done = subprocess.run(
            [sys.executable, str(TOOLS / "lint_tidy.py")],
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "BRIMFUL_ROOT": str(self.root),
                "BRIMFUL_BUILD": f"{self.root}/build",
            },
        )
        return done.returncode, done.stdout + done.stderr

    def test_accepts_clean_files_also_with_one_name_twice(self) -> None:
        for name in ("a", "b", "c"):
            self.write(
                f"src/{name}.cpp", "static int own() { return 1; }\nint x() { return own(); }\n"
            )
        code, output = self.lint()
        self.assertEqual(code, 0, output)
        self.assertIn("3 files, 0 with faults", output)

    def test_finds_each_fault_among_clean_files(self) -> None:
        for check, text in FAULTS.items():
            with self.subTest(check):
                self.write("src/a.cpp", CLEAN)
                self.write("src/b.cpp", text)
                self.write("src/c.cpp", CLEAN.replace("twice", "again"))
                code, output = self.lint()
                self.assertEqual(code, 1, output)
                self.assertIn(check, output)
                self.assertIn("3 files, 1 with faults", output)


if __name__ == "__main__":
    unittest.main()
