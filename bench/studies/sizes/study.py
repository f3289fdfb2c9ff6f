# SPDX-License-Identifier: MIT
"""Which sizes real programs ask malloc for, and what tables of size classes waste on them.

Runs the rows of `brimful bench --real` once each under record_sizes.c. Of each row the process with
the most live bytes at its peak is kept: its requests and what lived at the peak, as [bytes, count]
pairs. What tables.py makes of that decided docs/design/0018-size-classes-and-measures.md.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from brimful.bench import building, launch, programs
from brimful.bench.model import Cell
from brimful.bench.study.model import WORK, Data, Option, Run, Study
from studies.sizes import tables

SOURCE = Path(__file__).with_name("record_sizes.c")
TIMEOUT_S = 300


def record(cell: Cell, library: Path) -> Data | None:
    """What the row's largest process asked for, or None when none told."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        counts = Path(folder) / "counts"
        counts.mkdir()
        environment = launch.clean_environment() | {"SIZES_OUT": str(counts)}
        preload = f"LD_PRELOAD={library}"
        command = list(cell.command)
        if launch.is_driver(cell):
            # It starts its server by this command, followed by --stdout FILE --stderr FILE -- and
            # the server.
            environment["BENCH_MEASURE"] = f'/bin/bash\n-c\nexec env {preload} "${{@:6}}"\nserver'
        else:
            command = ["/usr/bin/env", preload, *command]
        quiet = subprocess.DEVNULL
        try:
            subprocess.run(
                command, cwd=folder, env=environment, stdout=quiet, stderr=quiet, timeout=TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            return None
        processes = [json.loads(path.read_text()) for path in counts.glob("*.json")]
    return max(processes, key=lambda found: int(found["peak_bytes"]), default=None)


def measure(run: Run) -> None:
    compiler = ["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC"]
    library = building.built(WORK / "record_sizes.so", SOURCE, compiler)
    rows = [name for name in run.options.rows.split(",") if name]
    for cell in programs.cells():
        if rows and cell.name not in rows:
            continue
        found = None if cell.missing else record(cell, library)
        if found is None:
            run.record.fail(cell.name, cell.missing or "nothing recorded")
            continue
        print(f"{cell.name}: {found['peak_bytes']:,} bytes at the peak", flush=True)
        run.record.results[cell.name] = found


STUDY = Study(
    "sizes",
    title="Which sizes do real programs ask for, and what do tables of size classes waste on them?",
    time="5 minutes",
    short_time="half a minute",
    measure=measure,
    show=lambda record: tables.told(record.results),
    options={
        "rows": Option("only these rows of `bench --real`, comma-separated", "", "lua,python")
    },
    needs=("tools/install-deps.sh bench", "make real-programs"),
)
