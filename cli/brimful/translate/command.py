# SPDX-License-Identifier: MIT
"""The command line of `brimful translate`.

Exit codes: 0 all settings are known, 1 some are not, or have a value that means nothing, 2 wrong
usage or nothing to translate.
"""

from __future__ import annotations

import json
import os
import sys

import click
import typer

from .. import options
from . import rules

SCHEMA = "brimful-translate-1"


def translate(
    context: typer.Context,
    settings: list[str] = typer.Argument(None, metavar="[NAME=VALUE]...", show_default=False),
    as_json: bool = options.AS_JSON,
) -> None:
    """Say what settings of glibc, jemalloc, tcmalloc and mimalloc are in brimful, or why none is needed.

    A setting is a variable as these read it (MALLOC_CONF=dirty_decay_ms:5000, GLIBC_TUNABLES=…), one
    entry of it (dirty_decay_ms=5000), or a parameter of mallopt (M_ARENA_MAX=2). Without any: what stands
    in the environment. The last line is to be pasted.
    """
    pairs = [_pair(context, word) for word in settings or []] or rules.settings_in(dict(os.environ))
    if not pairs:
        raise click.UsageError(
            "no setting is named, and the environment has none of another allocator", context
        )
    answers = [answer for name, value in pairs for answer in rules.translate(name, value)]
    conf = rules.combine(answers)
    if as_json:
        found = [vars(answer) for answer in answers]
        print(json.dumps({"schema": SCHEMA, "settings": found, "conf": conf}))
    else:
        _print(answers, conf)
    raise typer.Exit(0 if all(answer.is_known for answer in answers) else 1)


def _pair(context: typer.Context, word: str) -> tuple[str, str]:
    name, mark, value = word.partition("=")
    if not mark:
        raise click.UsageError(f"{word}: a setting is NAME=VALUE", context)
    return name, value


def _print(answers: list[rules.Answer], conf: str) -> None:
    widest = max(len(f"{answer.setting}={answer.value}") for answer in answers)
    for answer in answers:
        what = answer.options or ("nothing" if answer.is_known else "?")
        setting = f"{answer.setting}={answer.value}"
        sys.stdout.write(f"{setting:<{widest}}  {what}: {answer.says}\n")
    sys.stdout.write(f'BRIMFUL_CONF="{conf}"\n' if conf else "No option is needed.\n")
