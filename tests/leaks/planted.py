#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that lose blocks on purpose (planted/): every one is found, and nothing else.

Each program says what it planted, address by address. It is looked at from outside while it waits,
and once more by itself as it exits (leaks:exit), with every block sampled; each has to be told for
what it is. Blocks behind lost ones are compared by their number.

    planted.py [PROGRAM...]

Environment: BRIMFUL_BUILD, the folder of the build.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BRIMFUL_BUILD", ROOT / "build/release")).resolve()
LIBRARY = BUILD / "libbrimful.so"
OBSERVER = BUILD / "brimful-observer"
PLANTED = ROOT / "tests/leaks/planted"
SKIP = 77
EVERY_ADDRESS = ["--addresses", "100000", "--groups", "100000"]
# So that blocks of 10 MiB have mappings of their own.
CONF = "reserve:64M"
# Blocks of the libraries that a program runs with are its own business: the C++ run time keeps its
# reserve for exceptions, and the C library what its streams need. None of these is ever lost.


def compile_program(source: Path, folder: Path) -> Path:
    """The program of a source, compiled as a user would, but for calls that are bound at the start.

    A call that is bound when it is made saves all registers on the stack: old values, too.
    """
    program = folder / source.stem
    compiler = ["gcc"] if source.suffix == ".c" else ["g++", "-std=c++20"]
    command = [
        *compiler,
        "-O1",
        "-g",
        "-fno-builtin",
        "-Wl,-z,now",
        f"-I{ROOT}/include",
        "-pthread",
        str(source),
    ]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program


def environment(**more: str) -> dict[str, str]:
    """Ours, with the library in front."""
    return os.environ | {"LD_PRELOAD": str(LIBRARY), "BRIMFUL_CONF": CONF} | more


def planted(lines: list[str]) -> dict[str, set[int]]:
    """Kind of plant to addresses, from what a program says."""
    found: dict[str, set[int]] = {kind: set() for kind in ("lost", "behind", "possibly", "kept")}
    for line in lines:
        _, address, kind = line.split()
        found[kind].add(int(address, 16))
    return found


def faults(plants: dict[str, set[int]], report: dict[str, Any]) -> list[str]:
    """What the report says otherwise than the program."""
    told: dict[str, set[int]] = {"lost": set(), "possibly": set()}
    for group in report["groups"]:
        told[group["kind"]] |= {int(address, 16) for address in group["addresses"]}
    wrong = []
    for kind, addresses in told.items():
        if missing := plants[kind] - addresses:
            wrong.append(
                f"{len(missing)} planted as {kind} not told so: {sorted(map(hex, missing))[:5]}"
            )
        if false := addresses - plants[kind]:
            known = {a: k for k, group in plants.items() for a in group}
            kinds = Counter(known.get(a, "never planted") for a in false)
            wrong.append(f"told as {kind}, but {dict(kinds)}: {sorted(map(hex, false))[:5]}")
    if report["behind"]["count"] != len(plants["behind"]):
        wrong.append(
            f"{report['behind']['count']} told to be behind others, not {len(plants['behind'])}"
        )
    return wrong


def look_from_outside(program: Path) -> tuple[dict[str, set[int]], dict[str, Any]] | None:
    """What the program planted, and what the observer says of it while it waits. None: it can't run."""
    with subprocess.Popen(
        [program, "wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        lines = []
        for line in process.stdout:
            if line == "ready\n":
                break
            lines.append(line)
        else:
            return None
        try:
            said = subprocess.run(
                [OBSERVER, "leaks", "--json", *EVERY_ADDRESS, str(process.pid)],
                capture_output=True,
                text=True,
            )
        finally:
            process.stdin.close()
    if said.returncode not in (0, 1) or not said.stdout:
        raise RuntimeError(f"{program.name}: {said.stderr}")
    report = json.loads(said.stdout)
    assert said.returncode == (1 if report["lost"]["count"] else 0), said.returncode
    return planted(lines), report


def look_at_exit(program: Path, folder: Path) -> tuple[dict[str, set[int]], dict[str, Any]]:
    """What the program planted, and the report that it had written as it exited."""
    reports = folder / f"{program.name}.reports"
    reports.mkdir()
    more = {
        "BRIMFUL_LEAKS": "exit",
        "BRIMFUL_PROF": "1",  # every block is sampled
        "BRIMFUL_OBSERVER": str(OBSERVER),
        "BRIMFUL_LEAKS_REPORT": str(reports),
        "BRIMFUL_LEAKS_OPTIONS": "\n".join(EVERY_ADDRESS),
    }
    said = subprocess.run(
        [program], capture_output=True, text=True, env=environment(**more), check=True
    )
    [report] = reports.glob("*.json")
    return planted(said.stdout.splitlines()[:-1]), json.loads(report.read_text())


def check(source: Path, folder: Path) -> list[str]:
    """Faults of one program."""
    program = compile_program(source, folder)
    outside = look_from_outside(program)
    if outside is None:
        return ["it did not get ready"]
    wrong = [f"from outside: {fault}" for fault in faults(*outside)]
    return wrong + [f"at exit: {fault}" for fault in faults(*look_at_exit(program, folder))]


def main() -> int:
    """Check all programs, or those that are named."""
    if not OBSERVER.exists():
        print("brimful-observer is not built")
        return SKIP
    sources = sorted([*PLANTED.glob("*.c"), *PLANTED.glob("*.cpp")])
    if sys.argv[1:]:
        sources = [source for source in sources if source.stem in sys.argv[1:]]
    failed = 0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        for source, wrong in zip(
            sources, pool.map(lambda s: check(s, Path(name)), sources), strict=True
        ):
            print(f"{source.name}: {'every block told for what it is' if not wrong else 'WRONG'}")
            for fault in wrong:
                print(f"  {fault}")
            failed += bool(wrong)
    print(f"{len(sources)} programs, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
