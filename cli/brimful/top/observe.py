# SPDX-License-Identifier: MIT
"""brimful-observer stats: its lines as they come, and rates between two of them."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from .. import locate

Process = dict[str, Any]


class ObserverError(Exception):
    """There is no answer; the message says why and what to do."""


class Observer:
    """A brimful-observer at work. Making one raises ObserverError where it is not built."""

    def __init__(self, pids: list[int], interval: float) -> None:
        try:
            program = locate.observer()
        except locate.LibraryError as error:
            raise ObserverError(str(error)) from None
        command = [program, "stats", "--every", str(interval), "--", *map(str, pids)]
        # A Ctrl-C is ours: the observer ends when we do.
        self._child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._child.stdout is not None
        self._output = self._child.stdout.fileno()
        self._rest = b""
        self._history: dict[int, History] = {}

    def fileno(self) -> int:
        """For select(): there is something to read, or the observer has ended."""
        return self._output

    def read(self) -> list[dict[str, Any]] | None:
        """The looks that are complete by now, with rates; None: it has ended. Waits for something."""
        data = os.read(self._output, 1 << 20)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [self._with_rates(json.loads(line)) for line in lines]

    def next(self) -> dict[str, Any]:
        """The next look. Raises ObserverError when the observer has ended."""
        while (looks := self.read()) is not None:
            if looks:
                return looks[-1]
        raise ObserverError(f"brimful-observer ended with code {self._child.wait()}")

    def close(self) -> None:
        """Ends it."""
        self._child.kill()
        self._child.communicate()

    def _with_rates(self, look: dict[str, Any]) -> dict[str, Any]:
        seen: dict[int, History] = {}
        for process in look["processes"]:
            pid = process["pid"]
            seen[pid] = self._history.get(pid) or History()
            process["rates"] = seen[pid].rates(process)
        self._history = seen
        return look


class History:
    """What a process was at the last look, for rates since then.

    Frees are known only where the whole heap was looked at, which for a large heap is not at each
    look; their rate is that between the last two of these.
    """

    def __init__(self) -> None:
        self._last: Process | None = None
        self._frees: tuple[float, int] | None = None
        self._free_rate: float | None = None

    def rates(self, process: Process) -> dict[str, Any]:
        """What happened per second since the last look; None where there was none.

        `locks` has those that somebody had to wait for, by name: waits, and the share of the time that
        all threads together spent waiting.
        """
        last, self._last = self._last, process
        self._note_frees(process)
        rates: dict[str, Any] = dict.fromkeys(("mallocs", "purged_bytes", "refaulted_bytes"))
        rates |= {"frees": self._free_rate, "locks": {}, "seconds": None}
        if last is None or last["at_seconds"] >= process["at_seconds"]:
            return rates
        passed = process["at_seconds"] - last["at_seconds"]
        rates["seconds"] = passed

        def growth(now: dict[str, int], before: dict[str, int], key: str) -> float:
            return max(0.0, (now[key] - before.get(key, 0)) / passed)

        rates["mallocs"] = growth(process["calls"], last["calls"], "mallocs")
        rates["purged_bytes"] = growth(process["pages"], last["pages"], "purged")
        rates["refaulted_bytes"] = growth(process["pages"], last["pages"], "refaulted")
        before = locks_of(last)
        for name, use in locks_of(process).items():
            waits = growth(use, before.get(name, {}), "contended")
            if waits > 0:
                share = growth(use, before.get(name, {}), "wait_ns") / 1e9
                rates["locks"][name] = {"waits": waits, "waiting": share}
        return rates

    def _note_frees(self, process: Process) -> None:
        heap = process["heap"]
        at = heap["at_seconds"]
        if self._frees is None or at > self._frees[0]:
            if self._frees is not None:
                grown = heap["frees"] - self._frees[1]
                self._free_rate = max(0.0, grown / (at - self._frees[0]))
            self._frees = (at, heap["frees"])


def locks_of(process: Process) -> dict[str, dict[str, int]]:
    """The locks by name; those of the central index one by one."""
    locks = process["locks"]
    by_class = {f"class {size}": use for size, use in locks["central"]["classes"].items()}
    return {"heap": locks["heap"], "contexts": locks["context"], **by_class}
