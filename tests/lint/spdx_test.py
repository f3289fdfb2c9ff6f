#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check_spdx.py finds a file without a licence, and only looks at what git tracks."""

from __future__ import annotations

import subprocess
import unittest

from _tree import Tree

LINE = "SPDX-License-Identifier: MIT"


class Licences(Tree):
    def check(self) -> tuple[int, str]:
        return self.run_checker("check_spdx.py", "--root", str(self.root))

    def track(self) -> None:
        for command in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", "-C", str(self.root), *command], check=True)

    def test_a_file_with_the_line_passes(self) -> None:
        self.write("tools/a.py", f"#!/usr/bin/python3\n# {LINE}\n")
        self.track()
        code, output = self.check()
        self.assertEqual(code, 0, output)

    def test_a_file_without_the_line_is_named(self) -> None:
        for name in ("src/a.cpp", "tests/a.sh", "Makefile", "README.md", ".ci/run"):
            with self.subTest(name=name):
                self.write(name, "text\n")
                self.track()
                code, output = self.check()
                self.assertEqual(code, 1, output)
                self.assertIn(f"{name}:1", output)

    def test_a_line_that_comes_too_late_does_not_count(self) -> None:
        self.write("src/a.cpp", "//\n" * 5 + f"// {LINE}\n")
        self.track()
        self.assertEqual(self.check()[0], 1)

    def test_another_licence_does_not_count(self) -> None:
        self.write("src/a.cpp", "// SPDX-License-Identifier: GPL-2.0-only\n")
        self.track()
        self.assertEqual(self.check()[0], 1)

    def test_data_and_untracked_files_are_left_out(self) -> None:
        self.write("src/a.cpp", f"// {LINE}\n")
        self.write("bench/results/x.csv", "1,2\n")
        self.track()
        self.write("src/b.cpp", "untracked\n")
        code, output = self.check()
        self.assertEqual(code, 0, output)

    def test_an_empty_tree_is_no_success(self) -> None:
        code, output = self.check()
        self.assertEqual(code, 1, output)


if __name__ == "__main__":
    unittest.main()
