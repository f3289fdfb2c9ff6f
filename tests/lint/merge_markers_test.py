#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check_merge_markers.py finds what an unfinished merge leaves behind, and nothing else."""

from __future__ import annotations

import subprocess
import unittest

from _tree import Tree

# Not written out, or this file had them itself.
OURS = "<" * 7 + " HEAD\n"
MIDDLE = "=" * 7 + "\n"
THEIRS = ">" * 7 + " branch\n"


class MergeMarkers(Tree):
    def check(self) -> tuple[int, str]:
        for command in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", "-C", str(self.root), *command], check=True)
        return self.run_checker("check_merge_markers.py", "--root", str(self.root))

    def test_a_conflict_is_found_with_all_its_lines(self) -> None:
        self.write("docs/README.md", f"a\n{OURS}b\n{MIDDLE}c\n{THEIRS}")
        code, output = self.check()
        self.assertEqual(code, 1, output)
        for line in (2, 4, 6):
            self.assertIn(f"docs/README.md:{line}:", output)

    def test_half_a_conflict_is_found_in_any_kind_of_file(self) -> None:
        for name, text in (("a.cpp", OURS), ("b.toml", THEIRS), ("c", "|" * 7 + " base\r\n")):
            with self.subTest(name=name):
                self.write(name, "text\n" + text)
                code, output = self.check()
                self.assertEqual(code, 1, output)
                self.assertIn(f"{name}:2:", output)

    def test_an_underlined_heading_and_longer_rows_are_none(self) -> None:
        self.write("a.md", f"Heading\n{MIDDLE}")
        self.write("b.txt", "<" * 8 + "\n" + "  " + OURS + "x" + THEIRS)
        code, output = self.check()
        self.assertEqual(code, 0, output)

    def test_data_is_not_read(self) -> None:
        self.write("a.bin", f"\0\n{OURS}")
        self.assertEqual(self.check()[0], 0)

    def test_an_empty_tree_is_no_success(self) -> None:
        self.assertEqual(self.check()[0], 1)


if __name__ == "__main__":
    unittest.main()
