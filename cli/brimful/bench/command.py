# SPDX-License-Identifier: MIT
"""The command line of the bench: `brimful bench [OPTION]... [-- COMMAND]` and its subcommands.

Nothing here computes or measures. The modules that do need numpy, altair and others, which live in
build/venv; so they are imported inside the functions, after `interpreter.ensure()` has made sure
that this process runs there, and `--help` works without any of it.

Exit codes: 0 every cell has figures, 1 some cell failed, 2 wrong usage, 130 interrupted (what was
measured until then is written). Rivals that could not be had are declared and change nothing.
"""

from __future__ import annotations

import datetime
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import typer

from .. import locate
from . import interpreter, league_command, options

if TYPE_CHECKING:
    from rich.console import Console

    from . import catalog, engine
    from .model import Allocator, Result

SAVE_EVERY_S = 60.0
FORWARD = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="[-- COMMAND [ARGUMENT]...] | SUBCOMMAND",
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback()
def bench(
    context: typer.Context,
    quick: bool = typer.Option(False, "--quick", help="A first answer in under 3 minutes."),
    full: bool = typer.Option(False, "--full", help="Every row and point: hours."),
    concurrency: bool = typer.Option(
        False, "--concurrency", help="The rows about threads that meet, at full size."
    ),
    memory: bool = typer.Option(
        False, "--memory", help="The rows about memory, at full size: gigabytes."
    ),
    real: bool = typer.Option(
        False, "--real", help="Real programs (see `make real-programs`) instead of workloads."
    ),
    allocators: str = typer.Option(
        "",
        metavar="A,B",
        help="Only these, or `all`. The baseline is added. Default: few with --quick, all with"
        " --full, else all but the slowest and the double.",
        show_default=False,
    ),
    workloads: str = typer.Option(
        "",
        metavar="X,Y",
        help="Only these rows: names of rows, workloads or families, or patterns such as 'larson*'.",
        show_default=False,
    ),
    lib: list[str] = typer.Option(
        [], metavar="NAME=PATH", help="A further allocator. May be repeated.", show_default=False
    ),
    baseline: str = typer.Option("glibc", metavar="NAME", help="What ratios are relative to."),
    out: Path = typer.Option(
        None,
        metavar="DIR",
        help="Where results.json, results.csv and report.html go"
        " (default: build/bench/results/TIME).",
        show_default=False,
    ),
    budget: str = typer.Option(
        "", metavar="TIME", help="Stop after 90s, 20m or 3h.", show_default=False
    ),
    rounds: str = typer.Option(
        "", metavar="LEAST[:MOST]", help="Rounds per row.", show_default=False
    ),
    target: str = typer.Option(
        "",
        metavar="PERCENT",
        help="A row is settled when its intervals are ± this narrow.",
        show_default=False,
    ),
    seed: int = typer.Option(
        None, min=0, help="Of all orders and workloads' random numbers.", show_default=False
    ),
    pin: str = typer.Option(
        "", metavar="CPUS", help="Run on these CPUs only, e.g. 0 or 0-3,8.", show_default=False
    ),
    timeout: float = typer.Option(
        600, min=0.1, metavar="SECONDS", help="For one run of `-- COMMAND`."
    ),
    list_: bool = typer.Option(False, "--list", help="Show allocators and rows, and end."),
) -> None:
    """Compare allocators on this machine: on the workloads of a preset, or on a COMMAND of yours.

    Every sample is a fresh process and allocators take turns in random order; what is shown are
    medians of ratios with their intervals, and "no difference shown" is an answer. Exit code: 0, or
    1 when some cell failed, 2 for wrong usage, 130 when interrupted.
    """
    if context.invoked_subcommand is not None:
        return
    if context.obj is not None and not context.obj:
        raise click.UsageError("-- needs a COMMAND")
    options.check_cpus(pin)
    command: list[str] = context.obj or []
    switches = {"quick": quick, "full": full, "concurrency": concurrency, "memory": memory}
    switches["real"] = real
    presets = [name for name, on in switches.items() if on]
    if len(presets) > 1 or (command and presets):
        given = [*(f"--{name}" for name in presets), *(["-- COMMAND"] if command else [])]
        raise click.UsageError(f"{' and '.join(given)} exclude each other")
    if command and workloads:
        raise click.UsageError("--workloads and -- COMMAND exclude each other")
    interpreter.ensure()

    from . import allocators as columns
    from . import catalog

    preset = catalog.PRESETS["command" if command else (presets or ["default"])[0]]
    preset = options.adjusted(preset, budget, rounds, target)
    try:
        available = columns.known(lib)
        further = [item.split("=")[0] for item in lib]
        chosen = options.chosen(available, allocators, preset, baseline, further)
        works = _works(preset, workloads, command, timeout)
    except (columns.AllocatorError, catalog.CatalogError) as error:
        raise click.UsageError(str(error)) from None
    console = options.terminal()
    if list_:
        _list(console, available, works)
        return
    if all(allocator.missing for allocator in chosen):
        reasons = "; ".join(f"{allocator.name}: {allocator.missing}" for allocator in chosen)
        raise click.UsageError(f"none of the allocators can run here: {reasons}")
    seed = random.SystemRandom().randrange(2**31) if seed is None else seed
    folder = out or _new_folder()
    raise typer.Exit(_measure(console, chosen, works, preset, baseline, seed, pin, folder))


