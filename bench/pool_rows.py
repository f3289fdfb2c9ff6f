# SPDX-License-Identifier: MIT
"""The rows of the pools' bench: what is run, how often, and what is kept of it.

Each row is a function that fills `into` as it goes, so that an interrupted run keeps what it has. A
sample that failed is None in its place.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import benchlib
from pool_runs import (
    Bench,
    Contender,
    Data,
    malloc_contenders,
    page_contenders,
    tlsf_contenders,
)

Row = Callable[[Bench, Data], None]


def in_turns(contenders: Sequence[Contender], seed: int) -> list[Contender]:
    """The contenders in an order drawn anew for each round."""
    order = list(contenders)
    random.Random(seed).shuffle(order)
    return order


# --- TLSF: throughput -----------------------------------------------------------------------------

# The seed's loop has 512 bytes by default; the others are ranges that its authors try.
LOOPS = {
    "512 B": ("--least", 512, "--most", 512),
    "1 … 4096 B": ("--least", 1, "--most", 4096),
    "16 … 128 B, written to": ("--least", 16, "--most", 128, "--touch", 1),
}


def throughput(bench: Bench, into: Data) -> None:
    """Nanoseconds for each operation of the loop, in interleaved rounds."""
    pools = tlsf_contenders()
    general = malloc_contenders(("glibc", "jemalloc", "mimalloc2", "mimalloc3"))
    contenders = [*pools, *(one.growable() for one in pools), *general]
    operations = 1_000_000 if bench.short else 10_000_000
    for number in range(3 if bench.short else 5):
        for cell, arguments in LOOPS.items():
            bench.progress(f"throughput, round {number + 1}: {cell}")
            kept = into.setdefault(cell, {one.name: [] for one in contenders})
            for who in in_turns(contenders, number):
                line = (*arguments, "--operations", operations, "--seed", number)
                kept[who.name].append(bench.sample("loop", who, *line))


# --- TLSF: single calls ---------------------------------------------------------------------------

# A pool of a mebibyte, half of it in use; the seed's table with large blocks; the first one with half of the
# blocks freed at once every 10,000 operations, as when a scene or a request ends.
SMALL = ("--slots", 1000, "--least", 16, "--most", 1024, "--bytes", 1 << 20)
SCENES = {
    "1000 blocks of 16 … 1024 B": SMALL,
    "1000 blocks of 16 … 1024 B, half of them freed now and then": (*SMALL, "--swing", 10000),
    "10000 blocks of 1 … 16384 B": ("--slots", 10000, "--least", 1, "--most", 16384),
}
KINDS = ("malloc", "free", "realloc in place", "realloc that moves")
QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 1.0)
KIND_SHIFT, NS_MASK = 30, (1 << 30) - 1

Numbers = NDArray[np.uint32]


def quantiles(ns: Numbers) -> list[float]:
    return [float(value) for value in np.quantile(ns, QUANTILES, method="inverted_cdf")]


def summary(runs: Sequence[Numbers]) -> Data:
    """Quantiles of each kind of call: the median of single runs, and of the best of all runs.

    Runs of one seed make the same calls in the same order. What a call takes in the best of them is the
    pool's own time; the machine interrupts other calls each time. "bounded" is all but reallocs that
    move, which copy.
    """
    length = min(len(run) for run in runs)
    best = np.minimum.reduce([run[:length] & NS_MASK for run in runs])
    kinds = runs[0][:length] >> KIND_SHIFT
    result: Data = {}
    masks = {name: kinds == number for number, name in enumerate(KINDS)}
    for name, mask in {**masks, "bounded": kinds != KINDS.index("realloc that moves")}.items():
        if not mask.any():
            continue
        single = [quantiles((run[:length] & NS_MASK)[mask]) for run in runs]
        result[name] = {
            "calls": int(mask.sum()),
            "best": quantiles(best[mask]),
            "single": [float(value) for value in np.median(single, axis=0)],
        }
    return result


def latency(bench: Bench, into: Data) -> None:
    """How long single calls take: whole pools, and general allocators."""
    general = malloc_contenders(("glibc", "jemalloc", "mimalloc2", "mimalloc3"))
    operations = 200_000 if bench.short else 1_000_000
    into["quantiles"] = list(QUANTILES)
    into["scenes"] = {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "calls"
        for scene, arguments in SCENES.items():
            kept = into["scenes"].setdefault(scene, {})
            for who in [*tlsf_contenders(), *general]:
                bench.progress(f"latency: {scene}, {who.name}")
                runs = []
                for _ in range(3 if bench.short else 7):
                    line = (*arguments, "--operations", operations, "--out", str(out))
                    if bench.sample("latency", who, *line) is not None:
                        runs.append(np.fromfile(out, dtype=np.uint32))
                kept[who.name] = summary(runs) if runs else None


CALLS = ("malloc", "free", "shrink", "grow")


def instructions(bench: Bench, into: Data) -> None:
    """Instructions of the slowest call by size and fill of the pool, counted one by one.

    tests/golden/tlsf_steps.cpp says how the slowest is found. "churn": the slowest of random calls.
    """
    bench.progress("instructions")
    tlsf = Contender("brimful", ())
    printed = bench.printed("tlsf_steps", tlsf)
    if printed is not None:
        names = ("bytes", "fill", *CALLS, "churn")
        rows = [map(int, line.split()) for line in printed.splitlines()]
        into["rows"] = [dict(zip(names, row, strict=True)) for row in rows]


# --- TLSF: memory ---------------------------------------------------------------------------------

MIXES = {
    "512": (512, 512),
    "0 … 2048": (0, 2048),
    "0 … 4096": (0, 4096),
    "2048 … 4096": (2048, 4096),
    "0 … 16384": (0, 16384),
}
POOL_BYTES = {"1 MiB": 1 << 20, "16 MiB": 16 << 20, "256 MiB": 256 << 20}


def fill(bench: Bench, into: Data) -> None:
    """Bytes asked for over bytes given, at the first request that is refused."""
    seeds = {"1 MiB": 50, "16 MiB": 10, "256 MiB": 2}
    for who in tlsf_contenders():
        for size, count in POOL_BYTES.items():
            if bench.short and size == "256 MiB":
                continue
            bench.progress(f"fill: {size}, {who.name}")
            for mix, (least, most) in MIXES.items():
                for churn in (0, 1):
                    line = ("--bytes", count, "--least", least, "--most", most, "--churn", churn)
                    found = bench.sample("fill", who, *line, "--seeds", seeds[size])
                    kept = into.setdefault(mix, {}).setdefault(who.name, {}).setdefault(size, {})
                    kept["churn" if churn else "plain"] = found and found["shares"]


# --- sweeps ---------------------------------------------------------------------------------------

SMALL_POOL = 100 << 20  # runs out at about 10,000 bytes, as the pool of the report that we imitate
RANGES = ((0, 2048), (0, 4096), (2048, 4096), (0, 16384))
PAGE_RANGES = ((0, 2048), (0, 4032), (2048, 4032))  # what fits into a page beside a header


def sizes(bench: Bench, into: Data) -> None:
    """Mean and slowest operation by size: 0 to 16 KiB, and 0 to 4 KiB for the pools of pages."""
    pools = tlsf_contenders()
    small = Contender("brimful, 100 MiB", (*pools[0].arguments, "--bytes", str(SMALL_POOL)))
    jobs = [
        *((one, 16384) for one in pools),
        *((one.growable(), 16384) for one in pools[:2]),
        (small, 16384),
        *((one, 16384) for one in malloc_contenders(("glibc", "mimalloc3"))),
        *((one, 4608) for one in page_contenders()),
    ]
    step = 512 if bench.short else 64
    for who, most in jobs:
        bench.progress(f"sizes: {who.name}")
        line = ("--from", 0, "--to", most, "--step", step, "--width", 64, "--repeats", 2)
        found = bench.sample("sweep", who, *line, "--operations", 10000 if bench.short else 40000)
        into[who.name] = found and found["points"]


def runs(bench: Bench, into: Data) -> None:
    """The same range 50 times over."""
    pools = tlsf_contenders()
    jobs = {
        "tlsf": ([pools[0], pools[0].growable(), *pools[1:]], RANGES),
        "pages": (page_contenders(), PAGE_RANGES),
    }
    for kind, (contenders, ranges) in jobs.items():
        for who in contenders:
            bench.progress(f"runs: {who.name}")
            for least, most in ranges:
                line = ("--runs", 5 if bench.short else 50, "--least", least, "--most", most)
                found = bench.sample("sweep", who, *line, "--operations", 40000, "--repeats", 0)
                kept = into.setdefault(kind, {}).setdefault(f"{least} … {most}", {})
                kept[who.name] = found and found["points"]


# --- the pools of pages ---------------------------------------------------------------------------

# Denser around half a page, where the page pool's cliff is, and around 3/4 of one, where zsmalloc's was.
BANDS: tuple[int, ...] = (
    *(16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1280, 1344, 1536, 1792, 1984),
    *(2032, 2064, 2128, 2304, 2560, 2816, 3072, 3264, 3520, 3776, 4032, 4080),
)


SHOWN_BANDS = (16, 64, 256, 512, 1024, 1344, 1984, 2064, 2560, 3072, 4032)  # in the page's table


def bands(bench: Bench, into: Data) -> None:
    """Time of free, malloc and a write, and memory held, by size of the blocks."""
    contenders = [*page_contenders(), *malloc_contenders()]
    some = [size for size in BANDS if not bench.short or size in SHOWN_BANDS]
    into |= {one.name: {} for one in contenders}
    for number in range(1 if bench.short else 2):
        for size in some:
            bench.progress(f"bands, round {number + 1}: {size} bytes")
            for who in in_turns(contenders, number):
                line = ("--size", size, "--operations", 50000, "--seed", number + 1)
                found = bench.sample("bands", who, *line)
                into[who.name].setdefault(str(size), []).append(found)


LIVES = {
    "16 … 4096 B": ("--least", 16, "--most", 4096),
    "16 … 512 B": ("--least", 16, "--most", 512),
    "1024 … 3072 B": ("--least", 1024, "--most", 3072),
}


def compaction(bench: Bench, into: Data) -> None:
    """The handle pool after churn to 30 % live, and after compaction."""
    handle = Contender("handle pool", ())
    for life, arguments in LIVES.items():
        bench.progress(f"compaction: {life}")
        for seed in range(1 if bench.short else 3):
            line = (*arguments, "--megabytes", 128 if bench.short else 256, "--seed", seed + 1)
            into.setdefault(life, []).append(bench.sample("compaction", handle, *line))


def zcache(bench: Bench, into: Data) -> None:
    """A cache of compressed pieces of real files, on the handle pool and on every malloc."""
    compare = benchlib.ROOT / "examples" / "zcache" / "compare.py"
    for workload in ("pages-lz4", "pages-zstd"):
        bench.progress(f"zcache: {workload}")
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "results.json"
            line = ["--workloads", workload, "--json", str(out), "--rounds", "1"]
            line += ["--bytes", "12M" if bench.short else "96M"]
            if bench.script(f"zcache, {workload}", compare, *line):
                into[workload] = json.loads(out.read_text())["results"][workload]


def destroy(bench: Bench, into: Data) -> None:
    """A heap of a million objects: freed one by one, and destroyed."""
    (ours,) = malloc_contenders(("brimful",))
    ours = replace(ours, arguments=())
    for number in range(2 if bench.short else 7):
        for size in ("mixed", "64"):
            bench.progress(f"destroy, round {number + 1}: {size}")
            found = bench.sample("heap_destroy", ours, 1_000_000, size, number + 1)
            into.setdefault(size, []).append(found)


ROWS: dict[str, Row] = {
    "throughput": throughput,
    "latency": latency,
    "instructions": instructions,
    "fill": fill,
    "sizes": sizes,
    "runs": runs,
    "bands": bands,
    "compaction": compaction,
    "zcache": zcache,
    "destroy": destroy,
}
