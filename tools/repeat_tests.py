#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs tests many times each, to find those that fail now and then; can be stopped and gone on with.

    repeat_tests.py FOLDER [-n 20] [-R EXPRESSION] [-j JOBS]

FOLDER is one in which ctest knows the tests; -R is as for ctest. Tests of logic alone (lint, golden,
model) and those of the soak are left out: a second run of them tells nothing new. The shortest come
first, so that after any time as many as possible have been through.

FOLDER/repeats.jsonl is the tally: a line for each test and visit, with how often it ran and failed. A
test that has its number there is not run again unless its program or the library of its build has
changed since (a digest of both is in the line), so a call after Ctrl-C goes on, and one after a
change begins anew. What a failed run printed is kept in FOLDER/repeats/. A test that failed is run
no further, and stays failed in the tally until something has changed or the file is removed: a flaky
test is mended, not repeated until it passes.

Exit code: 0 when all tests have passed as often as asked, 1 when one has failed, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import test_report

ROOT = Path(__file__).resolve().parent.parent
LOGIC_ONLY = {"lint", "golden", "model", "weak", "long"}


@dataclass
class Test:
    """What ctest would start, and how."""

    name: str
    command: list[str]
    environment: dict[str, str]
    folder: str
    timeout: float
    skip_code: int | None
    labels: set[str]
    sets_up: set[str]
    requires: set[str]

    def build(self) -> Path:
        return ROOT / "build" / self.name.split(".")[0]


@dataclass
class Tally:
    """One test's runs with one library."""

    runs: int = 0
    failures: int = 0
    skipped: bool = False


def parse_test(entry: dict[str, Any]) -> Test:
    properties = {one["name"]: one["value"] for one in entry.get("properties", [])}
    pairs = [one.partition("=") for one in properties.get("ENVIRONMENT", [])]
    return Test(
        entry["name"],
        entry["command"],
        {name: value for name, _, value in pairs},
        properties.get("WORKING_DIRECTORY", "."),
        float(properties.get("TIMEOUT", 1500)),
        properties.get("SKIP_RETURN_CODE"),
        set(properties.get("LABELS", [])),
        set(properties.get("FIXTURES_SETUP", [])),
        set(properties.get("FIXTURES_REQUIRED", [])),
    )


