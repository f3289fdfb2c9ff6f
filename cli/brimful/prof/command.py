# SPDX-License-Identifier: MIT
"""The command line of `brimful prof`.

Exit codes: 0 profiled, 1 that was not possible, 2 wrong usage, 130 interrupted before anything was seen; with
`-- COMMAND` the command's own, where it was profiled.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

import typer

from .. import locate, options, program
from .samples import FormatError, Recording
from .stacks import Amount, Stack, flat_and_cumulative, functions, subtract, total

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_VIEW_NAMES = ("in-use", "allocated", "lifetimes", "growth", "peak")


def parse_size(text: str) -> int:
    """Bytes: 524288, 512k, 1M, 0.5MiB. Raises typer.BadParameter."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)(?:i?b)?", text.strip().lower())
    value = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if not 1 <= value <= 1 << 50:
        raise typer.BadParameter(f"--interval {text}: not a size such as 512k or 1M")
    return value


def prof(
    context: typer.Context,
    target: list[str] = typer.Argument(
        None, metavar="PID | FILE | diff A B | -- COMMAND...", show_default=False
    ),
    seconds: float = typer.Option(
        30.0, "--seconds", "-s", min=0.0, help="How long a process is watched; 0: until it ends."
    ),
    interval: str = typer.Option(
        "512k", "--interval", help="One sample in so many bytes, if the process samples not yet."
    ),
    view: str = typer.Option(
        "in-use", "--view", metavar="|".join(_VIEW_NAMES), help="Which question is answered."
    ),
    out: str = typer.Option(
        None, "--out", "-o", metavar="FILE", help="Write a profile for pprof (heap.pb.gz)."
    ),
    html: str = typer.Option(None, metavar="FILE", help="Write a flame graph, one page of HTML."),
    folded: str = typer.Option(
        None, metavar="FILE", help="Write folded stacks; - is standard output."
    ),
    top: int = typer.Option(20, "--top", min=1, help="How many functions are shown."),
    as_json: bool = options.AS_JSON,
    conf: list[str] = options.CONF,
    lib: str = options.LIBRARY,
) -> int:
    """Who allocated what a program holds, by sampling it while it runs.

    PID is switched to sampling, watched, and switched back; it needs nothing but libbrimful.so, and the
    right to read the process (as for a debugger). FILE is what prof_file wrote. Ctrl-C ends the watching
    early and shows what was seen.
    """
    words = list(target or [])
    output = _Output(view, out, html, folded, top, as_json)
    if view not in _VIEW_NAMES:
        raise typer.BadParameter(f"--view {view}: one of {', '.join(_VIEW_NAMES)}")
    if isinstance(context.obj, list) and not words:
        return _profile(context.obj, True, seconds, parse_size(interval), conf, lib, output)
    if words[:1] == ["diff"] and len(words) == 3:
        return _diff(words[1], words[2], output)
    if len(words) != 1 or isinstance(context.obj, list):
        raise typer.BadParameter("one PID, one FILE, diff and two profiles, or -- and a command")
    return _profile(words, False, seconds, parse_size(interval), conf, lib, output)


class _Output:
    """Where the answer goes."""

    def __init__(
        self,
        view: str,
        out: str | None,
        html: str | None,
        folded: str | None,
        top: int,
        as_json: bool,
    ) -> None:
        self.view = view
        self.out = out
        self.html = html
        self.folded = folded
        self.top = top
        self.as_json = as_json

    def files(self, title: str, meaning: str, amounts: Mapping[Stack, Amount]) -> None:
        """All but pprof's, which a difference doesn't have."""
        from . import flame
        from . import folded as folded_stacks

        if self.html:
            with open(self.html, "w", encoding="utf-8") as file:
                file.write(flame.page(title, meaning, amounts))
            _say(f"flame graph: {self.html}")
        if self.folded:
            text = "".join(f"{line}\n" for line in folded_stacks.lines(amounts))
            if self.folded == "-":
                sys.stdout.write(text)
            else:
                with open(self.folded, "w", encoding="utf-8") as file:
                    file.write(text)
                _say(f"folded stacks: {self.folded}")

    @property
    def quiet(self) -> bool:
        """Whether standard output is taken by something for a program."""
        return self.as_json or self.folded == "-"


def _profile(
    words: list[str],
    is_command: bool,
    seconds: float,
    interval: int,
    conf: list[str],
    lib: str | None,
    output: _Output,
) -> int:
    from . import target
    from .observe import ObserverError

    what = words[0]
    try:
        if is_command:
            outcome = target.command(words, interval, conf, lib)
        elif what.isdigit():
            if sys.stderr.isatty():
                time = f"for {seconds:g} s" if seconds else "until it ends"
                _say(f"watching process {what} {time}; Ctrl-C shows what was seen until then")
            outcome = target.process(what, seconds, interval)
        else:
            outcome = target.file(what)
    except program.NotRunnable as error:
        _say(str(error))
        return error.code
    except (ObserverError, locate.LibraryError) as error:
        _say(str(error))
        return 1
    _show(outcome.recording, output)
    return outcome.exit_code


