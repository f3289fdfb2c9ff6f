# SPDX-License-Identifier: MIT
"""The command line of `brimful top`.

Exit codes: 0 shown, 1 a process that was named can't be read, or none runs brimful, 2 wrong usage,
130 Ctrl-C.
"""

from __future__ import annotations

import json
import os
import sys

import typer

from . import views
from .observe import Observer, ObserverError, Process

EXIT_FAILURE = 1
# Between the two looks of --once: rates need two.
_ONCE_SECONDS = 0.25


def top(
    pids: list[int] = typer.Argument(
        None, metavar="[PID]...", min=1, max=1 << 22, show_default=False
    ),
    once: bool = typer.Option(
        False, "--once", help="Print one picture and end. So it is where there is no terminal, too."
    ),
    as_json: bool = typer.Option(
        False, "--json", help="One line of JSON for each look, for programs."
    ),
    interval: float = typer.Option(
        None,
        "--interval",
        metavar="SECONDS",
        min=0.1,
        max=3600,
        show_default=False,
        help="From one look to the next; 1 if not given, with --once 0.25.",
    ),
) -> None:
    """Show where the memory of running programs is, and what they do with it, once a second.

    Without PID: every process of yours that runs brimful (of everybody's, for root). The processes
    are not stopped and run nothing for it. Calls of malloc and free are nowhere counted, so their rates are
    estimates, marked by ~.
    """
    chosen = list(pids or [])
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    try:
        if once or (not as_json and not has_terminal):
            code = _once(chosen, interval or _ONCE_SECONDS, as_json)
        elif as_json:
            code = _stream(chosen, interval or 1.0)
        else:
            code = _full_screen(chosen, interval or 1.0)
    except ObserverError as error:
        _say(str(error))
        code = EXIT_FAILURE
    raise typer.Exit(code)


def _once(pids: list[int], interval: float, as_json: bool) -> int:
    """One picture, or one line."""
    observer = Observer(pids, interval)
    try:
        first = observer.next()
        # What has gone by the second look is told by the first.
        look = observer.next() if first["processes"] else first
        if look is not first:
            look["errors"] = first["errors"] + look["errors"]
    finally:
        observer.close()
    for error in look["errors"]:
        _say(error["error"])
    if as_json:
        print(json.dumps(look))
    elif look["processes"]:
        _draw(look["processes"], is_one=len(pids) == 1)
    elif not pids:
        _say(views.nobody())
    return 0 if look["processes"] and not (pids and look["errors"]) else EXIT_FAILURE


def _stream(pids: list[int], interval: float) -> int:
    """A line for each look, until Ctrl-C, or until all that were named have ended."""
    observer = Observer(pids, interval)
    try:
        while (looks := observer.read()) is not None:
            for look in looks:
                print(json.dumps(look), flush=True)
    finally:
        observer.close()
    return EXIT_FAILURE


def _draw(processes: list[Process], is_one: bool) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    everything = 1 << 16  # lines
    if is_one:
        lines = views.process(processes[0], "waste", 0, console.width, everything)
    else:
        lines = views.processes(processes, 0, "rss", console.width, everything)
    for line in lines:
        console.print(line, soft_wrap=True)


def _full_screen(pids: list[int], interval: float) -> int:
    from rich.console import Console

    from .screen import Screen

    return Screen(pids, interval, Console(highlight=False)).run()


def _say(text: str) -> None:
    print(f"brimful top: {text}", file=sys.stderr)
