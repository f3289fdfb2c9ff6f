# SPDX-License-Identifier: MIT
"""What `brimful doctor` says: findings, as text and as JSON.

A *problem* keeps brimful out of a program, or memory from it; a *note* costs time or memory, or is
worth knowing. Each says what was seen, what that means, and the command that mends it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = "brimful-doctor-1"
PROBLEM = "problem"
NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be; `kind` is its name for programs."""

    level: str
    kind: str
    title: str
    seen: str
    means: str
    mend: str


@dataclass(frozen=True)
class Examined:
    """One process, or one program that was not started (pid 0)."""

    pid: int
    program: str
    runs_brimful: bool
    front_end: str | None
    findings: tuple[Finding, ...]


def as_json(examined: list[Examined]) -> dict[str, Any]:
    """The form `doctor` of share/schema/brimful.schema.json."""
    processes = [asdict(one) for one in examined]
    return {"schema": SCHEMA, "processes": processes}


def as_text(examined: list[Examined]) -> str:
    """For a terminal; of each process its problems first."""
    lines: list[str] = []
    for one in examined:
        name = f"{one.program} ({one.pid})" if one.pid else one.program
        if not one.findings:
            lines.append(f"{name}: {_praise(one)}")
        for finding in sorted(one.findings, key=lambda finding: finding.level != PROBLEM):
            lines += [
                f"{finding.level}: {name}: {finding.title}",
                f"  seen:  {finding.seen}",
                f"  means: {finding.means}",
                f"  do:    {finding.mend}",
            ]
    return "\n".join(lines) + "\n"


def has_problem(examined: list[Examined]) -> bool:
    """Whether anything found is a problem."""
    return any(finding.level == PROBLEM for one in examined for finding in one.findings)


def _praise(one: Examined) -> str:
    if not one.runs_brimful:
        return "nothing found"
    front_end = f", front end {one.front_end}" if one.front_end else ""
    return f"runs brimful{front_end}; nothing found"
