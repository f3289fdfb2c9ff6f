# SPDX-License-Identifier: MIT
"""What is profiled: a process that runs, a command that is started for it, a file that prof_file wrote."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

from .. import locate, program
from .. import run as run_command
from .observe import Observer, ObserverError, Watch
from .samples import Recording


@dataclass(slots=True)
class Outcome:
    """What was seen, and the exit code of the command if one was started."""

    recording: Recording
    exit_code: int = 0


def process(target: str, seconds: float, interval: int) -> Outcome:
    """A process, for some time. Raises ObserverError."""
    return Outcome(Observer(Watch(target, seconds, interval)).answer())


def file(path: str) -> Outcome:
    """A file of samples. Raises ObserverError."""
    return Outcome(Observer(Watch(os.path.abspath(path))).answer())


def command(words: list[str], interval: int, conf: list[str], lib: str | None) -> Outcome:
    """Starts a command under the library and watches it to its end.

    What it did between our last look and its end comes from the file that the library writes then; what
    it did if it was killed, from our looks. Raises ObserverError, locate.LibraryError and
    program.NotRunnable.
    """
    library = locate.library(lib)
    preload = locate.preloadable(library)
    path = program.find(words[0])
    reason = program.why_preload_fails(path, library)
    if reason is not None:
        raise ObserverError(f"{path} {reason}")
    folder = tempfile.mkdtemp(prefix="brimful-prof-")
    try:
        settings = [*conf, f"prof:{interval},prof_file:{folder}/%p"]
        environment = run_command.environment(settings, preload)
        started = subprocess.Popen(words, executable=path, env=environment)
        samples = os.path.join(folder, str(started.pid))
        observer = Observer(
            Watch(str(started.pid), interval=interval, from_start=True, then_file=samples)
        )
        code = _wait(started)
        observer.stop()
        try:
            return Outcome(observer.answer(), code)
        except ObserverError:
            # It ended before it could be looked at.
            if not os.path.exists(samples):
                raise
            outcome = file(samples)
            outcome.recording.pid = started.pid
            return Outcome(outcome.recording, code)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(started: subprocess.Popen[bytes]) -> int:
    """Its exit code as a shell says it. Ctrl-C is the command's: it decides what that means."""
    while True:
        try:
            code = started.wait()
        except KeyboardInterrupt:
            continue
        return code if code >= 0 else 128 - code
