# SPDX-License-Identifier: MIT
"""Real programs as rows: what people run, on input of a size that takes a second or so.

They are Debian's packages (`make real-programs` installs them); one that is absent is a row that says
so. Input is made once, the same on every machine, by bench/programs/make_inputs.py into
build/bench/inputs/, or lies beside it as a script. Wall time is compared, of servers the time that
their client saw (see launch about drivers).

Compute-bound programs hardly notice their allocator, and that is what these rows are for: they say
what a gain in the synthetic rows is worth.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import locate
from .model import Cell

PYTHON = "/usr/bin/python3"  # the distribution's: a version manager's is a shell script
INPUTS = ("corpus.txt", "records.json", "puzzle.smt2")
POSTGRES = "/usr/lib/postgresql/*/bin/postgres"
# Debian package → what it is looked for by: a command, or a file if it begins with a slash.
PACKAGES = {
    "redis-server": "redis-server",
    "redis-tools": "redis-benchmark",
    "lua5.4": "lua5.4",
    "z3": "z3",
    "ghostscript": "gs",
    "python3": PYTHON,
    "g++": "g++",
    "rocksdb-tools": "db_bench",
    "sqlite3": "sqlite3",
    "postgresql": POSTGRES,
    "nodejs": "node",
}


def cells() -> list[Cell]:
    """One row for each program and way of using it, those that cannot run here included."""
    problem = _make_inputs()
    return [
        *_redis(),
        *_postgres(),
        *_rocksdb(),
        *_sqlite(),
        *_lua(problem),
        *_python(),
        *_node(problem),
        *_compiler(),
        *_z3(problem),
        *_ghostscript(),
    ]


def input_folder() -> Path:
    return Path(locate.project_root()) / "build" / "bench" / "inputs"


def _make_inputs() -> str:
    """Make what is missing or older than its maker; returns why that failed, or ""."""
    maker = _script("make_inputs.py")
    files = [input_folder() / name for name in INPUTS]
    made = os.stat(maker).st_mtime
    if all(path.exists() and path.stat().st_mtime >= made for path in files):
        return ""
    line = [sys.executable, maker, str(input_folder())]
    try:
        subprocess.run(line, check=True, capture_output=True, text=True, timeout=120)
    except subprocess.CalledProcessError as error:
        return f"its input cannot be made: {error.stderr.strip()}"
    except (OSError, subprocess.SubprocessError) as error:
        return f"its input cannot be made: {error}"
    return ""


def _script(name: str) -> str:
    return str(Path(locate.project_root()) / "bench" / "programs" / name)


def _input(name: str) -> str:
    return str(input_folder() / name)


def _absence(packages: Sequence[str]) -> str:
    """Which of these Debian packages must be installed first, or ""."""
    absent = [name for name in packages if not _is_there(PACKAGES[name])]
    return f"not installed: {', '.join(absent)} (make real-programs)" if absent else ""


def _is_there(what: str) -> bool:
    return bool(glob.glob(what)) if what.startswith("/") else shutil.which(what) is not None


def _row(
    name: str,
    title: str,
    shows: str,
    packages: Sequence[str],
    command: Sequence[str],
    *,
    threads: int = 1,
    served: bool = False,
    problem: str = "",
) -> Cell:
    """`served`: the command is a driver, which reports the time that the client saw."""
    return Cell(
        name=name,
        workload=name,
        family="program",
        title=title,
        source=f"Debian package {packages[0]}",
        shows=shows,
        command=(shutil.which(command[0]) or command[0], *command[1:]),
        threads=threads,
        figure="seconds" if served else "wall_s",
        missing=_absence(packages) or problem,
    )


# --- servers --------------------------------------------------------------------------------------


def _redis() -> Iterator[Cell]:
    # name, tests, bytes of a value, keys, requests of each test
    plans = (
        ("redis-small", "set,get,incr", 32, 100_000, 200_000, "small values: one object per key"),
        ("redis-1k", "set,get", 1024, 50_000, 150_000, "values of 1 KiB, replaced in place"),
        ("redis-16k", "set,get", 16_384, 5_000, 30_000, "values of 16 KiB, replaced in place"),
        ("redis-lists", "lpush,rpush,lpop,rpop", 100, 1, 200_000, "list nodes that grow and go"),
        (
            "redis-sets",
            "sadd,hset,zadd",
            100,
            50_000,
            150_000,
            "tables that are doubled and copied",
        ),
    )
    for name, tests, size, keys, requests, shows in plans:
        command = [sys.executable, _script("serve_redis.py"), "--tests", tests, "--size", str(size)]
        command += ["--keys", str(keys), "--requests", str(requests)]
        title = f"redis-server: {tests.replace(',', ', ')} with values of {size} bytes"
        # The client's thread is not counted; redis has threads for closing and freeing besides.
        needs = ("redis-server", "redis-tools")
        yield _row(name, title, shows, needs, command, threads=0, served=True)


def _postgres() -> Iterator[Cell]:
    for name, script, transactions in (
        ("postgres-tpcb", "tpcb-like", 750),
        ("postgres-select", "select-only", 6000),
    ):
        template = input_folder() / "postgres"
        command = [sys.executable, _script("serve_postgres.py"), "--template", str(template)]
        command += ["--script", script, "--clients", "4", "--transactions", str(transactions)]
        title = f"PostgreSQL: pgbench {script}, 4 clients"
        shows = "a process per client, with arenas of its own on top of malloc"
        yield _row(name, title, shows, ("postgresql",), command, threads=0, served=True)


# --- databases in the process ---------------------------------------------------------------------


def _rocksdb() -> Iterator[Cell]:
    for name, benchmarks, threads, count, shows in (
        ("rocksdb-write", "fillrandom,overwrite", 1, 100_000, "keys and values made and compacted"),
        ("rocksdb-read", "fillseq,readrandom,readseq", 2, 60_000, "blocks into and out of a cache"),
    ):
        command = ["db_bench", f"--benchmarks={benchmarks}", "--db=db", f"--num={count}"]
        command += [f"--threads={threads}", "--value_size=200", "--cache_size=4194304", "--seed=1"]
        command += ["--write_buffer_size=4194304", "--compression_type=lz4"]
        title = f"RocksDB: db_bench {benchmarks.replace(',', ', ')}"
        title += f", {threads} threads" if threads > 1 else ""
        yield _row(name, title, shows, ("rocksdb-tools",), command, threads=0)


def _sqlite() -> Iterator[Cell]:
    command = ["sqlite3", ":memory:", f".read {_script('queries.sql')}"]
    shows = "a malloc for each node of a statement and each page of the cache"
    title = "SQLite: a shop in memory, filled, indexed, joined, searched"
    yield _row("sqlite3", title, shows, ("sqlite3",), command)


# --- interpreters ---------------------------------------------------------------------------------


def _lua(problem: str) -> Iterator[Cell]:
    command = ["lua5.4", _script("text.lua"), _input("corpus.txt")]
    shows = "an interpreter that takes every object from realloc"
    title = "Lua: words of a text, binary trees"
    yield _row("lua", title, shows, ("lua5.4",), command, problem=problem)


def _python() -> Iterator[Cell]:
    script = str(Path(locate.project_root()) / "bench" / "workloads" / "object_graph.py")
    for name, kind, shows in (
        ("python", "pymalloc", "arenas and large blocks only: pymalloc serves the small ones"),
        ("python-malloc", "malloc", "every object is a malloc"),
    ):
        # env becomes python in the same process; the allocator serves both.
        command = ["env", f"PYTHONMALLOC={kind}", "PYTHONHASHSEED=0", PYTHON, script]
        title = f"Python: an object graph, with PYTHONMALLOC={kind}"
        yield _row(name, title, shows, ("python3",), command)


def _node(problem: str) -> Iterator[Cell]:
    command = ["node", _script("objects.js"), _input("records.json")]
    shows = "a virtual machine with a heap of its own: malloc serves the rest, and its threads"
    title = "Node: records indexed, written, compressed"
    yield _row("node", title, shows, ("nodejs",), command, threads=0, problem=problem)


# --- tools ----------------------------------------------------------------------------------------


def _compiler() -> Iterator[Cell]:
    source = Path(locate.project_root()) / "bench" / "workloads" / "heavy.cpp"
    command = ["g++", "-std=c++20", "-O0", "-c", "-o", "/dev/null", str(source)]
    shows = "much allocated, little freed; three processes, one after the other"
    title = "GCC: a C++ file with many templates"
    yield _row("gcc", title, shows, ("g++",), command)


def _z3(problem: str) -> Iterator[Cell]:
    command = ["z3", _input("puzzle.smt2")]
    shows = "a search that makes and drops millions of small nodes"
    title = "Z3: a schedule that does not exist"
    yield _row("z3", title, shows, ("z3",), command, problem=problem)


def _ghostscript() -> Iterator[Cell]:
    for name, device, pages, shows in (
        ("ghostscript", "png16m", 4, "paths, glyphs and bands of a rasteriser"),
        ("ghostscript-pdf", "pdfwrite", 20, "many small objects that live until the end"),
    ):
        command = ["gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", f"-sDEVICE={device}"]
        command += [f"-dPages={pages}", "-r100", "-sOutputFile=/dev/null", _script("drawing.ps")]
        title = f"Ghostscript: text, curves and gradients, {device}"
        yield _row(name, title, shows, ("ghostscript",), command)
