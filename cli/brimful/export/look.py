# SPDX-License-Identifier: MIT
"""One look at all processes that run brimful, or at those that were named.

The observer (`brimful-observer stats`) reads them from outside: they run nothing for it and are not
stopped. It is started for each look, so nothing runs while nobody asks, and a process that was
started meanwhile is there. A look reads whole heaps, 35 ms of processor time for each GiB; so those who
ask within a second of each other get the same one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

SHARED_FOR_S = 1.0
TIMEOUT_S = 60.0
# The kernel says when a process started in hundredths of a second.
SAME_START_S = 0.5


class LookError(Exception):
    """Nothing can be said of any process; the message says why."""


@dataclass(slots=True)
class Process:
    """One process, as the observer saw it."""

    pid: int
    comm: str
    started: float  # Unix time
    seen: dict[str, Any]


@dataclass(slots=True)
class Look:
    """What was seen at one moment."""

    processes: list[Process] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)
    took_s: float = 0.0


class Looker:
    """Takes looks, for any number of threads. `pids`: none means all that can be read."""

    def __init__(self, observer: str, pids: list[int]) -> None:
        self._observer = observer
        self._pids = pids
        self._lock = threading.Lock()
        self._last = Look()
        self._taken_at = -SHARED_FOR_S
        self._told: dict[int, str] = {}
        self._highest: dict[tuple[int, str], tuple[float, float]] = {}

    def look(self) -> Look:
        """A look that is at most a second old. Raises LookError."""
        with self._lock:
            if time.monotonic() - self._taken_at >= SHARED_FOR_S:
                self._last = self._fresh()
                self._taken_at = time.monotonic()
            return self._last

    def _fresh(self) -> Look:
        began = time.monotonic()
        command = [self._observer, "stats", *map(str, self._pids)]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
            )
            answer = json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            raise LookError(f"{self._observer} took more than {TIMEOUT_S:.0f} s") from None
        except OSError as error:
            raise LookError(f"cannot run {self._observer}: {error.strerror}") from None
        except ValueError:
            raise LookError(done.stderr.strip() or f"{self._observer} answered nothing") from None
        now = time.time()
        found = Look(errors={int(e["pid"]): str(e["error"]) for e in answer["errors"]})
        for seen in answer["processes"]:
            pid = int(seen["pid"])
            found.processes.append(
                Process(pid, _comm(pid, seen), now - seen["uptime_seconds"], seen)
            )
        self._keep_rising(found)
        self._tell(found.errors)
        found.took_s = time.monotonic() - began
        return found

    def _keep_rising(self, found: Look) -> None:
        """Counts of calls are estimates, which may step back by a few; a counter that falls means a new
        process to who reads it, and all of it would count once more."""
        kept = {}
        for process in found.processes:
            for where, key in (("calls", "mallocs"), ("heap", "frees")):
                figures = process.seen.get(where, {})
                if key not in figures:
                    continue
                started, highest = self._highest.get((process.pid, key), (0.0, 0.0))
                if abs(started - process.started) < SAME_START_S:
                    figures[key] = max(figures[key], highest)
                kept[process.pid, key] = (process.started, figures[key])
        self._highest = kept

    def _tell(self, errors: dict[int, str]) -> None:
        """Each reason once, on standard error: a process that can't be read can't be every time."""
        for pid, error in errors.items():
            if self._told.get(pid) != error:
                sys.stderr.write(f"brimful export: {error}\n")
        self._told = errors


def _comm(pid: int, seen: dict[str, Any]) -> str:
    try:
        with open(f"/proc/{pid}/comm", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        return os.path.basename(str(seen.get("program", "")))
