#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Some of what refusals_long.py does: one in some sixty of the system calls that it lets fail.

The same ones each time. What the programs ask of the system is compared with the table in
docs/guide/troubleshooting.md, so that whoever writes a filter finds every call there.

Environment: BRIMFUL_LIB, the library.
"""

from __future__ import annotations

import platform
import random
import re
import shutil
import sys

from _refusal_runs import all_programs, run_all, tasks_of
from _refusals import ROOT, Refuser
from _refused_programs import quick_programs

RUNS = 160


def main() -> int:
    if platform.machine() != "x86_64" or shutil.which("gcc") is None:
        print("skip: the calls are refused by code for x86-64, which gcc compiles")
        return 77
    refuser = Refuser()
    try:
        made = all_programs(quick_programs(refuser, rounds=10))
        tasks = [task for program in made for task in tasks_of(refuser, program)]
        chosen = random.Random(14).sample(tasks, RUNS)
        runs = list(run_all(refuser, chosen, workers=2, is_shown=False))
    finally:
        refuser.close()
    faults = [run.line() for run in runs if run.fault is not None]
    table = (ROOT / "docs/guide/troubleshooting.md").read_text()
    for call in sorted({task.call for task in tasks} - {"memory"}):
        if not re.search(rf"^\|.*`{call}`.*\|", table, re.MULTILINE):
            faults.append(f"docs/guide/troubleshooting.md does not name {call}")
    print(*(f"FAIL {fault}" for fault in faults), sep="\n")
    print(
        f"{len(runs)} of {len(tasks)} different calls refused, in {len(made)} programs and options"
    )
    return 1 if faults or len(runs) < RUNS // 2 else 0


if __name__ == "__main__":
    sys.exit(main())
