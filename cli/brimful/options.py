# SPDX-License-Identifier: MIT
"""Options that several subcommands have: declared once, so that they are called and explained alike."""

from __future__ import annotations

import typer

CONF = typer.Option(
    [],
    "--conf",
    metavar='"KEY:VALUE,..."',
    show_default=False,
    help="Options of the library for COMMAND, as in BRIMFUL_CONF (see brimful(1)). May be repeated.",
)
LIBRARY = typer.Option(
    None,
    "--lib",
    metavar="PATH",
    show_default=False,
    help="Library to preload for COMMAND (default: build/release/libbrimful.so of this checkout).",
)
AS_JSON = typer.Option(False, "--json", help="All of it, for programs.")
