#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check_links.py finds links, anchors and names that lead nowhere, and pages that nothing leads to."""

from __future__ import annotations

import subprocess
import unittest

from _tree import Tree


class Links(Tree):
    def setUp(self) -> None:
        super().setUp()
        self.write("README.md", "# Name\n\n[guide](docs/guide.md)\n")
        self.write(
            "docs/guide.md", "# A guide\n\n## What it's for: `x` & y\n\n## Twice\n\n## Twice\n"
        )
        self.write("docs/img/a.svg", "<svg/>\n")
        self.write("src/a.cpp", "\n")

    def check(self) -> tuple[int, str]:
        for command in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", "-C", str(self.root), *command], check=True)
        return self.run_checker("check_links.py", "--root", str(self.root))

    def accepts(self, line: str) -> None:
        self.write(
            "docs/guide.md",
            f"# A guide\n\n## What it's for: `x` & y\n\n## Twice\n\n## Twice\n\n{line}\n",
        )
        code, output = self.check()
        self.assertEqual(code, 0, output)

    def rejects(self, line: str, reason: str) -> None:
        with self.subTest(line=line):
            self.write("docs/guide.md", f"# A guide\n\n{line}\n")
            code, output = self.check()
            self.assertEqual(code, 1, output)
            self.assertIn(f"docs/guide.md:3: {reason}", output)

    def test_links_that_lead_somewhere_pass(self) -> None:
        self.accepts(
            "[a](../README.md) ![b](img/a.svg) [c](../src/) [d](#what-its-for-x--y) [e](#twice-1)"
        )
        self.accepts('<picture><source srcset="img/a.svg"><img src="img/a.svg"></picture>')
        self.accepts(
            "[elsewhere](https://example.org/none.md) `src/a.cpp` `src/*.cpp` `src/SUBJECT.cpp`"
        )

    def test_a_file_that_is_not_there_is_found(self) -> None:
        self.rejects("[a](none.md)", "none.md leads to no file")
        self.rejects("![a](img/none.svg)", "img/none.svg leads to no file")
        self.rejects('<img src="img/none.svg">', "img/none.svg leads to no file")
        self.rejects("[a](/docs/guide.md)", "/docs/guide.md leads to no file")

    def test_a_heading_that_is_not_there_is_found(self) -> None:
        self.rejects("[a](#none)", "docs/guide.md has no heading #none")
        self.rejects("[a](../README.md#none)", "README.md has no heading #none")

    def test_a_name_in_backticks_that_is_not_there_is_found(self) -> None:
        self.rejects("see `src/none.cpp`", "there is no src/none.cpp")
        self.rejects("see `src/{a,none}.cpp`", "there is no src/none.cpp")
        self.rejects("see `src/SUBJECT.c`", "there is no src/SUBJECT.c")

    def test_code_is_not_read_as_links(self) -> None:
        self.accepts("```c\nvoid (*f[2])(int); [a](none.md)\n```\n\nand `[a](none.md)`")

    def test_a_page_that_nothing_leads_to_is_found(self) -> None:
        self.write("docs/alone.md", "# Alone\n")
        code, output = self.check()
        self.assertEqual(code, 1, output)
        self.assertIn("docs/alone.md:1: no link leads here", output)

    def test_a_link_to_a_folder_leads_to_its_readme(self) -> None:
        self.write("examples/README.md", "# Examples\n")
        self.accepts("[examples](../examples/)")

    def test_a_tree_without_readme_is_no_success(self) -> None:
        (self.root / "README.md").unlink()
        self.assertEqual(self.check()[0], 1)


if __name__ == "__main__":
    unittest.main()
