#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The figures about the pools: what `make bench-pools` runs, in about a quarter of an hour.

    run_pools.py [--short] [--only ROW,ROW]     measure; --short takes some minutes and keeps nothing
    run_pools.py --report [FILE]                only write the pages, from FILE or the newest result

Raw data goes to bench/results/pools-DATE.json, and from there, and from nowhere else, come the tables
and charts of docs/guide/pools.md and the goals in docs/evaluation.md. Ctrl-C ends a run early: what
was measured until then is saved, and the record says that it is not whole. pool_rows.py has the rows,
pool_runs.py who takes part; run it by tools/in_venv.sh.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import benchlib
import pool_page
import pool_rows
import pool_runs
from benchlib import BenchError
from pool_runs import Bench, Data, say


def measure(bench: Bench, rows: Sequence[str]) -> Data:
    """The record of a run, as far as it came."""
    pool_runs.build_programs()
    contenders = [
        *pool_runs.tlsf_contenders(),
        *pool_runs.malloc_contenders(),
    ]
    record: Data = {
        "what": "bench/run_pools.py",
        "options": {"short": bench.short, "rows": list(rows)},
        "environment": benchlib.environment(),
        "allocators": pool_runs.described(contenders),
        "results": {},
        "interrupted": False,
    }
    for name in rows:
        into = record["results"].setdefault(name, {})
        try:
            pool_rows.ROWS[name](bench, into)
        except KeyboardInterrupt:
            say(f"interrupted in {name}")
            record["interrupted"] = True
            break
        except (
            ValueError,
            KeyError,
        ) as error:  # a program printed something else: the others go on
            bench.failures.append(f"{name}: {type(error).__name__}: {error}")
    record["failures"] = bench.failures
    return record


def saved(record: Data, *, short: bool) -> Path:
    """Where the record went: short and interrupted runs prove nothing and stay in build/."""
    name = f"pools-{benchlib.stamp()}.json"
    whole = not short and not record["interrupted"] and set(record["results"]) == {*pool_rows.ROWS}
    path = (benchlib.RESULTS if whole else benchlib.WORK) / name
    benchlib.save_json(path, record)
    return path


def newest() -> Path:
    found = sorted(benchlib.RESULTS.glob("pools-*.json"))
    if not found:
        raise BenchError("no result in bench/results (make bench-pools)")
    return found[-1]


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("--short", action="store_true", help="some minutes; nothing is kept")
    parser.add_argument("--only", default="", help="these rows, comma-separated")
    parser.add_argument("--report", nargs="?", const="", metavar="FILE", help="write the pages")
    options = parser.parse_args(argv)
    options.rows = [name for name in options.only.split(",") if name] or list(pool_rows.ROWS)
    for name in options.rows:
        if name not in pool_rows.ROWS:
            parser.error(f"no row {name!r}; there are: {', '.join(pool_rows.ROWS)}")
    return options


def main(argv: Sequence[str]) -> int:
    options = arguments(argv)
    # So that what was measured is saved when it is told to end.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if options.report is not None:
            pool_page.write(Path(options.report) if options.report else newest())
            return 0
        bench = Bench(short=options.short)
        record = measure(bench, options.rows)
        path = saved(record, short=options.short)
        for line in pool_page.goal_lines(record):
            print(line)
        for failure in bench.failures:
            say(f"failed: {failure}")
        print(f"Raw data: {benchlib.path_for_record(path)}")
        if path.parent == benchlib.RESULTS:
            pool_page.write(path)
    except (BenchError, OSError, json.JSONDecodeError) as error:
        say(f"run_pools: {error}")
        return 1
    if record["interrupted"]:
        return 130
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
