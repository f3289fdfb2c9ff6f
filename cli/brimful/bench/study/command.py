# SPDX-License-Identifier: MIT
"""The command line of the studies: `brimful bench study [NAME [OPTION]...]`.

A study's own options come from its study.py, so the parser is made when its name is known, and typer
only passes the words on.

Exit codes: 0 all measured, or the pages are up to date; 1 something was not measured, or a page is
out of date; 2 wrong usage; 130 interrupted (what was measured until then is shown and kept in build/).
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import interpreter, machine
from ..model import BenchError
from . import pages, records, registry
from .model import RESULTS, ROOT, WORK, Option, Run, Study, StudyError
from .records import Record

USAGE = "brimful bench study [NAME [OPTION]...]"
ABOUT = """\
Measurements that are no rows of the bench, each in a folder bench/studies/NAME/ with its programs, its goals
and what it writes into the pages of docs/. Without NAME, or with --list alone, all are listed.

  brimful bench study NAME             measure; a whole run is kept in bench/results/
  brimful bench study NAME --short     see that all of it works, in less time; it proves nothing, is not kept
  brimful bench study NAME --only X,Y  only these parts
  brimful bench study NAME --list      its parts, the pages it writes, what it needs
  brimful bench study NAME --show      show the newest kept run again
  brimful bench study NAME --write     write its figures into the pages, from the newest kept run
  brimful bench study NAME --check     only say whether the pages are up to date (exit code 1: they are not)
  brimful bench study NAME --help      all options of this study

