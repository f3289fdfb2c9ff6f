#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""leaks:exit beside valgrind's leak check: the planted programs, and real ones.

A program runs once under valgrind with the C library's malloc, and once under the library with
leaks:exit; what both call lost ("definitely lost" there), what is behind it ("indirectly lost") and
what only inner pointers lead to ("possibly lost") is counted in blocks.

Of the planted programs we have to say what was planted. valgrind does not search memory that can't
be written, nor what the kernel keeps, and knows no heaps of ours. Where valgrind finds nothing
definitely lost in a real program, neither may we. Where it finds something, both numbers are shown:
a program may run otherwise under another malloc, and two searches that take numbers for pointers
differ by chance.

    valgrind_long.py [--write FILE.json]

Environment: BRIMFUL_BUILD, the folder of the build.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import planted

SECONDS = 600
SUMMARY = re.compile(r"(definitely|indirectly|possibly) lost: ([\d,]+) bytes in ([\d,]+) blocks")
NONE_LEFT = "All heap blocks were freed"
PYTHON = "/usr/bin/python3"
SERVICES = "/etc/services"
# Real programs, one word of work each. What is not installed is left out.
REAL = [
    ["cat", SERVICES],
    ["sort", SERVICES],
    ["ls", "-lR", "/etc/apt"],
    ["find", "/etc/apt", "-name", "*.list"],
    ["grep", "-c", "tcp", SERVICES],
    ["sed", "s/a/b/", SERVICES],
    ["mawk", "{n[$1]++} END {print length(n)}", SERVICES],
    ["tar", "cf", "-", "/etc/apt"],
    ["bash", "-c", 'for i in {1..100}; do a+=("$i"); done; f() { local x=$1; echo "$x"; }; f 3'],
    ["perl", "-e", "my %h; $h{$_} = [$_] for 1 .. 1000; print scalar keys %h"],
    [PYTHON, "-c", "import json, re; print(len(json.dumps(list(range(1000)))))"],
    ["sqlite3", ":memory:", "create table t(a, b); insert into t values (1, 2); select * from t"],
    ["git", "--version"],
    ["git", "-C", str(planted.ROOT), "log", "-3"],
    ["jq", "-c", ".", str(planted.ROOT / "CMakePresets.json")],
    ["redis-server", "--version"],
    ["openssl", "dgst", SERVICES],
    ["curl", "--version"],
    ["cmake", "--version"],
    ["lua5.4", "-e", "t = {} for i = 1, 1000 do t[i] = {i} end print(#t)"],
    ["xsltproc", "--version"],
]


def by_valgrind(command: list[str]) -> dict[str, int] | None:
    """Blocks lost, behind those, and possibly lost. None: valgrind can't run it."""
    ran = subprocess.run(
        ["valgrind", "--leak-check=full", "--trace-children=no", "-q", "-v", *command],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=SECONDS,
    )
    blocks = {kind: int(count.replace(",", "")) for kind, _, count in SUMMARY.findall(ran.stderr)}
    if NONE_LEFT in ran.stderr:
        blocks = dict.fromkeys(("definitely", "indirectly", "possibly"), 0)
    if len(blocks) != 3:
        return None
    return {
        "lost": blocks["definitely"],
        "behind": blocks["indirectly"],
        "possibly": blocks["possibly"],
    }


def by_brimful(command: list[str], folder: Path) -> dict[str, int] | None:
    """The same by leaks:exit. None: the command's own process wrote no report."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    started = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=planted.environment(
            BRIMFUL_LEAKS="exit",
            BRIMFUL_OBSERVER=str(planted.OBSERVER),
            BRIMFUL_LEAKS_REPORT=str(folder),
        ),
    )
    started.wait(SECONDS)
    try:
        report = json.loads((folder / f"{started.pid}.json").read_text())
    except FileNotFoundError:
        return None
    return {kind: report[kind]["count"] for kind in ("lost", "behind", "possibly")} | {
        "live": report["live"]["count"]
    }


def compare(name: str, command: list[str], folder: Path, is_planted: bool) -> dict[str, Any]:
    """One row."""
    row: dict[str, Any] = {"program": name, "planted": is_planted}
    row["valgrind"] = by_valgrind(command)
    row["brimful"] = by_brimful(command, folder)
    ours, theirs = row["brimful"], row["valgrind"]
    if is_planted:
        said = subprocess.run(
            command, env=planted.environment(), capture_output=True, text=True, check=True
        )
        row["planted_blocks"] = len(planted.planted(said.stdout.splitlines()[:-1])["lost"])
    if ours is None or theirs is None:
        row["verdict"] = "not compared"
    elif is_planted:
        row["verdict"] = "as planted" if ours["lost"] == row["planted_blocks"] else "NOT AS PLANTED"
    elif theirs["lost"] == 0:
        row["verdict"] = "clean in both" if ours["lost"] == 0 else "FALSE"
    else:
        row["verdict"] = "same" if ours["lost"] == theirs["lost"] else "differs"
    return row


def main() -> int:
    """Compare, print a table, and write the rows."""
    parser = argparse.ArgumentParser(description="leaks:exit beside valgrind's leak check")
    parser.add_argument("--write", metavar="FILE.json")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("valgrind is not installed")
        return planted.SKIP
    if not planted.OBSERVER.exists():
        print("brimful-observer is not built")
        return planted.SKIP
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        todo = [
            (source.stem, [str(planted.compile_program(source, folder))], True)
            for source in sorted([*planted.PLANTED.glob("*.c"), *planted.PLANTED.glob("*.cpp")])
        ]
        todo += [(command[0], command, False) for command in REAL if shutil.which(command[0])]
        print(
            f"{'':28}{'valgrind':>22}{'brimful':>22}\n"
            f"{'':28}{'lost behind possibly':>22}{'lost behind possibly':>22}"
        )
        for program, command, is_planted in todo:
            row = compare(program, command, folder / "reports", is_planted)
            rows.append(row)
            cells = [
                "-"
                if side is None
                else f"{side['lost']:>5}{side['behind']:>8}{side['possibly']:>9}"
                for side in (row["valgrind"], row["brimful"])
            ]
            print(
                f"{Path(program).name:28}{cells[0]:>22}{cells[1]:>22}  {row['verdict']}", flush=True
            )
    if options.write:
        Path(options.write).write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    wrong = [row for row in rows if row["verdict"].isupper()]
    print(f"{len(rows)} programs, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
