# SPDX-License-Identifier: MIT
"""What a league has measured so far, on disk: it can be stopped anywhere, and goes on from there.

    build/league/head.json        who is compared, on which machine, with which seed; written once
    build/league/rows/NAME.json   one row: its samples of whole rounds, and what they have cost
    build/league/lock             held by the league that measures now

Every file is a result of the bench (see model) and is replaced in one step after each round, so a
kill or a reboot costs the round that was running and nothing else; there is no file with half of a
round in it, and no list of what is done that could disagree with the rows.

Samples of two machines, or of two builds of a library, must never meet in one row. So whoever goes on
is compared with the head, and any difference that a figure depends on is refused. Another commit
with the same libraries is only said. A row whose program, script or arguments have changed begins
anew; the others stay.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .. import locate
from . import model
from .gate import CONDITIONS
from .model import Cell, Result

HEAD = "head.json"
ROWS = "rows"
LOCK = "lock"
# The memory that a virtual machine is given differs a little from boot to boot.
MEMORY_TOLERANCE = 0.02


class CheckpointError(Exception):
    """What is on disk cannot be gone on with; the message says why."""


@dataclass
class Kept:
    """One row as far as it is measured. `result` has this row's samples and nothing else."""

    cell: Cell
    programs: str  # SHA-256 of the files that its command names
    result: Result
    rounds: int = 0  # whole ones
    cost_s: float = 0.0  # that they took together
    sat_out: list[str] = field(default_factory=list)  # too slow to be in the later rounds

    @property
    def cost_per_round_s(self) -> float:
        return self.cost_s / self.rounds if self.rounds else 0.0


class Folder:
    """A league's files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def held(self) -> Iterator[None]:
        """This league measures now, and no other one in this folder. Raises CheckpointError."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CheckpointError(f"another league is measuring into {self.path}") from None
            yield

    def head(self) -> Result | None:
        """The head, or None of a league that has not begun. Raises CheckpointError."""
        path = self.path / HEAD
        if not path.exists():
            return None
        try:
            return model.load(path)
        except model.ResultError as error:
            raise CheckpointError(f"{error}; --restart begins anew") from None

    def save_head(self, head: Result) -> None:
        model.save(head, self.path / HEAD)

    def forget(self) -> None:
        """Remove what was measured. The lock stays: it is held."""
        (self.path / HEAD).unlink(missing_ok=True)
        shutil.rmtree(self.path / ROWS, ignore_errors=True)

    def load(self, cell: Cell) -> tuple[Kept, str]:
        """The row, and why it begins anew if something is there that cannot be used, or ""."""
        programs = files_of(cell)
        fresh = Kept(cell, programs, Result({}, {}, [], [cell]))
        path = self._file(cell.name)
        if not path.exists():
            return fresh, ""
        try:
            found = model.load(path)
            kept = Kept(
                cell,
                programs,
                dataclasses.replace(found, cells=[cell]),
                int(found.options["rounds"]),
                float(found.options["cost_s"]),
                list(found.options["sat_out"]),
            )
            was, programs_then = found.cells[0], found.options["programs"]
        except (model.ResultError, KeyError, TypeError, ValueError, IndexError):
            return fresh, "its file is damaged"
        if programs_then != programs:
            return fresh, "its program or script has changed"
        if _written(was) != _written(cell):
            return fresh, "its description has changed"
        return kept, ""

    def save(self, row: Kept) -> None:
        row.result.options = {
            "rounds": row.rounds,
            "cost_s": row.cost_s,
            "sat_out": row.sat_out,
            "programs": row.programs,
        }
        model.save(row.result, self._file(row.cell.name))

    def _file(self, name: str) -> Path:
        return self.path / ROWS / f"{name}.json"


def files_of(cell: Cell) -> str:
    """One checksum for the program of a row and every script and input that its command names."""
    found = hashlib.sha256()
    for word in cell.command:
        path = Path(word)
        if path.is_absolute() and path.is_file():
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _written(cell: Cell) -> str:
    """The cell as a file says it: paths inside the checkout are relative there."""
    return json.dumps(dataclasses.asdict(cell)).replace(f"{locate.project_root()}/", "")


def differences(then: Result, now: Result) -> list[str]:
    """What a figure depends on and is not as it was: with these samples none of now may be mixed."""
    found = []
    before = {one.name: one for one in then.allocators}
    after = {one.name: one for one in now.allocators}
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            found.append(f"allocator {name}: {'new' if old is None else 'not there now'}")
        elif old.missing != new.missing:
            found.append(f"allocator {name}: {new.missing or 'there now, and was missing'}")
        elif old.sha256 != new.sha256:
            found.append(f"{name}: another library ({old.sha256[:12]} then, {new.sha256[:12]} now)")
        elif (old.settings, old.mode) != (new.settings, new.mode):
            found.append(f"{name}: another mode ({old.mode or old.settings} then)")
    for key, meaning in CONDITIONS.items():
        was, is_now = then.environment.get(key), now.environment.get(key)
        if was != is_now and not (key == "memory_mib" and _about(was, is_now)):
            found.append(f"another {meaning}: {was} then, {is_now} now")
    for key in ("baseline", "pinned"):
        was, is_now = then.options.get(key), now.options.get(key)
        if was != is_now:
            found.append(f"another {key}: {was or 'none'} then, {is_now or 'none'} now")
    return found


def _about(one: object, other: object) -> bool:
    if not isinstance(one, (int, float)) or not isinstance(other, (int, float)):
        return False
    return abs(one - other) <= MEMORY_TOLERANCE * max(one, other)
