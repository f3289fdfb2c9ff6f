# SPDX-License-Identifier: MIT
"""The list that `make help` prints, and how each task on it is shortened to minutes."""

from __future__ import annotations

import re
import subprocess

from _clone import ROOT, environment

# A task → the variables that shorten it.
SHORTENED: dict[str, tuple[str, ...]] = {
    "help": (),
    "lib": (),
    "study": (),
    "run": ("RUN_SECONDS=1",),
    "quick": ("TESTS=cli.test_manual",),
    "test": ("TESTS=release.cli",),
    "test-long": ("TESTS=release.study.class.abi.long",),
    "repeat": ("TESTS=cli.test_manual", "TIMES=2"),
    "bench": ("BENCH=--workloads larson --rounds 1:1 --budget 20s --allocators brimful",),
    "league": ("LEAGUE=--for 1m",),
    "bench-concurrency": ("CONCURRENCY=--short",),
    "bench-memory": ("MEMORY=--short",),
    "bench-pools": ("POOLS=--short",),
    "bench-service": ("SERVICE=--allocators brimful --rounds 1 --requests 40 --rest 1 --no-keep",),
    "rivals": ("RIVALS=rpmalloc",),
    "real-programs": (),
    "gates": ("GATES=--dry --samples 1 --seconds 0.05 --allocators glibc",),
    "format": (),
    "lint": (),
    "install": ("DESTDIR=build/installed",),
    "clean": (),
}


def listed() -> list[str]:
    """The tasks that `make help` names."""
    done = subprocess.run(
        ["make", "--no-print-directory", "-C", str(ROOT), "help"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return re.findall(r"^  make ([a-z-]+)", done.stdout, re.MULTILINE)


def unknown() -> list[str]:
    """Those that are missing from SHORTENED."""
    return [name for name in listed() if name not in SHORTENED]
