#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Readers of the command against what others write: results of the bench, reports of leaks, lock counters of a program
that was killed while it printed, control groups. hypothesis makes the texts; what it finds it makes short.

    python_readers.py [--seconds N]    other texts each time
    python_readers.py --fixed          the same texts each time, once

A reader answers, or raises the one exception that it says it raises, and no other. Exit codes: 0; 1, a
reader broke its word; 77, hypothesis is missing.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "cli"), str(ROOT / "tests/bench")]

try:
    from hypothesis import HealthCheck, configuration, given, settings
    from hypothesis import strategies as some
except ImportError:
    print("python3-hypothesis is not installed")
    sys.exit(77)

import fake_results
from brimful import leaks
from brimful.bench import contention, launch, machine, model

EXAMPLES = 50  # between two looks at the clock

numbers = some.integers() | some.floats() | some.sampled_from([10**400, -(10**400), 2**64, 0])
json_values = some.recursive(
    some.none() | some.booleans() | numbers | some.text(max_size=8),
    lambda inner: (
        some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
# What is no JSON, or so deep that nobody can want it.
texts = some.text(max_size=40) | some.sampled_from(["[" * 100_000, '{"a":' * 100_000, "\ufeff{}"])


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in `value` with each of its keys."""
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    found = [(value, key) for key in keys]
    for key in keys:
        found += places(value[key])
    return found


@some.composite
def damaged(draw: Callable[..., Any], whole: Any) -> str:
    """`whole` with a few values that are others, or gone; as JSON."""
    value = copy.deepcopy(whole)
    for _ in range(draw(some.integers(1, 3))):
        container, key = draw(some.sampled_from(places(value) or [({}, None)]))
        if isinstance(container, dict) and draw(some.booleans()):
            container.pop(key, None)
        elif key is not None:
            container[key] = draw(json_values)
    return json.dumps(value)


def whole_result() -> Any:
    """A small result that is right."""
    made = fake_results.constructed({"a": {"glibc": 1.0, "brimful": 0.9}}, rounds=2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        model.save(made, path)
        return json.loads(path.read_text())


LEAKS = {
    "schema": leaks.SCHEMA,
    "program": "/x",
    "lost": {"count": 1, "bytes": 2},
    "groups": [
        {
            "kind": "lost",
            "size": 16,
            "type": "",
            "stack": ["f (m)"],
            "count": 1,
            "bytes": 16,
            "behind": {"count": 1, "bytes": 16},
        }
    ],
}
COUNTERS = {"locks": {"heap": dict.fromkeys(contention.COUNTERS, 3)}}


class Readers:
    """One method for each reader; each takes what hypothesis made."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "file"

    def result(self, text: str) -> None:
        self.path.write_text(text, errors="replace")
        try:
            model.load(self.path)
        except model.ResultError as error:
            assert str(self.path) in str(error), "a message names the file"

    def leaks_report(self, text: str) -> None:
        self.path.write_text(text, errors="replace")
        try:
            report = leaks.load(str(self.path))
            leaks.changes(report, report)
        except leaks.NoReport as error:
            assert str(self.path) in str(error), "a message names the file"

    def counters(self, text: str) -> None:
        try:
            contention._locks(text)
        except contention.UnreadableError:
            pass

    def workload_line(self, text: str) -> None:
        self.path.write_text(f'noise\n"workload"{text}\n{text}"workload"\n', errors="replace")
        assert isinstance(launch.find_line(self.path), dict)

    def control_group(self, texts: tuple[str, str]) -> None:
        files = {"/proc/self/cgroup": texts[0], "/proc/self/mountinfo": texts[1]}
        with mock.patch.object(Path, "read_text", lambda path: files.get(str(path), "")):
            for _, _folder in zip(range(100), machine._cgroup_folders(), strict=False):
                pass


def readers(folder: Path, fixed: bool) -> dict[str, Callable[[], None]]:
    """By name, a function that tries EXAMPLES texts."""
    reader = Readers(folder)
    any_seed = settings(
        max_examples=EXAMPLES,
        derandomize=fixed,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )

    def made(method: Callable[[Any], None], strategy: Any) -> Callable[[], None]:
        checked: Callable[[], None] = any_seed(given(strategy)(lambda drawn: method(drawn)))
        return checked

    lines = some.lists(
        some.sampled_from(["0::/a/b", "4:cpu,memory:/x", "", ":", "9:name=systemd:/", "1:a"])
        | some.text(max_size=12),
        max_size=4,
    ).map("\n".join)
    mounts = some.lists(
        some.sampled_from(
            [
                "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
                "31 23 0:27 /x /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory",
                "1 2",
                "- a",
            ]
        )
        | some.text(max_size=12),
        max_size=4,
    ).map("\n".join)
    return {
        "results.json": made(reader.result, damaged(whole_result()) | texts),
        "leaks --json": made(reader.leaks_report, damaged(LEAKS) | texts),
        "lock counters": made(reader.counters, damaged(COUNTERS) | texts),
        "line of a workload": made(reader.workload_line, damaged(COUNTERS) | texts),
        "control groups": made(reader.control_group, some.tuples(lines, mounts)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--fixed", action="store_true", help="the same texts each time, once")
    arguments = parser.parse_args()
    examples = 0
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        configuration.set_hypothesis_home_dir(folder)
        everything = readers(Path(folder), arguments.fixed)
        end = time.monotonic() + (0 if arguments.fixed else arguments.seconds)
        while not examples or (time.monotonic() < end and not broken):
            for name, check in everything.items():
                try:
                    check()
                except Exception:
                    broken.append(name)
                    traceback.print_exc(limit=-3, file=sys.stdout)
                examples += EXAMPLES
    print(f"{examples} examples; {len(everything)} readers")
    for name in broken:
        print(f"{name}: its reader broke its word")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
