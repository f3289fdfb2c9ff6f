# SPDX-License-Identifier: MIT
"""What a run of ctest took, and what it skipped, read from its LastTest.log (run_tests.py prints it).

A test is a process that CTest starts; most run many cases and count them in their last line
(`12 passed, 0 failed, 1 skipped`; Python's unittest says `Ran 12 tests`). One without such a line is
one case. Times are wall times of tests that ran beside each other, so their sum is more than the run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

SLOWEST = 20
GOAL_S = 600
COUNTED = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
UNITTEST = re.compile(r"^Ran (\d+) tests? in", re.MULTILINE)
CASE_SKIPPED = re.compile(r"^skip  (\S.*?): (.*)$", re.MULTILINE)


@dataclass
class Result:
    """One test of CTest."""

    name: str
    seconds: float
    skipped: bool
    cases: int
    reason: str = ""
    skipped_cases: list[tuple[str, str]] = field(default_factory=list)

    def build(self) -> str:
        return self.name.split(".")[0]

    def kind(self) -> str:
        return self.name.split(".")[1] if "." in self.name else "other"


def count_cases(output: str) -> int:
    """How many cases ran, by the program's own count."""
    own = COUNTED.findall(output)
    if own:
        return int(own[-1][0]) + int(own[-1][1])
    return sum(int(number) for number in UNITTEST.findall(output)) or 1


def reason_of(lines: list[str], cases: list[tuple[str, str]]) -> str:
    """A program's last line, or that of its first case where it skipped all of several."""
    if cases:
        return cases[0][1]
    return lines[-1] if lines else ""


def read_results(log: Path, skipped_names: set[str]) -> list[Result]:
    """The log calls a skipped test passed, so who was skipped is told by the caller."""
    results = []
    text = log.read_text(encoding="utf-8", errors="replace")
    for part in re.split(r"^\d+/\d+ Testing: ", text, flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("\n")
        _, _, tail = rest.partition("\nOutput:\n")
        output, _, end = tail.rpartition("<end of output>")
        took = re.search(r"^Test time = +([\d.]+) sec", end, re.MULTILINE)
        skipped = name.strip() in skipped_names
        cases = CASE_SKIPPED.findall(output)
        lines = [line for line in output.splitlines() if line.strip("- ")]
        results.append(
            Result(
                name.strip(),
                float(took[1]) if took else 0.0,
                skipped,
                0 if skipped else count_cases(output),
                reason_of(lines, cases) if skipped else "",
                [] if skipped else cases,
            )
        )
    return results


def read_costs(folder: Path) -> dict[str, float]:
    """Seconds of each test in the last run that ctest remembers."""
    costs = {}
    file = folder / "Testing/Temporary/CTestCostData.txt"
    for line in file.read_text().splitlines() if file.exists() else []:
        words = line.split()
        if line.startswith("---"):
            break
        if len(words) == 3 and float(words[2]) > 0:
            costs[words[0]] = float(words[2])
    return costs


def print_skipped(results: list[Result]) -> None:
    """A skip whose reason nobody reads is a test that nobody has."""
    skipped = [result for result in results if result.skipped]
    cases: dict[tuple[str, str], list[str]] = defaultdict(list)
    for result in results:
        for case in result.skipped_cases:
            cases[case].append(result.name)
    if not skipped and not cases:
        return
    print("\nSkipped, and why:")
    for result in sorted(skipped, key=lambda result: result.name):
        print(f"  {result.name}: {result.reason}")
    for (name, reason), names in sorted(cases.items()):
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        print(f"  {name} in {names[0]}{more}: {reason}")


def print_table(results: list[Result]) -> None:
    builds = sorted({result.build() for result in results})
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    cases: dict[str, int] = defaultdict(int)
    for result in results:
        seconds[result.kind(), result.build()] += result.seconds
        cases[result.kind()] += result.cases
    kinds = sorted(cases, key=lambda kind: -sum(seconds[kind, build] for build in builds))
    print("\nSeconds by kind of test and build, tests beside each other counted apiece:")
    print(f"  {'':10}" + "".join(f"{build:>9}" for build in builds) + f"{'all':>9}{'cases':>8}")
    for kind in kinds:
        row = [seconds[kind, build] for build in builds]
        figures = "".join(f"{value:9.1f}" if value else f"{'':9}" for value in row)
        print(f"  {kind:10}{figures}{sum(row):9.1f}{cases[kind]:8}")
    sums = [sum(seconds[kind, build] for kind in kinds) for build in builds]
    figures = "".join(f"{value:9.1f}" for value in sums)
    print(f"  {'all':10}{figures}{sum(sums):9.1f}{sum(cases.values()):8}")


def print_times(results: list[Result], build_seconds: float, test_seconds: float) -> None:
    """Where the time went, and what would have to go for ten minutes."""
    if len(results) < 2:
        return
    print_table(results)
    slowest = sorted(results, key=lambda result: -result.seconds)
    print(f"\nThe {min(SLOWEST, len(results))} slowest tests:")
    for result in slowest[:SLOWEST]:
        print(f"  {result.seconds:7.1f} s  {result.name}")
    whole = build_seconds + test_seconds
    print(
        f"\nBuilding {build_seconds:.0f} s, testing {test_seconds:.0f} s: {whole:.0f} s.", end=" "
    )
    over = whole - GOAL_S
    if over <= 0:
        print(f"That is {-over:.0f} s less than ten minutes.")
        return
    beside = sum(result.seconds for result in results) / max(test_seconds, 1.0)
    gone = 0.0
    number = 0
    for result in slowest:
        if gone >= over * beside:
            break
        gone += result.seconds
        number += 1
    what = (
        f"as much as the {number} slowest tests together"
        if gone >= over * beside
        else "more than all tests"
    )
    print(
        f"For ten minutes it would have to lose {over:.0f} s: at {beside:.1f} tests beside each"
        f" other tests of {over * beside:.0f} s, {what}."
    )
