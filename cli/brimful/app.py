# SPDX-License-Identifier: MIT
"""The typer application: help for every subcommand, and those that may take their time."""

from __future__ import annotations

import os
import subprocess

import click
import typer

from . import __version__, locate, options, terminal
from . import inspect as inspect_command
from . import leaks as leaks_command
from . import run as run_command
from .bench import command as bench_command
from .doctor import command as doctor_command
from .export import command as export_command
from .prof import command as prof_command
from .top import command as top_command
from .translate import command as translate_command

PYTHON = "/usr/bin/python3"
WITH_SHORT_HELP = {"help_option_names": ["--help", "-h"]}

app = typer.Typer(
    name="brimful",
    help="A drop-in malloc: run programs under it and measure it.",
    no_args_is_help=True,
    add_completion=False,
    context_settings=WITH_SHORT_HELP,
)
app.add_typer(bench_command.app, name="bench")
app.command("top", context_settings=WITH_SHORT_HELP, no_args_is_help=False)(top_command.top)
app.command("doctor", context_settings=WITH_SHORT_HELP, no_args_is_help=False)(
    doctor_command.doctor
)
app.command("translate", context_settings=WITH_SHORT_HELP, no_args_is_help=False)(
    translate_command.translate
)
app.command("prof", context_settings=WITH_SHORT_HELP, no_args_is_help=False)(prof_command.prof)


def main(arguments: list[str]) -> int:
    """Run the application on `arguments` and return its exit code."""
    return terminal.guarded("brimful", lambda: _main(arguments))


def _main(arguments: list[str]) -> int:
    command = typer.main.get_command(app)
    users: list[str] | None = None
    if arguments[:1] in (["bench"], ["prof"], ["leaks"], ["doctor"]) and "--" in arguments:
        # A group of commands would take the first word of `bench -- COMMAND` for a subcommand, and
        # `prof -- 1234` is a command of that name, not a process.
        at = arguments.index("--")
        arguments, users = arguments[:at], arguments[at + 1 :]
    try:
        result = command.main(args=arguments, prog_name="brimful", standalone_mode=False, obj=users)
    except click.exceptions.Abort:
        return terminal.EXIT_INTERRUPTED
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "brimful"
        typer.echo(
            f"brimful: {error.format_message().rstrip('.')} (see `{where} --help`)", err=True
        )
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return int(result or 0)


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    typer.echo(f"brimful {__version__}")
    typer.echo(f"library: {describe_library(locate.default_library())}")
    raise typer.Exit


def describe_library(path: str) -> str:
    """Path and self-declared version of the library at `path`, or what is wrong with it.

    The question is put to a fresh process with the library preloaded, the way users load it.
    """
    try:
        locate.library(None)
    except locate.LibraryError as error:
        return str(error)
    question = (
        "import ctypes; f = ctypes.CDLL(None).brimful_version; "
        "f.restype = ctypes.c_char_p; print(f().decode())"
    )
    environment = os.environ | {"LD_PRELOAD": locate.preloadable(path)}
    answer = subprocess.run(
        [PYTHON, "-I", "-c", question], env=environment, capture_output=True, text=True, timeout=20
    )
    if answer.returncode != 0:
        return f"{path} (does not answer: exit code {answer.returncode})"
    return f"{path} (version {answer.stdout.strip()})"


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show versions and exit."
    ),
) -> None:
    pass


@app.command(
    "run",
    context_settings=WITH_SHORT_HELP | {"allow_interspersed_args": False},
    no_args_is_help=True,
)
def _run(
    command: list[str] = typer.Argument(..., metavar="-- COMMAND [ARGUMENT]..."),
    conf: list[str] = options.CONF,
    guards: str = typer.Option(
        None,
        "--guards",
        metavar="all|off|N",
        show_default=False,
        help="How many small objects are guarded, so that overflows and uses after free are found.",
    ),
    lib: str = options.LIBRARY,
) -> None:
    """Run COMMAND with libbrimful.so preloaded.

    The exit code is COMMAND's; 125 if brimful itself failed, 126 if COMMAND cannot be executed,
    127 if it was not found.
    """
    settings = list(conf)
    if guards is not None:
        try:
            settings.append(f"guards:{run_command.guards(guards)}")
        except run_command.UsageError as error:
            raise typer.BadParameter(str(error)) from error
    raise typer.Exit(run_command.start(settings, lib, list(command)))