app.command("league")(league_command.league)


@app.command("compare")
def _compare(
    a: Path = typer.Argument(..., metavar="A.json", help="Before."),
    b: Path = typer.Argument(..., metavar="B.json", help="After."),
    fail_over: str = typer.Option("3%", metavar="PERCENT", help="What counts as a regression."),
    allocator: list[str] = typer.Option(
        [], metavar="NAME", help="Whose figures (default: brimful's).", show_default=False
    ),
    absolute: bool = typer.Option(
        False, help="Compare times as they are, not relative to the other allocators."
    ),
) -> None:
    """Compare two results; the exit code is a gate.

    0: fine. 1: a regression. 2: wrong usage. 3: too noisy to say.
    """
    interpreter.ensure()
    from . import compare

    raise typer.Exit(compare.main_compare(a, b, options.percent(fail_over), allocator, absolute))


@app.command("count")
def _count(
    out: Path = typer.Option(
        None,
        metavar="FILE",
        help="Where the result goes (default: build/bench/counted.json).",
        show_default=False,
    ),
    library: str = typer.Option(
        "", metavar="PATH", help="Instead of this checkout's.", show_default=False
    ),
) -> None:
    """Count the instructions of ten hot rows inside the library, for `compare`.

    Half a minute. Counts have hardly any noise, so `compare --fail-over 1%` of two such files sees a lost
    percent. Needs valgrind. Exit code: 0, or 1 when something cannot be counted.
    """
    interpreter.ensure()
    from . import counted

    default = Path(locate.project_root()) / "build" / "bench" / "counted.json"
    raise typer.Exit(counted.main_count(out or default, library))


@app.command("report")
def _report(
    file: Path = typer.Argument(..., metavar="RESULTS.json"),
    charts: Path = typer.Option(
        None, metavar="DIR", help="Also write every chart there, as SVG and PNG."
    ),
    chart: list[str] = typer.Option(
        [], metavar="KEY", help="Of the charts only this. May be repeated.", show_default=False
    ),
    baseline: str = typer.Option(
        "", metavar="NAME", help="Instead of the run's own.", show_default=False
    ),
    markdown: bool = typer.Option(False, "--markdown", help="Only print the tables as Markdown."),
    concurrency: bool = typer.Option(
        False, "--concurrency", help="Only print the figures about threads as Markdown."
    ),
    memory: bool = typer.Option(
        False, "--memory", help="Only print the figures about memory as Markdown."
    ),
    also: list[Path] = typer.Option(
        [],
        metavar="RESULTS.json",
        help="With --memory: only the means over the rows of all these results.",
        show_default=False,
    ),
) -> None:
    """Show a result again: the tables here, results.csv and report.html beside the file."""
    interpreter.ensure()
    from . import concurrency as threads
    from . import markdown as pages
    from . import memory as footprint
    from . import model, report, summary

    if also and not memory:
        raise click.UsageError("--also needs --memory")
    try:
        result = model.load(file)
        others = [model.load(other) for other in also]
    except model.ResultError as error:
        raise click.UsageError(str(error)) from None
    if baseline:
        result.options["baseline"] = baseline
    try:
        if concurrency:
            typer.echo(threads.page(summary.summarize(result)))
        elif also:
            typer.echo(footprint.means([summary.summarize(one) for one in (result, *others)]))
        elif memory:
            typer.echo(footprint.page(summary.summarize(result)))
        elif markdown:
            typer.echo(pages.page(summary.summarize(result)))
        else:
            _present(options.terminal(), result, file.parent)
    except summary.SummaryError as error:
        raise click.UsageError(str(error)) from None
    if charts is not None:
        report.export_charts(result, charts, keys=chart)


