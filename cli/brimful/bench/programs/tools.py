# SPDX-License-Identifier: MIT
"""Tools: they read something, work, print and end, and much that they allocate lives until then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ... import locate
from ..model import Cell
from .row import input_file, row, script

# One thread, so that each run does the same; no settings of this machine's user.
GC = (
    "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1; "
    'git init -q --bare history && cd history && git fast-import --quiet < "$1" && '
    "git -c pack.threads=1 -c gc.pruneExpire=now gc --quiet --aggressive"
)


def rows(problem: str) -> Iterator[Cell]:
    """`problem`: why the input files are not there, or ""."""
    yield from _gcc()
    yield from _clang(problem)
    yield from _z3(problem)
    yield from _ghostscript()
    yield from _povray()
    yield from _jq(problem)
    yield from _xsltproc(problem)
    yield from _git(problem)


def _gcc() -> Iterator[Cell]:
    source = Path(locate.project_root()) / "bench" / "workloads" / "heavy.cpp"
    command = ["g++", "-std=c++20", "-O0", "-c", "-o", "/dev/null", str(source)]
    shows = "much allocated, little freed; three processes, one after the other"
    title = "GCC: a C++ file with many templates"
    yield row("gcc", title, shows, ("g++",), command)


def _clang(problem: str) -> Iterator[Cell]:
    command = ["/usr/bin/clang++", "-std=c++17", "-O1", "-c", "-o", "/dev/null"]
    command.append(input_file("program.cpp"))
    shows = "arenas for its trees, mallocs for the passes that optimise"
    title = "Clang: a large program of functions, classes and templates"
    yield row("clang", title, shows, ("clang",), command, problem=problem)


def _z3(problem: str) -> Iterator[Cell]:
    command = ["z3", input_file("puzzle.smt2")]
    shows = "a search that makes and drops millions of small nodes"
    title = "Z3: a schedule that does not exist"
    yield row("z3", title, shows, ("z3",), command, problem=problem)


def _ghostscript() -> Iterator[Cell]:
    for name, device, pages, shows in (
        ("ghostscript", "png16m", 4, "paths, glyphs and bands of a rasteriser"),
        ("ghostscript-pdf", "pdfwrite", 20, "many small objects that live until the end"),
    ):
        command = ["gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", f"-sDEVICE={device}"]
        command += [f"-dPages={pages}", "-r100", "-sOutputFile=/dev/null", script("drawing.ps")]
        title = f"Ghostscript: text, curves and gradients, {device}"
        yield row(name, title, shows, ("ghostscript",), command)


def _povray() -> Iterator[Cell]:
    command = ["povray", "-D", "-GA", "+O/dev/null", "+W320", "+H240", "+WT1", "+A0.3"]
    command.append(f"+I{script('scene.pov')}")
    shows = "a scene that is allocated once, then numbers: what a renderer leaves to win"
    title = "POV-Ray: spheres, glass and textures"
    yield row("povray", title, shows, ("povray",), command, threads=0)


def _jq(problem: str) -> Iterator[Cell]:
    query = (
        '[range(6) as $i | .[] | .tags as $t | {id: (.id + $i), n: (.name | ascii_upcase | split(" "))'
        ", s: (.scores | add), t: ($t | to_entries | sort_by(.value) | map(.key))}]"
        " | group_by(.t[0]) | map({key: .[0].t[0], value: length}) | from_entries"
    )
    command = ["jq", query, input_file("records.json")]
    shows = "immutable values: each step makes new ones and drops the old"
    title = "jq: records reshaped, grouped and counted"
    yield row("jq", title, shows, ("jq",), command, problem=problem)


def _xsltproc(problem: str) -> Iterator[Cell]:
    command = ["xsltproc", "-o", "/dev/null", script("report.xsl")]
    command += 7 * [input_file("records.xml")]
    shows = "a tree of nodes, each with its strings, all freed one by one at the end"
    title = "libxslt: seven times, records of XML sorted, grouped and written as a page"
    yield row("xsltproc", title, shows, ("xsltproc",), command, problem=problem)


def _git(problem: str) -> Iterator[Cell]:
    command = ["sh", "-c", GC, "gc", input_file("history.fi")]
    shows = "a dozen processes; deltas searched in windows of large buffers"
    title = "git: a history imported and packed by gc"
    yield row("git-gc", title, shows, ("git",), command, problem=problem)