def list_tests(folder: Path) -> list[Test]:
    command = ["ctest", "--test-dir", str(folder), "--show-only=json-v1"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [parse_test(entry) for entry in json.loads(shown)["tests"] if "command" in entry]


@functools.cache
def bytes_digest(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest() if file.is_file() else b""


def digest_of(test: Test) -> str:
    """Of what the test runs, and of the libraries that the tests of its build are about."""
    digest = hashlib.sha256()
    for name in ("libbrimful.so", "libbrimful-test.a", "libbrimful-pools-checked.a"):
        digest.update(bytes_digest(test.build() / name))
    for word in test.command:
        if word.startswith("/"):
            digest.update(bytes_digest(Path(word)))
    return digest.hexdigest()[:16]


class Repeats:
    """The tests, the tally, and what is under way."""

    def __init__(self, folder: Path, tests: list[Test], times: int) -> None:
        self.folder = folder
        self.tests = tests
        self.times = times
        self.digests = {test.name: digest_of(test) for test in tests}
        self.tally: dict[str, Tally] = defaultdict(Tally)
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.read()

    def read(self) -> None:
        file = self.folder / "repeats.jsonl"
        by_name = {test.name: test for test in self.tests}
        text = file.read_text() if file.exists() else ""
        if text and not text.endswith("\n"):  # the disk was full
            with file.open("a") as torn:
                torn.write("\n")
        for line in text.splitlines():
            try:
                visit = json.loads(line)
            except ValueError:
                continue
            test = by_name.get(visit["test"])
            if test is not None and visit["digest"] == self.digests[test.name]:
                self.add(test.name, visit["runs"], visit["failures"], visit["skipped"])

    def add(self, name: str, runs: int, failures: int, skipped: bool) -> None:
        tally = self.tally[name]
        tally.runs += runs
        tally.failures += failures
        tally.skipped = skipped

    def is_done(self, test: Test) -> bool:
        tally = self.tally[test.name]
        return tally.runs >= self.times or tally.failures > 0 or tally.skipped

    def run_once(self, test: Test, number: int) -> str:
        """'passed', 'failed', 'skipped', or 'stopped'."""
        process = subprocess.Popen(
            test.command,
            cwd=test.folder,
            env=os.environ | test.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        reason = ""
        began = time.monotonic()
        while True:
            try:
                output, _ = process.communicate(timeout=1.0)
                break
            except subprocess.TimeoutExpired:
                late = time.monotonic() - began > test.timeout
                if not late and not self.stopped.is_set():
                    continue
                reason = f"killed after {test.timeout:.0f} s" if late else "stopped"
                os.killpg(process.pid, signal.SIGKILL)
        if reason == "stopped":
            return "stopped"
        if test.skip_code is not None and process.returncode == test.skip_code:
            return "skipped"
        if process.returncode == 0 and not reason:
            return "passed"
        kept = self.folder / "repeats" / f"{test.name}.{number}.txt"
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(output + f"\n{reason or f'exit code {process.returncode}'}\n".encode())
        print(f"FAILED   {test.name}, run {number}: {kept}", flush=True)
        return "failed"

    def visit(self, test: Test) -> None:
        before = self.tally[test.name].runs
        began = time.monotonic()
        runs = failures = 0
        skipped = False
        while before + runs < self.times and failures == 0 and not self.stopped.is_set():
            outcome = self.run_once(test, before + runs + 1)
            if outcome == "stopped":
                break
            if outcome == "skipped":
                skipped = True
                break
            runs += 1
            failures += outcome == "failed"
        with self.lock:
            self.add(test.name, runs, failures, skipped)
            if runs == 0 and not skipped:
                return
            line = {
                "test": test.name,
                "digest": self.digests[test.name],
                "runs": runs,
                "failures": failures,
                "skipped": skipped,
                "seconds": round(time.monotonic() - began, 1),
            }
            with (self.folder / "repeats.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")

    def summary(self) -> str:
        whole = sum(
            self.is_done(test) and self.tally[test.name].runs >= self.times for test in self.tests
        )
        runs = sum(self.tally[test.name].runs for test in self.tests)
        failed = [test.name for test in self.tests if self.tally[test.name].failures]
        skipped = sum(self.tally[test.name].skipped for test in self.tests)
        lines = [
            f"{whole} of {len(self.tests)} tests ran {self.times} times ({runs} runs in all),"
            f" {skipped} can't run here, {len(failed)} failed"
        ]
        return "\n".join(lines + [f"  failed: {name}" for name in failed])


def set_up(tests: list[Test], wanted: list[Test]) -> None:
    """Runs once what others of the tests need to be there."""
    needed = {name for test in wanted for name in test.requires}
    for test in tests:
        if test.sets_up & needed:
            print(f"Preparing: {test.name}", flush=True)
            environment = os.environ | test.environment
            subprocess.run(test.command, cwd=test.folder, env=environment, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs each test many times.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("-n", "--times", type=int, default=20)
    parser.add_argument("-R", "--expression", default=".")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    options = parser.parse_args()
    everything = list_tests(options.folder)
    wanted = [
        test
        for test in everything
        if re.search(options.expression, test.name) and not test.labels & LOGIC_ONLY
    ]
    if not wanted:
        print(f"No test of threads, time or processes has a name like {options.expression}")
        return 2
    costs = test_report.read_costs(options.folder)
    wanted.sort(key=lambda test: (costs.get(test.name, 1.0), test.name))
    repeats = Repeats(options.folder, wanted, options.times)
    todo = [test for test in wanted if not repeats.is_done(test)]
    set_up(everything, todo)
    print(
        f"{len(todo)} of {len(wanted)} tests are to run, up to {options.times} times each",
        flush=True,
    )
    interrupted = False
    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        try:
            for _ in pool.map(repeats.visit, todo):
                pass
        except KeyboardInterrupt:
            interrupted = True
            repeats.stopped.set()
            pool.shutdown(cancel_futures=True)
    print(repeats.summary())
    if interrupted:
        print("Interrupted; the same call goes on from here")
        return 130
    return 1 if any(repeats.tally[test.name].failures for test in wanted) else 0


if __name__ == "__main__":
    sys.exit(main())
