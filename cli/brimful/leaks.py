# SPDX-License-Identifier: MIT
"""`brimful leaks`: what a program has lost, by the observer's search (docs/guide/leaks.md).

Of a process or a core the observer says it all, and this process becomes it. A COMMAND is run under
the library with leaks:exit, which starts the observer when a process of the command exits; the
reports come back as files of a folder, one pair for each process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import locate, program
from . import run as run_command

EXIT_LOST = 1
EXIT_USAGE = 2
EXIT_FAILURE = 125
SCHEMA = "brimful-leaks-1"
DIFF_SCHEMA = "brimful-leaks-diff-1"


def look(target: str, options: list[str]) -> int:
    """Become the observer that looks at a process or a core; returns only where there is none."""
    observer = _observer()
    if observer is not None:
        sys.stdout.flush()
        os.execv(observer, ["brimful-observer", "leaks", *_width(), *options, target])
    return EXIT_LOST


def watch(command: list[str], lib: str | None, options: list[str], as_json: bool) -> int:
    """Run `command` and tell what each of its processes had lost when it exited.

    COMMAND's exit code, unless that is 0 and something was lost.
    """
    observer = _observer()
    if observer is None:
        return EXIT_FAILURE
    try:
        preload = locate.preloadable(locate.library(lib))
        path = program.find(command[0])
    except (locate.LibraryError, program.NotRunnable) as error:
        _say(str(error))
        return getattr(error, "code", EXIT_FAILURE)
    folder = Path(tempfile.mkdtemp(prefix="brimful-leaks-"))
    try:
        environment = run_command.environment(["leaks:exit"], preload) | {
            b"BRIMFUL_OBSERVER": os.fsencode(observer),
            b"BRIMFUL_LEAKS_OPTIONS": os.fsencode("\n".join([*_width(), *options])),
            b"BRIMFUL_LEAKS_REPORT": os.fsencode(folder),
        }
        code = _run(path, command, environment)
        lost = _tell(folder, as_json)
        if lost is None:
            _say(f"no report: {command[0]} did not end by exit(), or does not use malloc")
        return code if code != 0 else EXIT_LOST if lost is None or lost else 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(path: str, command: list[str], environment: dict[bytes, bytes]) -> int:
    """The exit code of `command` as a shell says it. Ctrl-C is the command's business."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        started = subprocess.Popen(
            command,
            executable=path,
            env=environment,
            preexec_fn=_as_usual,
        )
        code = started.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code


def _as_usual() -> None:
    """In the child: signals that python ignores, and Ctrl-C, which we do."""
    run_command.restore_signals()
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _tell(folder: Path, as_json: bool) -> bool | None:
    """Print the reports; whether any process lost something. None: there is no report."""
    reports = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    if as_json:
        print(json.dumps({"schema": SCHEMA, "processes": reports}, indent=2))
    else:
        for path in sorted(folder.glob("*.txt")):
            sys.stdout.write(path.read_text(errors="replace"))
    if not reports:
        return None
    return any(report["lost"]["count"] for report in reports)


# --- two reports ----------------------------------------------------------------------------------


class NoReport(Exception):
    """A file is no report; the message says why."""


@dataclass(frozen=True)
class Change:
    """How much more of one group there is."""

    size: int
    what: str
    count: int
    bytes: int


def load(path: str) -> dict[str, Any]:
    """The report in a file, as `leaks --json` wrote it. Raises NoReport."""
    try:
        report = json.loads(Path(path).read_text())
    except OSError as error:
        raise NoReport(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise NoReport(f"{path} is no JSON") from None
    if not isinstance(report, dict) or report.get("schema") != SCHEMA or "groups" not in report:
        raise NoReport(f"{path} is no report of one process by `brimful leaks --json` ({SCHEMA})")
    try:
        changes(report, report)
    except (AttributeError, KeyError, TypeError) as error:
        raise NoReport(f"{path} is damaged: {error!r}") from None
    return report


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """Groups that differ, the largest growth first; a group counts with what is behind it."""
    sums: dict[tuple[int, str], list[int]] = {}
    for report, sign in ((before, -1), (after, 1)):
        for group in report["groups"]:
            if group["kind"] != "lost":
                continue
            what = group["type"] or " < ".join(group["stack"][:3])
            total = sums.setdefault((group["size"], what), [0, 0])
            total[0] += sign * (group["count"] + group["behind"]["count"])
            total[1] += sign * (group["bytes"] + group["behind"]["bytes"])
    found = [Change(size, what, *total) for (size, what), total in sums.items() if any(total)]
    return sorted(found, key=lambda change: -change.bytes)


def diff(first: str, second: str, as_json: bool) -> int:
    """Print what is lost in the second report and was not in the first; 1 when that is anything."""
    try:
        found = changes(load(first), load(second))
    except NoReport as error:
        _say(str(error))
        return EXIT_USAGE
    if as_json:
        changed = [vars(change) for change in found]
        print(json.dumps({"schema": DIFF_SCHEMA, "changes": changed}, indent=2))
    elif not found:
        print("no difference")
    else:
        print(f"{'objects':>10}{'bytes':>15}{'size':>13}  what")
        for change in found:
            print(
                f"{change.count:>+10,}{change.bytes:>+15,}{change.size:>13,}  {change.what}".rstrip()
            )
    return EXIT_LOST if any(change.bytes > 0 for change in found) else 0


def _observer() -> str | None:
    try:
        return locate.observer()
    except locate.LibraryError as error:
        _say(str(error))
        return None


def _width() -> list[str]:
    return ["--width", str(shutil.get_terminal_size((100, 24)).columns)]


def _say(text: str) -> None:
    sys.stderr.write(f"brimful leaks: {text}\n")
