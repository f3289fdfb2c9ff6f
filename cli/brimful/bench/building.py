# SPDX-License-Identifier: MIT
"""Compiling what the bench runs: on first use, and again when a source is newer than its binary."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .. import locate
from .model import BenchError

TIMEOUT_S = 300


class BuildError(BenchError):
    """A program cannot be built; the message says why."""


def program(source: Path, *flags: str) -> Path:
    """A measuring program of C or C++, in build/study/. Raises BuildError."""
    compiler = ["g++", "-std=c++20"] if source.suffix == ".cpp" else ["gcc"]
    binary = Path(locate.project_root()) / "build" / "study" / source.stem
    return built(binary, source, [*compiler, "-O2", "-Wall", "-Wextra", *flags])


def built(binary: Path, source: Path, compiler: Sequence[str], links: Sequence[str] = ()) -> Path:
    """`binary`, compiled from `source` and the headers beside it unless it is newer than those.

    It appears in one step, so several runs may build the same program at once. Raises BuildError.
    """
    if not source.exists():
        raise BuildError(f"no source {source} for {binary.name}")
    inputs = [source, *source.parent.glob("*.h")]
    if binary.exists() and binary.stat().st_mtime > max(path.stat().st_mtime for path in inputs):
        return binary
    binary.parent.mkdir(parents=True, exist_ok=True)
    fresh = f"{binary}.{os.getpid()}"
    command = [*compiler, "-o", fresh, str(source), *links]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except FileNotFoundError:
        raise BuildError(
            f"{compiler[0]} is not installed: run tools/install-deps.sh bench"
        ) from None
    if done.returncode != 0:
        raise BuildError(f"cannot compile {source}:\n{done.stderr}")
    os.replace(fresh, binary)
    return binary
