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
    "lib-locked": (),
    "study": (),
    "run": ("RUN_SECONDS=1",),
    "quick": (),
    "test": ("TESTS=release.cli",),
    "test-arm64": ("KERNEL=--quick --kernel 6.1 --only oracle",),
    "fuzz": ("TARGET=options", "SECONDS=5"),
    "fuzz-campaign": ("SECONDS=2",),
    "test-long": ("TESTS=release.study.class.abi.long",),
    "repeat": ("TESTS=release.cli.test_manual", "N=2"),
    "bench": ("BENCH=--workloads larson --rounds 1:1 --budget 20s --allocators brimful",),
    "league": ("LEAGUE=--for 1m",),
    "rivals": ("RIVALS=rpmalloc",),
    "real-programs": (),
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
    return re.findall(r"^  make ([a-z0-9-]+)", done.stdout, re.MULTILINE)


def calls(task: str) -> list[tuple[str, ...]]:
    """The variables of each call that tries a task; of `study`, one for each folder of bench/studies."""
    studies = sorted(path.parent.name for path in ROOT.glob("bench/studies/*/study.py"))
    each = studies if task == "study" else []
    return [SHORTENED[task], *((f"STUDY={name}", "OPTIONS=--short") for name in each)]


def unknown() -> list[str]:
    """Those that are missing from SHORTENED."""
    return [name for name in listed() if name not in SHORTENED]
