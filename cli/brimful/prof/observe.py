# SPDX-License-Identifier: MIT
"""Starting brimful-observer, which reads the process, and reading its answer."""

from __future__ import annotations

import json
import signal
import subprocess
from dataclasses import dataclass

from .. import locate
from .samples import FormatError, Recording, recording


class ObserverError(Exception):
    """There is no answer; the message says why and what to do."""


@dataclass(slots=True)
class Watch:
    """What to watch, and for how long."""

    target: str  # process id, or a file that prof_file wrote
    seconds: float = 0.0  # 0: until the process ends
    interval: int = 512 << 10
    from_start: bool = False
    then_file: str | None = None  # read when the process has ended


class Observer:
    """A brimful-observer at work. Making one raises ObserverError where it is not built."""

    def __init__(self, watch: Watch) -> None:
        try:
            program = locate.observer()
        except locate.LibraryError as error:
            raise ObserverError(str(error)) from None
        command = [program, "samples", watch.target]
        command += ["--seconds", str(watch.seconds), "--interval", str(watch.interval)]
        if watch.from_start:
            command.append("--from-start")
        if watch.then_file:
            command += ["--then-file", watch.then_file]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def answer(self) -> Recording:
        """Waits for it. Ctrl-C ends the watching early, and what was seen is the answer.

        Raises ObserverError.
        """
        while True:
            try:
                output, errors = self._process.communicate()
                break
            except KeyboardInterrupt:
                # From the keyboard it has got the signal itself; from `kill` only we have.
                self._process.send_signal(signal.SIGTERM)
        if self._process.returncode != 0:
            said = errors.decode(errors="replace").strip().splitlines()
            reason = said[-1] if said else f"brimful-observer ended with {self._process.returncode}"
            raise ObserverError(reason.removeprefix("brimful-observer: "))
        try:
            return recording(json.loads(output))
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise ObserverError(f"brimful-observer's answer can't be read: {error!r}") from None
        except FormatError as error:
            raise ObserverError(str(error)) from None

    def stop(self) -> None:
        """Ends it as if its time were up."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
