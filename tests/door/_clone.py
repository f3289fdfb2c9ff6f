# SPDX-License-Identifier: MIT
"""A clone of this checkout as a new user has it: nothing built, and with what is not committed yet.

Scripts of this folder type into it what the pages say, and look at what comes back. Exit code 77 skips
one, as everywhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
MAKE_LINE = (
    "make"  # how make's own lines begin: "make: *** [Makefile:…] Error 1", "make[1]: Leaving …"
)


def skip(reason: str) -> NoReturn:
    print(f"SKIP: {reason}")
    sys.exit(77)


def clone(folder: Path) -> Path:
    """A fresh clone in `folder`, which must not exist."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        skip("this is no checkout of git: nothing can be cloned")

    def listed(*kinds: str) -> list[str]:
        command = ["git", "-c", "safe.directory=*", "-C", str(ROOT), "ls-files", "-z", *kinds]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [name for name in done.stdout.split("\0") if name]

    folder.parent.mkdir(parents=True, exist_ok=True)
    command = ["git", "-c", "safe.directory=*", "clone", "--quiet", str(ROOT), str(folder)]
    subprocess.run(command, check=True)
    for name in listed("-mo", "--exclude-standard"):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    for name in listed("-d"):
        (folder / name).unlink(missing_ok=True)
    return folder


def environment(**variables: str | None) -> dict[str, str]:
    """The caller's, without what a make above or this test run put there; None removes a variable."""
    ours = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "LD_PRELOAD"}
    ours |= {"CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER"}
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ours and not name.startswith("BRIMFUL")
    }
    for name, given in variables.items():
        kept.pop(name, None)
        if given is not None:
            kept[name] = given
    return kept


def complaint(code: int, said: str, *, may_lack: bool = True) -> str:
    """What is wrong with how a task of make ended, or "".

    It ends well, or says in its last line what it lacks; and never shows a user what only its author
    can read.
    """
    for bad in ("Traceback (most recent call last)", "command not found", "unbound variable"):
        if bad in said:
            return f"it says {bad!r}"
    if code == 0:
        return ""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(MAKE_LINE)]
    last = lines[-1] if lines else ""
    lacks = any(
        word in last.lower() for word in ("missing", "not installed", "lacks", "apt-get install")
    )
    if may_lack and lacks:
        return ""
    return f"exit code {code}, and its last line is {last!r}"
