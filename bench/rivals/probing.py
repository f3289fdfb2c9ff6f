# SPDX-License-Identifier: MIT
"""Runs probe.c under a rival and judges what it says.

A rival passes if the probe ends well, if every call that it looked up is served by the library that
was preloaded, and if the front end that runs is the one that the table promises.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rivals.recipes import Shell

SOURCE = Path(__file__).resolve().parent / "probe.c"
SECONDS = 120


@dataclass(frozen=True)
class Verdict:
    """What the probe found; `fault` is empty if the rival may be measured."""

    fault: str
    mode: str = ""
    limits: tuple[str, ...] = ()  # what it cannot do, though most programs never ask for it


def compile_probe(shell: Shell, target: Path) -> Path:
    """The probe's program, made anew if its source is newer; BuildError without a compiler."""
    if not target.exists() or target.stat().st_mtime < SOURCE.stat().st_mtime:
        target.parent.mkdir(parents=True, exist_ok=True)
        flags = ["-O1", "-Wall", "-Wextra", "-fno-builtin-malloc", "-pthread"]
        shell.run(["gcc", *flags, "-o", target, SOURCE, "-ldl"], cwd=target.parent)
    return target


def probe(
    program: Path, library: Path, settings: Mapping[str, str], mode: str, log: Path
) -> Verdict:
    """Preload `library` into the probe under `settings`; `mode` is the front end it must run."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "GLIBC_TUNABLES")}
    try:
        done = subprocess.run(
            [str(program)],
            env={**inherited, **settings, "LD_PRELOAD": str(library)},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Verdict(f"the probe did not end within {SECONDS} s")
    with log.open("a") as file:
        file.write(f"$ LD_PRELOAD={library} {program}\n{done.stdout}{done.stderr}\n")
    return judge(library, mode, done.returncode, done.stdout.splitlines(), done.stderr)


def judge(library: Path, mode: str, code: int, said: list[str], errors: str) -> Verdict:
    """The verdict on a run that ended with `code` and printed the lines `said`."""
    elsewhere = served_elsewhere(said, library)
    if elsewhere:
        return Verdict(f"the library does not serve {', '.join(elsewhere)}")
    if faults := after(said, "fault: "):
        return Verdict(f"the probe found a fault: {faults[0]}")
    if code != 0 or "sound" not in said:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        stage = (after(said, "checking ") or ["nothing yet"])[-1]
        words = errors.strip().splitlines()
        quoted = f": {words[-1][:160]}" if words else ""
        return Verdict(f"the probe ended with {how} while checking {stage}{quoted}")
    found = "".join(after(said, "mode "))
    if mode and found != mode:
        return Verdict(f"it runs with {found or 'a front end it does not name'}, not {mode}", found)
    return Verdict("", found, tuple(after(said, "limit ")))


def after(said: list[str], word: str) -> list[str]:
    """What follows `word` on the lines that begin with it."""
    return [line.removeprefix(word) for line in said if line.startswith(word)]


def served_elsewhere(said: list[str], library: Path) -> list[str]:
    """The calls that another file than `library` serves."""
    served = [line.split(" ", 1) for line in after(said, "serves ")]
    if not served:
        return ["malloc"]
    return [call for call, path in served if os.path.realpath(path) != os.path.realpath(library)]
