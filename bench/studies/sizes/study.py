#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Which sizes real programs ask malloc for: bench/results/sizes-DATE.json, for bench/size_classes.py.

Runs the rows of `brimful bench --real` once each under bench/micro/record_sizes.c. Of each row the
process with the most live bytes at its peak is kept: its requests and what lived at the peak, as
[bytes, count] pairs.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import benchlib
from brimful.bench import programs
from brimful.bench.model import Cell

SOURCE = benchlib.ROOT / "bench" / "micro" / "record_sizes.c"
LIBRARY = benchlib.ROOT / "build" / "bench" / "record_sizes.so"
TIMEOUT = 300


def build() -> None:
    LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    command = [
        "gcc",
        "-O2",
        "-Wall",
        "-Werror",
        "-shared",
        "-fPIC",
        str(SOURCE),
        "-o",
        str(LIBRARY),
    ]
    subprocess.run(command, check=True)


def record(cell: Cell) -> dict[str, Any] | None:
    """What the row's largest process asked for, or None when none told."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts"
        counts.mkdir()
        environment = {**os.environ, "SIZES_OUT": str(counts)}
        preload = f"LD_PRELOAD={LIBRARY}"
        command = list(cell.command)
        if cell.figure == "seconds":
            # A driver: it starts its server by this command, followed by --stdout FILE --stderr FILE --
            # and the server.
            environment["BENCH_MEASURE"] = f'/bin/bash\n-c\nexec env {preload} "${{@:6}}"\nserver'
        else:
            command = ["/usr/bin/env", preload, *command]
        quiet = subprocess.DEVNULL
        try:
            subprocess.run(
                command, cwd=folder, env=environment, stdout=quiet, stderr=quiet, timeout=TIMEOUT
            )
        except subprocess.TimeoutExpired:
            return None
        processes = [json.loads(path.read_text()) for path in counts.glob("*.json")]
    return max(processes, key=lambda found: int(found["peak_bytes"]), default=None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    arguments = parser.parse_args()
    build()
    rows: dict[str, Any] = {}
    for cell in programs.cells():
        if arguments.only not in cell.name:
            continue
        found = None if cell.missing else record(cell)
        print(f"{cell.name}: {cell.missing or (found or {}).get('peak_bytes', 'nothing recorded')}")
        if found is not None:
            rows[cell.name] = found
    stamp = datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%dT%H%M")
    path = benchlib.ROOT / "bench" / "results" / f"sizes-{stamp}.json"
    lines = [
        f"{json.dumps(name)}:{json.dumps(row, separators=(',', ':'))}" for name, row in rows.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
