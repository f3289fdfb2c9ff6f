#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""every_target_long.py [TASK…]: each task of `make help`, shortened, in a fresh clone and in a random order.

Each ends well or says in a line what it lacks, whatever was called before it: tasks that only work
after another one, or only before it, are found so in time. The order is drawn anew each time;
BRIMFUL_SEED repeats one.
"""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import _clone
import _targets

LONGEST_S = 2400


def ended(folder: Path, command: list[str], log: Path) -> str:
    """Runs a command in `folder`; what is wrong with how it ended, or ""."""
    with log.open("w+") as file:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=_clone.environment(),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return f"no end after {LONGEST_S} s"
    return _clone.complaint(code, log.read_text(errors="replace"))


def main() -> int:
    """0 if all tasks ended as they should."""
    seed = int(os.environ.get("BRIMFUL_SEED", time.time_ns() % 2**31))
    tasks = sys.argv[1:] or [name for name in _targets.listed() if name in _targets.SHORTENED]
    commands = [["make", task, *call] for task in tasks for call in _targets.calls(task)]
    random.Random(seed).shuffle(commands)
    print(f"BRIMFUL_SEED={seed}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="brimful-door-") as name:
        folder = _clone.clone(Path(name) / "brimful")
        for command in commands:
            start = time.monotonic()
            log = Path(name) / "output.log"
            wrong = ended(folder, command, log)
            took = time.monotonic() - start
            print(f"{shlex.join(command)}: {wrong or 'fine'} ({took:.0f} s)", flush=True)
            if wrong:
                failed += 1
                said = log.read_text(errors="replace").splitlines()[-30:]
                print("".join(f"    {line}\n" for line in said), flush=True)
    for new in _targets.unknown():
        print(f"make {new}: not tried, it is not in SHORTENED of tests/door/_targets.py")
    return 1 if failed or _targets.unknown() else 0


if __name__ == "__main__":
    sys.exit(main())
