#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check_commands.py finds targets and options that pages name and nobody has, and those that no page
names."""

from __future__ import annotations

import unittest

from _tree import CheckedTree

MAKEFILE = """VARIABLE := x
.PHONY: lib
lib: ## the library
\t@true
hidden:
\t@true
"""
APP = """import typer
app = typer.Typer(add_completion=False)

@app.command()
def run(conf: str = "", lib: str = "") -> None:
    pass

@app.command("bench")
def bench(quick: bool = typer.Option(False, "--quick")) -> None:
    pass
"""
MANUAL = """.Cm run
.Op Fl Fl conf Ar text
.Op Fl Fl lib Ar path
.Cm bench
.Bl
.It Fl Fl quick
.El
"""


class Commands(CheckedTree):
    checker = "check_commands.py"

    def setUp(self) -> None:
        super().setUp()
        self.write("Makefile", MAKEFILE)
        self.write(
            "README.md",
            "```sh\nmake lib    # the library\n```\n\nThey make do with `make hidden`.\n",
        )
        self.write("cli/brimful/__init__.py", "")
        self.write("cli/brimful/app.py", APP)
        self.write("docs/man/brimful.1", MANUAL)

    def test_pages_that_name_what_there_is_pass(self) -> None:
        code, output = self.check()
        if code == 77:
            self.skipTest(output)
        self.assertEqual(code, 0, output)
        self.assertIn("2 calls of make", output)

    def test_a_target_that_is_not_there_is_found(self) -> None:
        self.rejects("README.md", "make lib", "make libs", "README.md:2: make has no target libs")
        self.rejects(
            "README.md", "make hidden", "make VAR=1 gone", "README.md:5: make has no target gone"
        )

    def test_a_target_that_no_page_names_is_found(self) -> None:
        self.rejects("README.md", "make lib ", "make hidden ", "what `make lib` is for")

    def test_an_option_of_a_call_that_nobody_has_is_found(self) -> None:
        if self.check()[0] == 77:
            self.skipTest("typer is missing")
        self.write(
            "README.md",
            "```sh\nmake lib\n./brimful run --conf a -- ls --color\n```\n\n`brimful bench --quick`\n",
        )
        code, output = self.check()
        self.assertEqual(code, 0, output)
        self.rejects(
            "README.md", "--conf", "--config", "README.md:3: brimful has no option --config"
        )
        self.rejects("README.md", "--quick", "--fast", "README.md:6: brimful has no option --fast")

    def test_an_option_that_the_manual_lacks_is_found(self) -> None:
        if self.check()[0] == 77:
            self.skipTest("typer is missing")
        self.rejects("docs/man/brimful.1", ".It Fl Fl quick\n", "", "lacks --quick of `bench`")

    def test_an_option_that_the_manual_has_too_many_is_found(self) -> None:
        if self.check()[0] == 77:
            self.skipTest("typer is missing")
        self.rejects(
            "docs/man/brimful.1", "Fl Fl quick", "Fl Fl quick Fl Fl fast", "no command has --fast"
        )

    def test_an_option_that_says_no_may_be_named(self) -> None:
        if self.check()[0] == 77:
            self.skipTest("typer is missing")
        self.write("cli/brimful/app.py", APP.replace('False, "--quick"', 'False, "--quick/--slow"'))
        for text in (MANUAL, MANUAL.replace("Fl Fl quick", "Fl Fl quick Fl Fl slow")):
            self.write("docs/man/brimful.1", text)
            code, output = self.check()
            self.assertEqual(code, 0, output)

    def test_a_command_that_the_manual_lacks_is_found(self) -> None:
        if self.check()[0] == 77:
            self.skipTest("typer is missing")
        self.rejects("docs/man/brimful.1", ".Cm bench\n", "", "lacks the command bench")


if __name__ == "__main__":
    unittest.main()
