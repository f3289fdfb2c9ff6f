# SPDX-License-Identifier: MIT
"""What a study measured: one JSON file, in the envelope that all files of the bench share.

Schema, study, environment, options, allocators, what could not be measured, and whether the run came
to its end are the same in every file; `results` is the study's own. docs/bench-format.md describes it.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field
from pathlib import Path

from ..model import SCHEMA, Allocator, write
from .model import RESULTS, ROOT, Data, StudyError


@dataclass
class Record:
    """The content of a file."""

    study: str
    environment: Data
    options: Data
    allocators: list[Allocator] = field(default_factory=list)
    results: Data = field(default_factory=dict)
    not_measured: dict[str, str] = field(default_factory=dict)  # what → why
    finished: bool = True

    def fail(self, what: str, reason: object) -> None:
        self.not_measured[what] = str(reason)

    def gaps(self) -> list[str]:
        """What a page says of it."""
        return [
            line
            for what, why in self.not_measured.items()
            for line in (f"Not measured: {what}: {why}", "")
        ]


def new_name(kind: str) -> str:
    """The name of a file of this moment; names of a kind sort by time."""
    return f"{kind}-{datetime.datetime.now():%Y-%m-%dT%H%M}.json"


def save(record: Record, path: Path) -> None:
    """See model.write."""
    allocators = [vars(one) for one in record.allocators]
    write({"schema": SCHEMA, **vars(record), "allocators": allocators}, path)


def load(path: Path) -> Record:
    """Raises StudyError."""
    try:
        data = json.loads(path.read_text())
        if data.pop("schema") != SCHEMA:
            raise ValueError("another schema")
        data["allocators"] = [Allocator(**one) for one in data["allocators"]]
        return Record(**data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StudyError(f"{path} is no record of a study: {error}") from None


def newest(kinds: tuple[str, ...]) -> dict[str, Path]:
    """Kind → its newest kept file, of those that have one."""
    found = {kind: sorted(RESULTS.glob(f"{kind}-[0-9]*.json"))[-1:] for kind in kinds}
    return {kind: paths[0] for kind, paths in found.items() if paths}


def shown(path: Path) -> str:
    """A path as the reader of a terminal or a page knows it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