@app.command("study", context_settings=FORWARD)
def _study(context: typer.Context) -> None:
    """Measurements with a folder of their own (bench/studies/); alone it lists them."""
    from .study import command

    raise typer.Exit(command.main(context.args))


# --- arguments ------------------------------------------------------------------------------------


def _works(
    preset: catalog.Preset, workloads: str, command: list[str], timeout: float
) -> list[catalog.Work]:
    from . import catalog, programs

    if command:
        return [catalog.user_command(command, timeout)]
    if preset.name == "real":
        works = [catalog.Work(cell, 120, memory=True) for cell in programs.cells()]
    else:
        works = catalog.asked_for(preset, workloads)
    return catalog.select(works, workloads) if workloads else works


def _new_folder() -> Path:
    stamp = datetime.datetime.now().strftime("%Y-%m-%dT%H%M%S")
    return Path(locate.project_root()) / "build" / "bench" / "results" / stamp


# --- the run --------------------------------------------------------------------------------------


def _list(console: Console, allocators: Sequence[Allocator], works: Sequence[catalog.Work]) -> None:
    for allocator in allocators:
        state = allocator.missing and f"missing: {allocator.missing}"
        facts = [allocator.version, allocator.origin, allocator.mode, state]
        console.print(f"{allocator.name:20}", " · ".join(filter(None, facts)), soft_wrap=True)
    console.print()
    for work in works:
        state = work.cell.missing and f" (missing: {work.cell.missing})"
        console.print(f"{work.cell.name:26}", f"{work.cell.title}{state}", soft_wrap=True)


def _measure(
    console: Console,
    allocators: Sequence[Allocator],
    works: Sequence[catalog.Work],
    preset: catalog.Preset,
    baseline: str,
    seed: int,
    pin: str,
    folder: Path,
) -> int:
    from . import catalog, engine, machine, progress
    from .model import Result, Status

    try:
        folder.mkdir(parents=True, exist_ok=True)
        catalog.compile_programs([work.cell for work in works])
    except OSError as error:
        raise click.UsageError(f"--out {folder}: {error.strerror}") from None
    except catalog.CatalogError as error:
        console.print(f"brimful: {error}", markup=False)
        return 1
    result = Result(
        environment=machine.environment(),
        options={
            "preset": preset.name,
            "scale": preset.scale,
            "baseline": baseline,
            "seed": seed,
            "budget_s": preset.budget_s,
            "target": preset.target,
            "rounds": [preset.least_rounds, preset.most_rounds],
            "pinned": pin,
            "command_line": ["brimful", *sys.argv[1:]],
        },
        allocators=list(allocators),
        cells=[work.cell for work in works],
    )
    interrupted = False
    with progress.Display(console, preset.budget_s) as display:
        listener = _saving(display, result, folder / "results.json")
        try:
            engine.Engine(result, works, preset, baseline, seed, listener, pin or None).run()
        except KeyboardInterrupt:
            interrupted = True
    _present(console, result, folder)
    if interrupted:
        console.print("Interrupted: the figures are those measured until then.")
        return 130
    bad = any(sample.status not in (Status.OK, Status.MISSING) for sample in result.samples)
    return 1 if bad else 0


def _saving(display: engine.Listener, result: Result, path: Path) -> engine.Listener:
    """`display`, and the file is brought up to date now and then: a kill loses a minute at most."""
    from . import model

    saved_s = time.monotonic()

    def listen(step: engine.Progress) -> None:
        nonlocal saved_s
        display(step)
        if time.monotonic() - saved_s > SAVE_EVERY_S:
            saved_s = time.monotonic()
            try:
                model.save(result, path)
            except OSError:
                pass  # a full disk may have room again at the end, when a failure is told

    return listen


def _present(console: Console, result: Result, folder: Path) -> None:
    """Everything a result is shown as: three files and the tables in the terminal."""
    from . import league, model, report, summary

    try:
        model.save(result, folder / "results.json")
    finally:  # with a full disk, too: the figures took long
        tables = summary.summarize(result)
        league.show(tables, console)
    _write_csv(folder / "results.csv", summary.csv_rows(tables))
    report.write_report(result, folder / "report.html")
    console.print(f"\nReport: {folder / 'report.html'}", markup=False, soft_wrap=True)


def _write_csv(path: Path, rows: Sequence[dict[str, str | float | int]]) -> None:
    import csv

    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