def _show(recording: Recording, output: _Output) -> None:
    from . import pprof, views

    view = views.VIEWS[output.view](recording)
    name = recording.name or recording.program.rsplit("/", 1)[-1] or "unknown program"
    if output.out:
        pprof.write(output.out, recording, view)
        _say(f"profile: {output.out} (go tool pprof {output.out})")
    title = f"{name}: {view.name}"
    output.files(title, f"process {recording.pid}, {view.meaning}", view.amounts)
    if recording.missed:
        _say(
            f"{recording.missed} samples of freed objects were gone before they could be read; those that "
            "were read stand for them (a larger --interval samples less)"
        )
    if recording.lost:
        _say(f"{recording.lost} samples were not taken, because the library had no room for them")
    if output.as_json:
        print(json.dumps(_as_json(recording, view)))
    elif not output.quiet:
        _table(recording, view, output.top)


def _table(recording: Recording, view: Any, top: int) -> None:
    from rich.console import Console

    from . import table

    console = Console(soft_wrap=False)
    whole = view.total()
    who = f"process {recording.pid}, " if recording.pid else ""
    name = f"{recording.name} ({recording.program})" if recording.name else recording.program
    console.print(
        f"{who}{name}, {recording.seconds:.3g} s, one sample in {table.size(recording.interval)}",
        highlight=False,
        markup=False,
    )
    if not view.amounts:
        console.print(
            f"{view.name}: nothing was sampled. A program that allocates less than a few times "
            f"{table.size(recording.interval)} shows more with a smaller --interval, or watched longer.",
            highlight=False,
        )
        return
    console.print(
        f"{view.name}: {table.size(whole.bytes)} ± {table.size(view.error)} (standard error), "
        f"{view.samples:,} samples: {view.meaning}\n",
        highlight=False,
    )
    table.show(console, view.amounts, top, view.lifetimes)


def _as_json(recording: Recording, view: Any) -> dict[str, Any]:
    from . import views

    whole = view.total()
    shown = set(view.amounts)
    chosen = [s for s in recording.samples if s.stack in shown and s.freed_ns == 0]
    by_function = flat_and_cumulative(view.amounts)
    answer: dict[str, Any] = {
        "schema": "brimful-prof",
        "version": 1,
        "pid": recording.pid,
        "program": recording.program,
        "seconds": recording.seconds,
        "interval": recording.interval,
        "ended": recording.ended,
        "allocated_bytes": recording.allocated_bytes,
        "missed": recording.missed,
        "lost": recording.lost,
        "view": view.name,
        "samples": view.samples,
        "objects": whole.objects,
        "bytes": whole.bytes,
        "standard_error": view.error,
        "functions": [
            {"name": name, "flat": flat.bytes, "cumulative": cumulative.bytes}
            for name, (flat, cumulative) in sorted(
                by_function.items(), key=lambda row: -row[1][0].bytes
            )
        ],
        "stacks": [
            {"functions": list(functions(stack)), "objects": amount.objects, "bytes": amount.bytes}
            for stack, amount in sorted(view.amounts.items(), key=lambda row: -row[1].bytes)
        ],
    }
    if view.name == "in-use":
        answer["classes"] = [
            {"bytes_each": size, "objects": amount.objects, "bytes": amount.bytes}
            for size, amount in sorted(views.by_class(chosen).items())
        ]
    return answer


def _read(path: str) -> tuple[str, dict[Stack, Amount]]:
    """What a profile counts by default, and the amounts: pprof's format, or what prof_file wrote."""
    from . import pprof, target, views

    if pprof.is_profile(path):
        profile = pprof.read(path)
        return profile.default, profile.amounts[profile.default]
    return "inuse", dict(views.in_use(target.file(path).recording).amounts)


def _diff(before: str, after: str, output: _Output) -> int:
    from rich.console import Console

    from . import table
    from .observe import ObserverError

    try:
        kind, earlier = _read(before)
        other, later = _read(after)
    except (FormatError, ObserverError) as error:
        _say(str(error))
        return 1
    if kind != other:
        _say(f"{before} shows {kind} and {after} {other}: nothing to compare")
        return 1
    changes = subtract(later, earlier)
    grown = total(changes.values())
    meaning = f"{kind}: {after} less {before}"
    if output.out:
        _say("a difference is no profile: --out is for what is observed")
        return 2
    output.files("difference", f"{meaning} (only what has grown)", changes)
    if output.as_json:
        rows = sorted(changes.items(), key=lambda row: -row[1].bytes)
        stacks = [
            {"functions": list(functions(stack)), "objects": amount.objects, "bytes": amount.bytes}
            for stack, amount in rows
        ]
        print(
            json.dumps(
                {
                    "schema": "brimful-prof-diff",
                    "version": 1,
                    "bytes": grown.bytes,
                    "stacks": stacks,
                }
            )
        )
    elif not output.quiet:
        console = Console(soft_wrap=False)
        console.print(f"{meaning}: {table.size(grown.bytes)}\n", highlight=False, markup=False)
        table.show(console, changes, output.top)
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"brimful prof: {text}\n")
