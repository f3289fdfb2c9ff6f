# SPDX-License-Identifier: MIT
"""What the drivers of servers share: the server under the allocator, everything else without it.

A server is measured by the same launcher as every other program, so times, memory and the proof of
the allocator are the server's alone; the client that loads it, and this driver, run on the system's
malloc and are not counted. The launcher and its arguments (preload, settings, time limit, sampling)
come in BENCH_MEASURE, one to a line. A driver prints one line of JSON in the form of a workload
(bench/workloads/workload.h), with the launcher's report of the server under "measured"; `seconds`
is what the client saw.

If the server died, the line says so (its report holds the signal) and the driver still ends with 0:
the bench then calls it the server's crash. Every other failure ends the driver with 1 and a message.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_S = 30
CLIENT_S = 300


class ServingError(Exception):
    """The server or its client did not do what they should; the message says what."""


class Server:
    """A server under the launcher. `folder` holds its output."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        how = os.environ.get("BENCH_MEASURE", "")
        if not how:
            raise ServingError("BENCH_MEASURE is not set: this runs below `brimful bench` only")
        self._output, self._errors = folder / "server.out", folder / "server.err"
        files = ["--stdout", str(self._output), "--stderr", str(self._errors)]
        self._launcher = subprocess.Popen(
            [*how.split("\n"), *files, "--", *command], stdout=subprocess.PIPE, text=True
        )

    def wait_until(self, is_ready: Callable[[], bool]) -> None:
        """Raises ServingError if the server ends or takes longer than START_S."""
        deadline = time.monotonic() + START_S
        while not is_ready():
            if self._launcher.poll() is not None:
                raise ServingError("the server did not start")
            if time.monotonic() > deadline:
                raise ServingError(f"the server is not ready after {START_S} s")
            time.sleep(0.01)

    def report(self) -> dict[str, Any]:
        """What the launcher measured, once the server has ended."""
        said, _ = self._launcher.communicate(timeout=CLIENT_S)
        try:
            measured: dict[str, Any] = json.loads(said)
        except ValueError:
            raise ServingError("the launcher said nothing") from None
        return measured

    def stop(self) -> None:
        """End it whatever it does; the launcher then kills its process group."""
        if self._launcher.poll() is None:
            self._launcher.terminate()
            self._launcher.wait(timeout=START_S)

    def has_died(self) -> bool:
        """Whether it ended before it was told to; a server that is just dying has a moment."""
        try:
            self._launcher.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            return False
        return True

    def last_words(self) -> str:
        """The last line it printed, on standard error if there is one there."""
        for path in (self._errors, self._output):
            lines = path.read_text(errors="replace").split("\n") if path.exists() else []
            said = [line.strip() for line in lines if line.strip()]
            if said:
                return said[-1]
        return "no message"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is removed afterwards. Its path is short enough for a socket's."""
    folder = Path(tempfile.mkdtemp(prefix="serve-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def client(command: Sequence[str]) -> str:
    """What a client prints. Raises ServingError if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise ServingError(f"{os.path.basename(command[0])}: {error}") from None
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        raise ServingError(f"{os.path.basename(command[0])} failed: {lines[-1]}")
    return done.stdout


def main(
    name: str,
    start: Callable[[Path], Server],
    load: Callable[[Server, Path], dict[str, Any]],
) -> int:
    """Start the server, load it, print the line.

    `load` waits until the server is ready, and tells it to end when the work is done; it returns
    operations, seconds and extra.
    """
    try:
        with temporary_folder() as folder:
            server = start(folder)
            line: dict[str, Any] = {"workload": name}
            try:
                line |= load(server, folder)
            except ServingError:
                if not server.has_died():
                    raise
            finally:
                if "seconds" not in line:
                    server.stop()
            line["measured"] = server.report()
            line["last_words"] = server.last_words()
    except ServingError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    if "seconds" not in line and _ended_well(line["measured"]):
        print(f"{name}: the server ended early: {line['last_words']}", file=sys.stderr)
        return 1
    print(json.dumps(line))
    return 0


def _ended_well(measured: dict[str, Any]) -> bool:
    return measured["signal"] == 0 and measured["exit_code"] == 0
