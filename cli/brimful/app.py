# SPDX-License-Identifier: MIT
"""The typer application: help for every subcommand, and those that may take their time."""

from __future__ import annotations

import os
import subprocess

import click
import typer

from . import __version__, locate, terminal
from . import run as run_command
from .bench import command as bench_command
from .prof import command as prof_command

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
app.command("prof", context_settings=WITH_SHORT_HELP, no_args_is_help=False)(prof_command.prof)


def main(arguments: list[str]) -> int:
    """Run the application on `arguments` and return its exit code."""
    return terminal.guarded("brimful", lambda: _main(arguments))


def _main(arguments: list[str]) -> int:
    command = typer.main.get_command(app)
    users: list[str] | None = None
    if arguments[:1] in (["bench"], ["prof"]) and "--" in arguments:
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
    conf: list[str] = typer.Option(
        [],
        "--conf",
        metavar='"KEY:VALUE,..."',
        show_default=False,
        help="Options of the library, as in BRIMFUL_CONF (see brimful(1)). May be repeated.",
    ),
    lib: str = typer.Option(
        None,
        "--lib",
        metavar="PATH",
        show_default=False,
        help="Library to preload (default: build/release/libbrimful.so of this checkout).",
    ),
) -> None:
    """Run COMMAND with libbrimful.so preloaded.

    The exit code is COMMAND's; 125 if brimful itself failed, 126 if COMMAND cannot be executed,
    127 if it was not found.
    """
    raise typer.Exit(run_command.start(list(conf), lib, list(command)))