@app.command("leaks", context_settings=WITH_SHORT_HELP, no_args_is_help=False)
def _leaks(
    context: typer.Context,
    what: list[str] = typer.Argument(
        None, metavar="PID | CORE | diff A.json B.json | -- COMMAND..."
    ),
    as_json: bool = options.AS_JSON,
    possibly: bool = typer.Option(
        False, "--possibly", help="List what only pointers to the inside of objects lead to."
    ),
    contents: bool = typer.Option(
        False, "--contents", help="Show the first 64 bytes of one object of each group."
    ),
    groups: int = typer.Option(20, "--groups", min=0, help="List so many groups."),
    addresses: int = typer.Option(
        3, "--addresses", min=0, help="Name so many objects of each group."
    ),
    suppressions: str = typer.Option(
        None,
        "--suppressions",
        metavar="FILE",
        show_default=False,
        help="Leave out what its rules match.",
    ),
    once: bool = typer.Option(
        False, "--once", help="Look once only, at a process that stands still."
    ),
    lib: str = options.LIBRARY,
) -> None:
    """Say what a program has lost: objects that nothing in it leads to any more.

    Of a running process, of a core file, or of COMMAND's processes when they exit. The exit code is
    1 when something is lost (or grew, for diff).
    """
    words = list(what or [])
    if words[:1] == ["diff"]:
        if len(words) != 3:
            raise click.UsageError("diff takes two reports, as --json writes them", context)
        raise typer.Exit(leaks_command.diff(words[1], words[2], as_json))
    shown = [
        *(["--possibly"] if possibly else []),
        *(["--contents"] if contents else []),
        *["--groups", str(groups), "--addresses", str(addresses)],
        *(["--suppressions", suppressions] if suppressions else []),
    ]
    command: list[str] = context.obj or []
    if bool(command) == bool(words) or len(words) > 1:
        raise click.UsageError("one PID, one core file, or -- COMMAND is wanted", context)
    if command:
        raise typer.Exit(leaks_command.watch(command, lib, shown, as_json))
    shown += [*(["--json"] if as_json else []), *(["--once"] if once else [])]
    raise typer.Exit(leaks_command.look(words[0], shown))


@app.command("inspect", context_settings=WITH_SHORT_HELP)
def _inspect(
    target: str = typer.Argument(..., metavar="PID | CORE"),
    address: str = typer.Option(
        None, "--address", metavar="0x…", show_default=False, help="Say what lies at this address."
    ),
    as_json: bool = options.AS_JSON,
    svg: str = typer.Option(
        None,
        "--svg",
        metavar="FILE",
        show_default=False,
        help="Write the picture there (-: stdout).",
    ),
    html: str = typer.Option(
        None, "--html", metavar="FILE", show_default=False, help="The same as a page with tables."
    ),
    biggest: int = typer.Option(10, "--biggest", min=0, help="Name so many of the biggest blocks."),
) -> None:
    """Show what the heap of a running process or a core holds, or what lies at an address.

    The process is not stopped and runs nothing for it. What changed while it was read is said to be
    moving.
    """
    if address is None:
        raise typer.Exit(inspect_command.heap(target, biggest, svg, html, as_json))
    if svg is not None or html is not None:
        raise click.UsageError("--address goes without --svg and --html")
    try:
        int(address, 0)
    except ValueError:
        raise click.UsageError(f"--address {address}: no number, such as 0x7f0000370040") from None
    raise typer.Exit(inspect_command.address(target, hex(int(address, 0)), as_json))


@app.command("export", context_settings=WITH_SHORT_HELP)
def _export(
    pids: list[int] = typer.Argument(None, metavar="[PID]...", show_default=False, min=1),
    listen: str = typer.Option(
        export_command.DEFAULT_LISTEN,
        "--listen",
        metavar="ADDRESS:PORT",
        help="Where to answer; port 0: any that is free, which is printed.",
    ),
    once: bool = typer.Option(False, "--once", help="Print the metrics and exit."),
) -> None:
    """Serve the heaps of running processes as metrics for Prometheus, on /metrics.

    Of every process that runs brimful and that this user may look at, or of those named. They are
    read from outside when somebody asks: they run nothing for it and are not stopped.
    """
    raise typer.Exit(export_command.export(listen, once, list(pids or [])))