`make study STUDY=NAME` first builds and installs what the study needs.
"""


def main(words: Sequence[str]) -> int:
    """Runs a command line without `brimful bench study`; returns the exit code."""
    if not words or words[0].startswith("-"):
        return _overview(list(words))
    try:
        study = registry.load(words[0])
        options = _parsed(study, words[1:])
        return _run(study, options)
    except BenchError as error:
        print(f"brimful: {error}", file=sys.stderr)
        return 2 if words[0] not in registry.names() else 1


def _overview(words: list[str]) -> int:
    if words in (["--help"], ["-h"]):
        print(f"Usage: {USAGE}\n\n{ABOUT}")
    elif words not in ([], ["--list"]):
        print(f"brimful: {words[0]!r} without a study: {USAGE}", file=sys.stderr)
        return 2
    studies = [registry.load(name) for name in registry.names()]
    print(f"{'study':14}{'time':16}{'--short':14}what it asks (and the page it writes)")
    for study in studies:
        where = f" ({', '.join(study.pages)})" if study.pages else ""
        print(f"{study.name:14}{study.time:16}{study.short_time:14}{study.title}{where}")
    return 0


def _parsed(study: Study, words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"brimful bench study {study.name}",
        description=f"{study.title} Takes {study.time}; --short {study.short_time}.",
        epilog=f"Everything about it is in bench/studies/{study.name}/.",
    )
    add = parser.add_argument
    add("--short", action="store_true", help=f"{study.short_time}; proves nothing, stays in build/")
    if study.parts:
        add("--only", default="", metavar="X,Y", help=f"some of: {', '.join(study.parts)}")
    add("--keep", action="store_true", help="keep the raw data in bench/results/ in any case")
    add("--list", action="store_true", help="show parts, pages and needs, and end")
    add("--prepare", action="store_true", help="first install and build what it needs")
    add("--show", action="store_true", help="only show the newest kept run")
    if study.figures is not None:
        add("--write", action="store_true", help="only write the pages, from the newest kept run")
        add("--check", action="store_true", help="only say whether the pages are up to date")
    add(
        "--file",
        type=Path,
        action="append",
        default=[],
        metavar="RECORD.json",
        help="for these three, in place of the newest of its kind",
    )
    add("--seed", type=int, metavar="INT", help="of orders and random numbers (default: drawn)")
    for name, option in study.options.items():
        _add_option(parser, name, option)
    options = parser.parse_args(words)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(2**31)
    for name, option in study.options.items():
        key = name.replace("-", "_")
        if getattr(options, key) is None:
            short = options.short and option.short is not None
            setattr(options, key, option.short if short else option.full)
    named = [part for part in getattr(options, "only", "").split(",") if part]
    if unknown := [part for part in named if part not in study.parts]:
        parser.error(f"no part {unknown[0]!r}; there are: {', '.join(study.parts)}")
    options.only = named or list(study.parts)
    return options


def _add_option(parser: argparse.ArgumentParser, name: str, option: Option) -> None:
    if isinstance(option.full, bool):
        parser.add_argument(f"--{name}", action="store_true", default=None, help=option.help)
        return
    usual = f" (default: {option.full or 'none'})".replace("%", "%%")
    parser.add_argument(
        f"--{name}",
        type=type(option.full),
        metavar=type(option.full).__name__.upper(),
        help=option.help + usual,
    )


def _run(study: Study, options: argparse.Namespace) -> int:
    if options.list:
        return _describe(study)
    if options.prepare:
        _prepare(study)
    if not study.plain:
        interpreter.ensure()
    if study.figures is not None and (options.write or options.check):
        return write(study, options.file, check=options.check)
    if options.show:
        for path in _files(study, options.file).values():
            if not study.kinds:
                _print(study, records.load(path))
            else:
                subprocess.run([str(ROOT / "brimful"), "bench", "report", str(path)])
        return 0
    return measure(study, options)


def _describe(study: Study) -> int:
    print(f"{study.name}: {study.title}\n")
    for what, found in (
        ("folder", [records.shown(study.folder)]),
        ("parts", study.parts),
        ("pages", study.pages),
        ("kept runs", [records.shown(path) for path in _kept(study)]),
        ("needs", [*study.needs, *(f"{one} (can do without)" for one in study.wants)]),
    ):
        print(f"{what:11}", f"\n{'':12}".join(found) or "none")
    return 0


def _kept(study: Study) -> list[Path]:
    return sorted(path for kind in study.record_kinds() for path in RESULTS.glob(f"{kind}-[0-9]*"))


def _prepare(study: Study) -> None:
    """Installs and builds. Raises StudyError when something needed cannot be had."""
    for command in (*study.needs, *study.wants):
        sys.stdout.flush()
        if subprocess.run(command, shell=True, cwd=ROOT).returncode == 0:
            continue
        if command in study.needs:
            raise StudyError(f"{study.name} needs `{command}`, which failed")
        print(f"`{command}` failed: what needs it is left out", file=sys.stderr)


# --- measuring ------------------------------------------------------------------------------------


def measure(study: Study, options: argparse.Namespace) -> int:
    """One run: measured, saved, shown."""
    own = ["short", "only", "seed", *(name.replace("-", "_") for name in study.options)]
    record = Record(study.name, machine.environment(), {key: getattr(options, key) for key in own})
    # Told to end, it does so as on Ctrl-C: what was measured is kept, what was changed is put back.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    interrupted = False
    try:
        study.measure(Run(study, options, record))
    except KeyboardInterrupt:
        interrupted, record.finished = True, False
    except (BenchError, OSError, subprocess.SubprocessError) as error:
        record.finished = False
        record.fail("all that was still to come", error)
    finally:
        signal.signal(signal.SIGTERM, before)
    if record.results:
        _print(study, record)
    for what, reason in record.not_measured.items():
        print(f"{what}: not measured: {reason}")
    if interrupted:
        print("Interrupted: the figures are those measured until then.")
    if record.results and not study.kinds:  # those of other kinds have saved their own
        _save(study, options, record)
    if interrupted:
        return 130
    return 1 if record.not_measured or not record.results else 0


def _print(study: Study, record: Record) -> None:
    for line in pages.aligned(study.show(record)):
        print(line)


def _save(study: Study, options: argparse.Namespace, record: Record) -> None:
    whole = record.finished and not options.short and options.only == list(study.parts)
    kept = options.keep or (whole and study.keeps)
    path = (RESULTS if kept else WORK) / records.new_name(study.name)
    records.save(record, path)
    print(f"Raw data: {records.shown(path)}")
    if kept and study.pages:
        command = f"./brimful bench study {study.name} --write"
        print(f"`{command}` writes the figures of {', '.join(study.pages)}")


def _files(study: Study, named: Sequence[Path]) -> dict[str, Path]:
    """Kind → its newest kept record, or the one that was named. Raises StudyError."""
    files = records.newest(study.record_kinds())
    for path in named:
        kind = next((one for one in study.record_kinds() if path.name.startswith(f"{one}-")), None)
        if kind is None:
            kinds = ", ".join(study.record_kinds())
            raise StudyError(f"{path}: the names of this study's records begin with: {kinds}")
        files[kind] = path.absolute()
    if not files:
        raise StudyError(f"no run of {study.name} in bench/results/")
    return files


# --- pages ----------------------------------------------------------------------------------------


def write(study: Study, named: Sequence[Path], *, check: bool) -> int:
    """Writes the study's figures into its pages, or says whether they are there. Raises StudyError."""
    assert study.figures is not None
    files = _files(study, named)
    stale = []
    for name in study.pages:
        place = pages.Place(ROOT / name)
        text = place.page.read_text()
        made = {place.page: pages.filled(text, study.name, study.figures(place, files))}
        for path, content in (made | place.drawn).items():
            if not path.exists() or path.read_text() != content:
                stale.append(path)
                if not check:
                    path.write_text(content)
        used = ", ".join(path.name for path in files.values())
        print(f"{name}: figures of {used}")
    for path in stale:
        print(f"{records.shown(path)} {'is out of date' if check else 'was written'}")
    return 1 if check and stale else 0
