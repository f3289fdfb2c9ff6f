# SPDX-License-Identifier: MIT
"""A folder that looks like a checkout, in which the commands of a page run.

Everything of the checkout is there as a symbolic link, `build` as a folder of such links, so that
commands find what they name and what they write stays here. In front of PATH stand a `brimful`, as
if it were installed, and the compilers' names with -Wall -Wextra -Werror added: an example that
compiles only without warnings switched on is no example.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("BRIMFUL_BUILD", ROOT / "build" / "release"))
COMPILERS = ("cc", "gcc", "c++", "g++")
WARNINGS = "-Wall -Wextra -Werror"
TIME_LIMIT_S = 300


@dataclass(frozen=True)
class Run:
    """What a command did."""

    status: int
    output: str  # both streams, as a terminal shows them

    @property
    def end(self) -> str:
        """What a shell says of the signal by which a fault ended it; "": it ended otherwise."""
        for number, words in ((signal.SIGABRT, "Aborted"), (signal.SIGSEGV, "Segmentation fault")):
            if self.status in (-number, 128 + number):
                return words
        return ""


class Sandbox:
    """Used as a context manager; the folder ends with it."""

    def __enter__(self) -> Sandbox:
        self._holder = tempfile.TemporaryDirectory(prefix="brimful-pages-")
        top = Path(self._holder.name)
        self.folder = top / "checkout"
        self.folder.mkdir()
        for entry in sorted(ROOT.iterdir()):
            if entry.name not in ("build", ".git"):
                (self.folder / entry.name).symlink_to(entry)
        (self.folder / "build").mkdir()
        for entry in sorted((ROOT / "build").iterdir()) if (ROOT / "build").exists() else ():
            if entry.name not in ("release", "bench", "run"):
                (self.folder / "build" / entry.name).symlink_to(entry)
        (self.folder / "build" / "release").symlink_to(BUILD)
        self.commands = top / "bin"
        self.commands.mkdir()
        (self.commands / "brimful").symlink_to(ROOT / "brimful")
        for name in COMPILERS:
            shim = self.commands / name
            shim.write_text(f'#!/bin/sh\nexec /usr/bin/{name} {WARNINGS} "$@"\n')
            shim.chmod(0o755)
        self.home = top / "home"
        self.home.mkdir()
        return self

    def __exit__(self, *unused: object) -> None:
        self._holder.cleanup()

    def run(self, command: str, timeout_s: float = TIME_LIMIT_S) -> Run:
        """Runs one command by bash, as it would be typed in the top folder of the checkout."""
        environment = {
            name: value
            for name, value in os.environ.items()
            # What steers the tests and the make that runs them is none of the page's business.
            if not name.startswith(("BRIMFUL_", "MAKE", "MFLAGS", "CTEST", "LD_PRELOAD"))
            and name not in ("PRESET", "PREFIX", "TESTS", "COLUMNS", "DESTDIR")
        }
        environment["PATH"] = f"{self.commands}:{environment.get('PATH', '/usr/bin:/bin')}"
        environment["HOME"] = str(self.home)
        environment["LC_ALL"] = "C.UTF-8"
        environment["DESTDIR_FOR_PAGES"] = str(self.home / "destdir")
        # The folder is the checkout, under the name that the shell was told.
        environment["PWD"] = str(self.folder)
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=_no_core_file,
        )
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return Run(124, f"{output}\nno end after {timeout_s:.0f} s\n")
        return Run(process.returncode, output)


def _no_core_file() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def processor_seconds() -> float:
    """Of this process and of all that it ran."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def commands_of(script: str) -> list[str]:
    """A script cut into commands: each is as many lines as bash needs for a whole one."""
    commands: list[str] = []
    pending = ""
    for line in script.splitlines():
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        pending += line + "\n"
        if line.endswith("\\"):
            continue
        parsed = subprocess.run(
            ["bash", "-n", "-c", pending], capture_output=True, text=True, check=False
        )
        # An open quote is an error, an open here-document only a warning.
        if parsed.returncode == 0 and not parsed.stderr:
            commands.append(pending.rstrip("\n"))
            pending = ""
    if pending:
        raise ValueError(f"bash cannot parse: {pending.strip()}")
    return commands


if __name__ == "__main__":
    sys.exit("a helper of blocks.py")
