# SPDX-License-Identifier: MIT
"""Entry point: `run` goes straight to its own small parser, every other word goes through typer.

Why two ways in: importing typer and rich costs about 120 ms, ten times what python itself needs to
start, and `brimful run -- COMMAND` must not add that to COMMAND. Help is still typer's for every
subcommand, and tests/cli checks that both parsers know the same options.
"""

from __future__ import annotations

import sys


def main(arguments: list[str]) -> int:
    """Run one command line (without the program's own name) and return its exit code."""
    if arguments[:1] == ["run"]:
        from . import run

        if not run.wants_help(arguments[1:]):
            return run.run(arguments[1:])
    from . import app

    return app.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
