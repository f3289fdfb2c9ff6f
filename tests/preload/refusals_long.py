#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The k-th system call of the library fails, for every k, in real programs: see `_refusals.py`.

    refusals_long.py [--workers N] [--rounds N] [--only PROGRAM] [FILE]

FILE: the tally, as JSON. Ctrl-C ends the run with the tally of what was done. Exit code 1: a fault, or less than 10,000
different calls that were refused. Takes half an hour on two processors.

Environment: BRIMFUL_LIB, the library.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import platform
import random
import shutil
import sys
from pathlib import Path

from _refusal_runs import Run, all_programs, run_all, tasks_of
from _refusals import Refuser
from _refused_programs import programs

LEAST = 10_000


def tally_of(runs: list[Run]) -> dict[str, object]:
    """Numbers by program, and every fault."""
    by_program = collections.defaultdict(lambda: collections.Counter[str]())
    for run in runs:
        count = by_program[run.program]
        count["runs"] += 1
        ended = "no end" if run.status is None else "signal" if run.status < 0 else "message" if run.status else "success"
        count[ended] += 1
        count["faults"] += run.fault is not None
    calls = collections.defaultdict(lambda: collections.Counter[str]())
    for run in runs:
        calls[run.program][run.call] += 1
    return {
        "what": "refusals",
        "machine": f"{platform.system()} {platform.release()}, {os.cpu_count()} processors",
        "runs": len(runs),
        "different": len({(run.program, run.options, run.call, run.k) for run in runs}),
        "different_without_options": len({(run.program, run.call, run.k) for run in runs}),
        "programs": by_program,
        "calls": calls,
        "options": sorted({run.options for run in runs}),
        "faults": [run.line() for run in runs if run.fault is not None],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="write the tally there, as JSON")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="programs at a time")
    parser.add_argument("--rounds", type=int, default=25, help="how much each program does")
    parser.add_argument("--only", help="this program alone")
    options = parser.parse_args()
    if platform.machine() != "x86_64" or shutil.which("gcc") is None:
        print("skip: the calls are refused by code for x86-64, which gcc compiles")
        return 77
    refuser, runs = Refuser(), []
    try:
        made = [p for p in programs(refuser, options.rounds) if options.only in (None, p.name)]
        print(f"     {', '.join(program.name for program in made)}", flush=True)
        tasks = [task for program in all_programs(made) for task in tasks_of(refuser, program)]
        random.Random(1).shuffle(tasks)  # so that a run that is ended early has seen something of each
        for run in run_all(refuser, tasks, options.workers, is_shown=True):
            runs.append(run)
            if run.fault is not None:
                print(f"FAIL {run.line()}", flush=True)
    except KeyboardInterrupt:
        print("     ended early")
    finally:
        refuser.close()
    tally = tally_of(runs)
    if options.file is not None:
        options.file.write_text(json.dumps(tally, indent=1) + "\n")
    for name, count in tally["programs"].items():
        print(f"     {name}: {', '.join(f'{n} {what}' for what, n in count.items())}")
    print(f"     {tally['different']} different calls refused in {tally['runs']} runs")
    return 1 if tally["faults"] or (options.only is None and tally["different"] < LEAST) else 0


if __name__ == "__main__":
    sys.exit(main())
