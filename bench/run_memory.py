#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The figures about memory: what `make bench-memory` runs, in about a quarter of an hour.

Three runs of `brimful bench`, one after the other: what is held after large objects, bursts and a
long life, and by a trivial process; a heap grown to 2 GiB and read at random; heaps of which nine
objects in ten are freed, with transparent hugepages on for everybody. (Populate by its levels is
run_populate.py.) The third changes /sys/kernel/mm/transparent_hugepage/enabled and puts it back, for
which it must be root. Samples are large and hardly vary, so most rows have one round;
`-- --rounds 5:5 --budget 1h` gives them more. The geometric means over all workloads and the real
programs come from the league's results; report.py makes them. runs.py says where the data goes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import runs
from runs import CannotMeasureError, Kind

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
FOOTPRINT_ROWS = (
    "trivial-process,malloc-large,malloc-large-touched,malloc-large-shrunk,burst-light,burst-still,"
    "long-life"
)
FEW = "glibc,brimful,brimful-background,jemalloc,mimalloc3,snmalloc"


def _thp_now() -> str:
    found = re.search(r"\[(\w+)\]", THP.read_text())
    if found is None:
        raise CannotMeasureError(f"{THP} does not say what is set")
    return found[1]


@contextmanager
def thp_always() -> Iterator[None]:
    """Transparent hugepages for all memory, on the whole machine, while this runs."""
    try:
        before = _thp_now()
        if before != "always":
            THP.write_text("always")
    except OSError as error:
        raise CannotMeasureError(f"{THP} cannot be set: {error.strerror}") from None
    try:
        yield
    finally:
        THP.write_text(before)


KINDS = {
    "footprint": Kind(
        ["--workloads", FOOTPRINT_ROWS],
        "6m",
        ["--budget", "100s", "--rounds", "1:1", "--allocators", FEW],
    ),
    "grown": Kind(
        ["--workloads", "grown-read", "--rounds", "1:1"],
        "4m",
        ["--budget", "50s", "--allocators", "glibc,brimful,snmalloc"],
    ),
    "thp": Kind(
        ["--workloads", "thinned-*", "--rounds", "1:1"],
        "4m",
        ["--budget", "60s", "--allocators", "glibc,brimful,jemalloc"],
        thp_always,
    ),
}

if __name__ == "__main__":
    sys.exit(runs.main(str(__doc__).split("\n", 1)[0], "--memory", KINDS))
