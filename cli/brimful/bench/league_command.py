# SPDX-License-Identifier: MIT
"""`brimful bench league`: all workloads and real programs under every leading allocator, in pieces.

What is measured is kept after each round (see checkpoint), and the same command goes on where the
last one was stopped: by Ctrl-C, by --for, by a kill or by a reboot. passes says in which order.
"""

from __future__ import annotations

import datetime
import os
import random
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import typer

from .. import locate
from . import interpreter, options

if TYPE_CHECKING:
    from rich.console import Console

    from . import catalog, passes
    from .model import Allocator, Result

BUSY = 0.5  # load above which the machine is not idle


def league(
    for_: str = typer.Option(
        "", "--for", metavar="TIME", help="Stop after 90s, 20m or 1h.", show_default=False
    ),
    real: bool = typer.Option(
        None,
        "--real/--no-real",
        help="Only the real programs, or only the workloads.",
        show_default=False,
    ),
    workloads: str = typer.Option(
        "", metavar="X,Y", help="Only these rows, as for `brimful bench`.", show_default=False
    ),
    allocators: str = typer.Option(
        "", metavar="A,B", help="Only these; the baseline is added.", show_default=False
    ),
    baseline: str = typer.Option("glibc", metavar="NAME", help="What ratios are relative to."),
    rounds: str = typer.Option(
        "", metavar="LEAST[:MOST]", help="Rounds per row (5:10).", show_default=False
    ),
    target: str = typer.Option(
        "",
        metavar="PERCENT",
        help="A row is known when it is ± this narrow (3%).",
        show_default=False,
    ),
    pin: str = typer.Option("", metavar="CPUS", help="Run on these CPUs only.", show_default=False),
    seed: int = typer.Option(None, min=0, help="Of all orders.", show_default=False),
    out: Path = typer.Option(
        None, metavar="DIR", help="Where it is kept (default: build/league).", show_default=False
    ),
    plan: bool = typer.Option(False, "--plan", help="Show rows, rounds and time; measure nothing."),
    restart: bool = typer.Option(False, "--restart", help="Forget what was measured."),
    publish: bool = typer.Option(
        False,
        "--publish",
        help="Measure nothing: write what there is to bench/results and into the pages.",
    ),
) -> None:
    """Measure all workloads and real programs under every leading allocator, in pieces.

    Stop it when you like (Ctrl-C, --for, a kill): the same command goes on, and no whole round is
    lost. Another library, machine or baseline than before is refused. Exit code: 0 measured, 1 some
    cell failed, 2 wrong usage or refused, 130 interrupted.
    """
    interpreter.ensure()
    from . import allocators as columns
    from . import catalog, checkpoint

    options.check_cpus(pin)
    preset = options.adjusted(catalog.PRESETS["league"], "", rounds, target)
    budget_s = options.seconds(for_, "--for") if for_ else float("inf")
    console = options.terminal()
    folder = checkpoint.Folder(out or Path(locate.project_root()) / "build" / "league")
    try:
        chosen = options.chosen(columns.known(), allocators, preset, baseline, [])
        if any(one.name == columns.NO_RIVALS for one in chosen):
            raise click.UsageError("there are no rivals to compare with: run `make rivals` first")
        works = _works(preset, real, workloads)
        # Before the rows are looked at: a row is known by the checksum of its program.
        catalog.compile_programs([work.cell for work in works])
        with folder.held():
            if restart:
                folder.forget()
            head = _head(console, folder, chosen, preset, baseline, seed, pin)
            raise typer.Exit(
                _go_on(console, folder, head, works, preset, pin, budget_s, plan, publish)
            )
    except (columns.AllocatorError, catalog.CatalogError, checkpoint.CheckpointError) as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from None


def _works(preset: catalog.Preset, real: bool | None, patterns: str) -> list[catalog.Work]:
    from . import catalog, programs

    works = [] if real else catalog.asked_for(preset, patterns)
    if real is not False:
        works += [catalog.Work(cell, 120, memory=True) for cell in programs.cells()]
    return catalog.select(works, patterns) if patterns else works


