# SPDX-License-Identifier: MIT
"""The command line of `brimful doctor`.

Of a COMMAND: its file is looked at first; then it is run under brimful, and it and what it starts are
looked at while they run, until it exits or the time is over.

Exit codes: 0 no problem, 1 a problem was found, 2 wrong usage, 125 nothing could be looked at, 130
Ctrl-C.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import click
import typer

from .. import locate, options, program
from .. import run as run_command
from . import checks, findings
from .findings import Examined
from .process import Process, System

EXIT_PROBLEM = 1
EXIT_FAILURE = 125
_LOOK_SECONDS = 0.05
_SETTLED = 3
_AGAIN = 20
_LEAVE_SECONDS = 5.0


def doctor(
    context: typer.Context,
    pid: int = typer.Argument(None, metavar="PID | -- COMMAND...", min=1, show_default=False),
    seconds: float = typer.Option(
        10.0, "--seconds", min=0.1, help="End COMMAND after so long, if it has not ended."
    ),
    conf: list[str] = options.CONF,
    as_json: bool = options.AS_JSON,
    lib: str = options.LIBRARY,
) -> None:
    """Say why brimful isn't in a program, or doesn't help it: what was seen, what it means, what to do.

    Of a running process it reads what the system says of it; nothing is stopped. Of COMMAND it looks
    at the file, runs it under brimful, and looks at each process of it. Without either: at this machine.
    The exit code is 1 when there is a problem.
    """
    command: list[str] = context.obj or []
    if command and pid is not None:
        raise click.UsageError("either a PID or -- COMMAND is wanted", context)
    try:
        import elftools  # noqa: F401 (here, where it can be said)
    except ImportError:
        _say("python3-pyelftools is missing: install it by your package manager")
        raise typer.Exit(EXIT_FAILURE) from None
    try:
        if command:
            examined = _of_command(command, list(conf), lib, seconds)
        elif pid is not None:
            examined = [_of_process(pid, lib)]
        else:
            machine = tuple(checks.of_machine(System()))
            examined = [Examined(0, "this machine", False, None, machine)]
    except CannotLookError as error:
        _say(str(error))
        raise typer.Exit(error.code) from None
    text = json.dumps(findings.as_json(examined)) + "\n" if as_json else findings.as_text(examined)
    sys.stdout.write(text)
    raise typer.Exit(EXIT_PROBLEM if findings.has_problem(examined) else 0)


class CannotLookError(Exception):
    """There is nothing to look at; the message says why."""

    def __init__(self, reason: str, code: int = EXIT_FAILURE) -> None:
        super().__init__(reason)
        self.code = code


def _of_process(pid: int, lib: str | None) -> Examined:
    process = Process(System(), pid)
    if not process.exists():
        raise CannotLookError(f"there is no process {pid}")
    if not process.may_be_read():
        raise CannotLookError(
            f"process {pid} ({process.name()}) may not be looked at: it takes its user, or root"
        )
    return _examine(process, _library(lib))


def _examine(process: Process, library: str | None) -> Examined:
    front_end = _front_end(process.pid) if process.has_loaded_brimful() else None
    return checks.examine(process, front_end, library)


def _library(lib: str | None) -> str | None:
    """The library that would be preloaded, if there is one."""
    try:
        return locate.library(lib)
    except locate.LibraryError:
        return None


def _front_end(pid: int) -> str | None:
    """What the library in the process says, by the observer; None where there is none to ask."""
    try:
        observer = locate.observer()
    except locate.LibraryError:
        return None
    asked = [observer, "stats", "--light", str(pid)]
    answer = subprocess.run(asked, capture_output=True, text=True, timeout=20)
    try:
        processes: list[dict[str, Any]] = json.loads(answer.stdout.splitlines()[0])["processes"]
        return str(processes[0]["front_end"])
    except (ValueError, LookupError):
        return None


def _of_command(
    command: list[str], conf: list[str], lib: str | None, seconds: float
) -> list[Examined]:
    try:
        library = locate.library(lib)
        preload = locate.preloadable(library)
        path = program.find(command[0])
    except (locate.LibraryError, program.NotRunnable) as error:
        raise CannotLookError(str(error), getattr(error, "code", EXIT_FAILURE)) from None
    at_rest = checks.of_file(path, library)
    environment = run_command.environment(conf, preload)
    try:
        child = subprocess.Popen(
            command, executable=path, env=environment, preexec_fn=run_command.restore_signals
        )
    except OSError as error:
        _say(f"{path} does not start: {error.strerror}")
        return [Examined(0, os.path.basename(path), False, None, tuple(at_rest))]
    try:
        seen = _watch(child, library, time.monotonic() + seconds)
    finally:
        _end(child)
    if at_rest or not seen:
        # What its file says stands for the process that runs it.
        seen = [one for one in seen if one.pid != child.pid]
        seen.insert(0, Examined(0, os.path.basename(path), False, None, tuple(at_rest)))
    return _once_each(seen)


def _watch(child: subprocess.Popen[bytes], library: str, until: float) -> list[Examined]:
    """What was found in `child` and the processes below it, until it has ended or the time is over.

    A process is looked at when it has been there for two rounds, so that the loader has done its
    work, and again once a second and at the end: memory grows.
    """
    rounds: dict[tuple[int, str], int] = {}
    found: dict[tuple[int, str], Examined] = {}
    is_last = False
    while not is_last:
        is_last = child.poll() is not None or time.monotonic() >= until
        for process in _family(child.pid):
            key = (process.pid, process.name())
            rounds[key] = rounds.get(key, 0) + 1
            if rounds[key] == _SETTLED or (rounds[key] > _SETTLED and rounds[key] % _AGAIN == 0):
                found[key] = _examine(process, library)
        if not is_last:
            time.sleep(_LOOK_SECONDS)
    for pid, name in found:
        process = Process(System(), pid)
        if process.exists() and process.name() == name and process.may_be_read():
            found[pid, name] = _examine(process, library)
    return list(found.values())


def _family(pid: int) -> list[Process]:
    """A process and those below it that may be looked at."""
    system = System()
    below: dict[int, list[int]] = {}
    for other in system.processes():
        below.setdefault(Process(system, other).status("PPid"), []).append(other)
    family = [pid]
    for one in family:
        family += below.get(one, [])
    return [process for one in family if (process := Process(system, one)).may_be_read()]


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends what is left of the command: gently, then not."""
    family = [process.pid for process in _family(child.pid)] if child.poll() is None else []
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_LEAVE_SECONDS)
            return


def _once_each(seen: list[Examined]) -> list[Examined]:
    """Without processes of which the same was found as of another of that name."""
    different: dict[object, Examined] = {}
    for one in seen:
        different.setdefault((one.program, one.runs_brimful, one.findings), one)
    return list(different.values())


def _say(text: str) -> None:
    sys.stderr.write(f"brimful doctor: {text}\n")
