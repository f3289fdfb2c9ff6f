# SPDX-License-Identifier: MIT
"""One row: what it needs, where its scripts and inputs lie, and what is said if it cannot run here."""

from __future__ import annotations

import glob
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ... import locate
from ..model import Cell

PYTHON = "/usr/bin/python3"  # the distribution's: a version manager's is a shell script
POSTGRES = "/usr/lib/postgresql/*/bin/postgres"
INPUTS = ("corpus.txt", "records.json", "records.xml", "puzzle.smt2", "program.cpp", "history.fi")
REDIS_LIBC = "redis-server-libc"
# Debian package, or program of bench/programs/build_programs.py → what it is looked for by: a
# command, or a file if it begins with a slash.
PACKAGES = {
    "redis-server": "redis-server",
    "redis-tools": "redis-benchmark",
    "memcached": "memcached",
    "nginx": "/usr/sbin/nginx",
    "lua5.4": "lua5.4",
    "perl": "/usr/bin/perl",
    "ruby": "/usr/bin/ruby",
    "php-cli": "php",
    "z3": "z3",
    "ghostscript": "gs",
    "povray": "povray",
    "python3": PYTHON,
    "g++": "g++",
    "clang": "/usr/bin/clang++",
    "git": "git",
    "jq": "jq",
    "xsltproc": "xsltproc",
    "openjdk-17-jre-headless": "java",
    "rocksdb-tools": "db_bench",
    "sqlite3": "sqlite3",
    "postgresql": POSTGRES,
    "nodejs": "node",
}


def made_program(name: str) -> Path:
    """Where build_programs.py puts what it builds."""
    return Path(locate.project_root()) / "build" / "programs" / name


def input_folder() -> Path:
    return Path(locate.project_root()) / "build" / "bench" / "inputs"


def make_inputs() -> str:
    """Make what is missing or older than its maker; returns why that failed, or ""."""
    maker = Path(script("make_inputs.py"))
    made = maker.stat().st_mtime
    files = [input_folder() / name for name in INPUTS]
    if all(path.exists() and path.stat().st_mtime >= made for path in files):
        return ""
    line = [sys.executable, str(maker), str(input_folder())]
    try:
        subprocess.run(line, check=True, capture_output=True, text=True, timeout=120)
    except subprocess.CalledProcessError as error:
        return f"its input cannot be made: {error.stderr.strip()}"
    except (OSError, subprocess.SubprocessError) as error:
        return f"its input cannot be made: {error}"
    return ""


def script(name: str) -> str:
    return str(Path(locate.project_root()) / "bench" / "programs" / name)


def input_file(name: str) -> str:
    return str(input_folder() / name)


def _absence(needs: Sequence[str]) -> str:
    """Which of these must be installed or built first, or ""."""
    absent = [name for name in needs if not is_there(name)]
    return f"not there: {', '.join(absent)} (make real-programs)" if absent else ""


def is_there(name: str) -> bool:
    if name == REDIS_LIBC:
        return made_program(name).exists()
    what = PACKAGES[name]
    return bool(glob.glob(what)) if what.startswith("/") else shutil.which(what) is not None


def row(
    name: str,
    title: str,
    shows: str,
    needs: Sequence[str],
    command: Sequence[str],
    *,
    threads: int = 1,
    served: bool = False,
    problem: str = "",
    source: str = "",
) -> Cell:
    """`needs`: packages, the program's own first. `served`: the command is a driver, which reports the
    time that the client saw. `problem`: why the input is not there."""
    return Cell(
        name=name,
        workload=name,
        family="program",
        title=title,
        source=source or f"Debian package {needs[0]}",
        shows=shows,
        command=(shutil.which(command[0]) or command[0], *command[1:]),
        threads=threads,
        figure="seconds" if served else "wall_s",
        missing=_absence(needs) or problem,
    )