def _head(
    console: Console,
    folder: Any,
    chosen: Sequence[Allocator],
    preset: catalog.Preset,
    baseline: str,
    seed: int | None,
    pin: str,
) -> Result:
    """Of the league that goes on, or of a new one. Raises CheckpointError if they do not fit."""
    from . import checkpoint, machine
    from .league_progress import say
    from .model import Result

    now = Result(
        environment=machine.environment(),
        options={
            "preset": preset.name,
            "scale": preset.scale,
            "baseline": baseline,
            "seed": random.SystemRandom().randrange(2**31) if seed is None else seed,
            "target": preset.target,
            "rounds": [preset.least_rounds, preset.most_rounds],
            "pinned": pin,
            "command_line": ["brimful", *sys.argv[1:]],
            "pieces": [],
        },
        allocators=list(chosen),
        cells=[],
    )
    then = folder.head()
    if then is None:
        return now
    unlike = checkpoint.differences(then, now)
    if unlike:
        raise checkpoint.CheckpointError(
            f"the league in {folder.path} cannot go on: {'; '.join(unlike)}. Put that back as it"
            " was, or measure anew with --restart."
        )
    was, is_now = then.environment.get("commit"), now.environment.get("commit")
    if was != is_now:
        text = (
            f"Begun at commit {str(was)[:12]}, now {str(is_now)[:12]}; the libraries are the same."
        )
        say(console, text)
    # The same libraries, so also the same paths; what is said of the rounds is of this piece.
    rules = {key: now.options[key] for key in ("target", "rounds")}
    return replace(then, allocators=list(chosen), options={**then.options, **rules})


def _go_on(
    console: Console,
    folder: Any,
    head: Result,
    works: Sequence[catalog.Work],
    preset: catalog.Preset,
    pin: str,
    budget_s: float,
    plan: bool,
    publish: bool,
) -> int:
    from . import league_progress, passes
    from .league_progress import say

    games = passes.League(folder, head, works, preset, pin or None)
    for row in games.rows:
        if row.why_anew:
            say(console, f"{row.name} begins anew: {row.why_anew}.")
    if plan:
        league_progress.show_plan(console, games)
        return 0
    if publish:
        return _publish(console, dict(games.results()))
    return _measure(console, folder, head, games, budget_s)


def _publish(console: Console, results: Mapping[str, Result]) -> int:
    """Keeps the raw data in bench/results/ and writes the pages that show it."""
    from .league_progress import say
    from .model import save
    from .study import records, registry
    from .study.command import write
    from .study.model import RESULTS, StudyError

    for kind, result in results.items():
        if not result.samples:
            say(console, f"{kind}: nothing measured, nothing written.")
            continue
        path = RESULTS / records.new_name(kind)
        save(result, path)
        whole = "" if result.finished else " (some rows are not known yet)"
        say(console, f"Raw data: {records.shown(path)}{whole}")
    try:
        return write(registry.load("league"), (), check=False)
    except StudyError as error:
        say(console, f"The pages stay as they are: {error}")
        return 1


def _measure(
    console: Console, folder: Any, head: Result, games: passes.League, budget_s: float
) -> int:
    """A piece: measure, keep, and say what there is and what is left."""
    from . import league_progress
    from .league_progress import say
    from .model import Status, save

    load = os.getloadavg()[0]
    if load > BUSY:
        say(console, f"The machine is not idle (load {load:.1f}): figures will be noisy.")
    league_progress.show_start(console, games, budget_s)
    # A TERM is a stop like Ctrl-C: the programs that run are ended, the round is dropped.
    signal.signal(signal.SIGTERM, _interrupt)
    began, date = time.monotonic(), datetime.datetime.now(datetime.UTC)
    piece: dict[str, Any] = {
        "date": date.isoformat(timespec="seconds"),
        "load_average_before": round(load, 2),
    }
    head.options["pieces"].append(piece)
    folder.save_head(head)  # before the first sample: whatever happens, it is known whose they are
    interrupted = False
    with league_progress.Display(console) as display:
        try:
            games.run(budget_s, display.step, display.done)
        except KeyboardInterrupt:
            interrupted = True
    piece["measured_s"] = round(time.monotonic() - began, 1)
    piece["load_average_after"] = round(os.getloadavg()[0], 2)
    folder.save_head(head)
    results = dict(games.results())
    for kind, result in results.items():
        save(result, folder.path / f"{kind}.json")
    league_progress.show_end(console, games, results, folder.path)
    if interrupted:
        say(console, "Interrupted. The same command goes on.")
        return 130
    taken = [sample for result in results.values() for sample in result.samples]
    return int(any(one.status not in (Status.OK, Status.MISSING) for one in taken))


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
