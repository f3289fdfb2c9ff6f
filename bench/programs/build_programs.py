#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Builds the programs that Debian builds otherwise than their users do, into build/programs/.

    build_programs.py

Debian's redis-server is linked with jemalloc and built for it: under a preload it takes its blocks from
the library under test, while jemalloc's own threads and hooks are still in the process. Distributions
without jemalloc, and whoever wants the system's malloc, build redis with MALLOC=libc. What is built
here are the authors' own files with the authors' own Makefile.

Sources come with a checksum, are fetched once, and nothing is built again that is up to date: see
bench/rivals/build.py. Exit code: 0 if everything is there, 1 if something failed (the message says
what; its row of the bench then says how to try again).
"""

from __future__ import annotations

import fcntl
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from rivals.build import Workshop, say  # noqa: E402
from rivals.catalog import Recipe, Upstream  # noqa: E402
from rivals.recipes import JOBS, BuildError, Shell, copied  # noqa: E402


@dataclass(frozen=True)
class Program:
    """A program to build; `name` is also its file's."""

    name: str
    title: str
    origin: Upstream
    recipe: Recipe


def redis_libc(source: Path, program: Path, shell: Shell) -> None:
    """Upstream's flags. Optional libraries stay out, whatever this machine has of them.

    The version that redis asks git for would be this project's: git may not look above the copy.
    """
    root = copied(source, shell)
    variables = {"GIT_CEILING_DIRECTORIES": str(shell.work)}
    options = ["MALLOC=libc", "USE_SYSTEMD=no", "BUILD_TLS=no"]
    shell.run(["make", "-C", "src", "-j", JOBS, *options, "redis-server"], root, variables)
    shutil.copy2(root / "src" / "redis-server", program)


PROGRAMS = (
    Program(
        "redis-server-libc",
        "redis-server with plain malloc",
        Upstream(
            "redis-tools",
            "redis_7.0.15.orig.tar.gz",
            "4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982",
        ),
        redis_libc,
    ),
)


def main(workshop: Workshop, programs: tuple[Program, ...] = PROGRAMS) -> int:
    failed = False
    (workshop.folder / "logs").mkdir(parents=True, exist_ok=True)
    with (workshop.folder / "lock").open("w") as lock:
        # Two runs at once would empty each other's folders; the second waits for the first.
        fcntl.flock(lock, fcntl.LOCK_EX)
        for one in programs:
            try:
                path = workshop.made(one.name, one.name, one.title, one.origin, one.recipe)
                say(f"{one.title}: {path}")
            except BuildError as error:
                failed = True
                log = workshop.folder / "logs" / f"{one.name}.log"
                say(f"{one.title} could not be built: {error} (log: {log})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Workshop(ROOT / "build" / "programs")))
