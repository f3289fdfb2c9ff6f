# SPDX-License-Identifier: MIT
"""The interpreter of the bench: Debian's python3 with the packages of tools/requirements-bench.txt.

Debian 12 lacks altair and vl-convert, so they live in build/venv. `./brimful` itself
starts under Debian's bare interpreter; a command that needs them calls ensure(), which goes on in
this process if they are there, else starts the same command line again in build/venv, which is
made on first use.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import typer

from .. import locate

NEEDED = ("altair", "vl_convert", "numpy", "scipy")


def ensure() -> None:
    """Return if this interpreter has what the bench needs; else exec the one that does."""
    if all(importlib.util.find_spec(name) is not None for name in NEEDED):
        return
    root = locate.project_root()
    python = os.path.join(root, "build", "venv", "bin", "python")
    if os.path.realpath(sys.prefix) == os.path.realpath(os.path.join(root, "build", "venv")):
        raise _failure("build/venv lacks packages: remove it and run tools/install-deps.sh bench")
    installer = os.path.join(root, "tools", "install-deps.sh")
    if not os.path.exists(installer):
        raise _failure(f"no {installer}: the bench needs a checkout")
    if subprocess.run([installer, "bench"], cwd=root).returncode != 0 or not os.path.exists(python):
        raise _failure("tools/install-deps.sh bench could not install what the bench needs")
    sys.stdout.flush()
    launcher = os.path.join(root, "brimful")
    os.execv(python, [python, "-I", launcher, *sys.argv[1:]])


def _failure(text: str) -> typer.Exit:
    typer.echo(f"brimful: {text}", err=True)
    return typer.Exit(1)
