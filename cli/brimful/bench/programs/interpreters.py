# SPDX-License-Identifier: MIT
"""Interpreters and virtual machines: some take every object from malloc, some have heaps of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ... import locate
from ..model import Cell
from .row import PYTHON, input_file, row, script


def rows(problem: str) -> Iterator[Cell]:
    """`problem`: why the input files are not there, or ""."""
    yield from _lua(problem)
    yield from _python()
    yield from _ruby(problem)
    yield from _perl(problem)
    yield from _php(problem)
    yield from _node(problem)
    yield from _java(problem)


def _lua(problem: str) -> Iterator[Cell]:
    command = ["lua5.4", script("text.lua"), input_file("corpus.txt")]
    shows = "an interpreter that takes every object from realloc"
    title = "Lua: words of a text, binary trees"
    yield row("lua", title, shows, ("lua5.4",), command, problem=problem)


def _python() -> Iterator[Cell]:
    script = str(Path(locate.project_root()) / "bench" / "workloads" / "object_graph.py")
    for name, kind, shows in (
        ("python", "pymalloc", "arenas and large blocks only: pymalloc serves the small ones"),
        ("python-malloc", "malloc", "every object is a malloc"),
    ):
        # env becomes python in the same process; the allocator serves both.
        command = ["env", f"PYTHONMALLOC={kind}", "PYTHONHASHSEED=0", PYTHON, script]
        title = f"Python: an object graph, with PYTHONMALLOC={kind}"
        yield row(name, title, shows, ("python3",), command)


def _node(problem: str) -> Iterator[Cell]:
    command = ["node", script("objects.js"), input_file("records.json")]
    shows = "a virtual machine with a heap of its own: malloc serves the rest, and its threads"
    title = "Node: records indexed, written, compressed"
    yield row("node", title, shows, ("nodejs",), command, threads=0, problem=problem)


def _ruby(problem: str) -> Iterator[Cell]:
    command = ["/usr/bin/ruby", script("text.rb"), input_file("corpus.txt")]
    shows = "objects in pages of its own; the contents of strings, arrays and hashes are mallocs"
    title = "Ruby: words of a text, symbols, nested arrays"
    yield row("ruby", title, shows, ("ruby",), command, problem=problem)


def _perl(problem: str) -> Iterator[Cell]:
    command = ["/usr/bin/perl", script("text.pl"), input_file("corpus.txt")]
    shows = "reference counts: every scalar's text is a malloc, freed at once"
    title = "Perl: words of a text, substitutions, nested hashes"
    yield row("perl", title, shows, ("perl",), command, problem=problem)


def _php(problem: str) -> Iterator[Cell]:
    # env becomes php in the same process; PHP's own allocator is switched off as its manual says.
    command = ["env", "USE_ZEND_ALLOC=0", "php", "-n", script("records.php")]
    command.append(input_file("records.json"))
    shows = "every value a malloc, with PHP's own allocator off"
    title = "PHP: records decoded, grouped, sorted, encoded, with USE_ZEND_ALLOC=0"
    yield row("php", title, shows, ("php-cli",), command, problem=problem)


def _java(problem: str) -> Iterator[Cell]:
    command = ["java", "-Xmx256m", "-XX:+UseSerialGC", script("Words.java")]
    command.append(input_file("corpus.txt"))
    shows = "a heap of its own: malloc serves the compilers, their arenas and the class tables"
    title = "Java: a source file compiled and run, words of a text"
    needs = ("openjdk-17-jre-headless",)
    yield row("java", title, shows, needs, command, threads=0, problem=problem)
