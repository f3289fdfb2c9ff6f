#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ctest, and then what it keeps to itself: why tests were skipped, and where the time went.

    run_tests.py FOLDER [--progress] ARGUMENT…      the arguments are ctest's

FOLDER is where ctest starts (its `Testing/Temporary/LastTest.log` holds what the tests printed).
`--progress` says after each test how far the run is; it is for runs of hours. Ctrl-C ends a run
and prints what was done until then. A file `FOLDER/build-seconds.txt`, if there is one, says how
long building took; it is used up.

The last line is ctest's count of tests, and the exit code is ctest's.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import test_report

DONE = re.compile(r"^ *(\d+)/(\d+) Test +#\d+: (\S+) \.*(.*)$")
COUNT = re.compile(r"^\d+% tests passed, \d+ tests? failed out of \d+$")


def clock(seconds: float) -> str:
    """Hours only when there are some."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Progress:
    """How far a run is, by the time each test took in an earlier run or, without one, by number."""

    def __init__(self, folder: Path, wanted: bool) -> None:
        self.wanted = wanted
        self.began = time.monotonic()
        self.done = self.total = self.failed = 0
        self.skipped: set[str] = set()
        self.costs = test_report.read_costs(folder)
        self.spent_cost = 0.0
        self.remaining_cost = sum(self.costs.values())

    def note(self, line: str) -> None:
        match = DONE.match(line)
        if not match:
            return
        self.done, self.total = int(match[1]), int(match[2])
        if "Skipped" in match[4]:
            self.skipped.add(match[3])
        elif "Passed" not in match[4]:
            self.failed += 1
        self.spent_cost += self.costs.get(match[3], 0.0)
        if self.wanted:
            print(f"    {self.text()}", flush=True)

    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def text(self) -> str:
        share = self.done / max(self.total, 1)
        if self.spent_cost > 0 and len(self.costs) >= self.total:
            share = self.spent_cost / self.remaining_cost
        left = self.elapsed() / share - self.elapsed() if share > 0 else 0.0
        return (
            f"{self.done} of {self.total} done, {self.failed} failed, {clock(self.elapsed())} gone,"
            f" about {clock(max(left, 0))} to go"
        )


def run(folder: Path, arguments: list[str], progress: Progress) -> tuple[int, str, bool]:
    """Exit code of ctest, its count line, and whether it was interrupted."""
    command = ["ctest", "--test-dir", str(folder), "--output-on-failure", "--no-tests=error"]
    child = subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    count = ""
    interrupted = False
    assert child.stdout is not None
    try:
        for line in child.stdout:
            if COUNT.match(line):
                count = line.rstrip()
            print(line, end="", flush=True)
            progress.note(line)
    except KeyboardInterrupt:
        # The terminal sent the signal to ctest and its tests as well; a kill from elsewhere did not.
        interrupted = True
        child.send_signal(signal.SIGINT)
    return child.wait(), count, interrupted


def main() -> int:
    folder = Path(sys.argv[1])
    arguments = sys.argv[2:]
    wanted = "--progress" in arguments
    if wanted:
        arguments.remove("--progress")
    log = folder / "Testing/Temporary/LastTest.log"
    log.unlink(missing_ok=True)
    progress = Progress(folder, wanted)
    status, count, interrupted = run(folder, arguments, progress)
    seconds = progress.elapsed()
    build = folder / "build-seconds.txt"
    build_seconds = float(build.read_text()) if build.exists() else 0.0
    build.unlink(missing_ok=True)
    if not log.exists():
        log = log.with_name("LastTest.log.tmp")
    results = test_report.read_results(log, progress.skipped) if log.exists() else []
    test_report.print_skipped(results)
    test_report.print_times(results, build_seconds, seconds)
    if interrupted:
        print(f"\nInterrupted: {progress.text()}")
        return 130
    if count:
        print(f"\n{count}")
    return status


if __name__ == "__main__":
    sys.exit(main())
