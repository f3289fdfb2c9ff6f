# SPDX-License-Identifier: MIT
"""What a study is: a folder of bench/studies/ whose study.py has a `STUDY` of this kind.

The framework owns the command line, the record, the pages and what happens on Ctrl-C; a study says
how a sample is taken and what its tables look like. `measure` puts what it has into the record as it
goes, so that a run which is ended early keeps what was measured until then.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import locate
from ..model import BenchError

if TYPE_CHECKING:
    from .pages import Place
    from .records import Record

ROOT = Path(locate.project_root())
STUDIES = ROOT / "bench" / "studies"
LIBRARY = ROOT / "build" / "release" / "libbrimful.so"
WORK = (
    ROOT / "build" / "study"
)  # programs, and records that prove nothing: short or interrupted ones
RESULTS = ROOT / "bench" / "results"

Data = dict[str, Any]


class StudyError(BenchError):
    """A study cannot be made here; the message says why."""


@dataclass(frozen=True)
class Option:
    """An option of one study, `--name VALUE`; its type is that of its value in a full run."""

    help: str
    full: int | float | str | bool
    short: int | float | str | bool | None = None  # with --short; None: the same


@dataclass(frozen=True)
class Run:
    """One measurement under way: what was asked for, and where the figures go."""

    study: Study
    options: Namespace  # short, seed, only (all parts if none were named), and the study's own
    record: Record

    def wants(self, part: str) -> bool:
        return part in self.options.only


@dataclass(frozen=True)
class Study:
    """A study; `name` is its folder's."""

    name: str
    title: str  # one line: what it asks
    time: str  # of a full run and of a short one, as in "15 minutes"
    short_time: str
    measure: Callable[[Run], None]
    show: Callable[[Record], Sequence[str]]  # Markdown that a person reads at the end of a run
    # Place → the lines that stand there in the page; "" is the place of a page that has but one. Gets
    # the newest kept record of each kind that there is.
    figures: Callable[[Place, Mapping[str, Path]], Mapping[str, Sequence[str]]] | None = None
    pages: tuple[str, ...] = ()  # that it writes, below the checkout
    parts: tuple[str, ...] = ()  # what --only takes
    kinds: tuple[str, ...] = ()  # of records, by how their names begin; none: the study's name
    options: Mapping[str, Option] = field(default_factory=dict)  # by name, as in max-rounds
    # Commands that bring what it needs (`make study` runs them), and those it can do without.
    needs: tuple[str, ...] = ("tools/install-deps.sh bench", "make lib")
    wants: tuple[str, ...] = ()
    plain: bool = False  # runs under Debian's python3 with rich alone, without build/venv
    keeps: bool = True  # whether a whole run goes to bench/results/ without --keep

    @property
    def folder(self) -> Path:
        return STUDIES / self.name

    def record_kinds(self) -> tuple[str, ...]:
        return self.kinds or (self.name,)
