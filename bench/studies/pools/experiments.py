# SPDX-License-Identifier: MIT
"""The parts of the study: what is run, how often, and what is kept of it.

Each is a function that fills `into` as it goes, so that an interrupted run keeps what it has. A
sample that failed is None in its place.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brimful.bench import statistics
from brimful.bench.launch import last_line
from brimful.bench.study.model import ROOT, Data
from studies.pools import contenders
from studies.pools.contenders import BUILT, OURS
from studies.pools.samples import STEPS, TIMEOUT_S, Sampler, in_turns

Experiment = Callable[[Sampler, Data], None]


# --- TLSF: throughput -----------------------------------------------------------------------------

# The seed's loop has 512 bytes by default; the others are ranges that its authors try.
LOOPS = {
    "512 B": ("--least", 512, "--most", 512),
    "1 … 4096 B": ("--least", 1, "--most", 4096),
    "16 … 128 B, written to": ("--least", 16, "--most", 128, "--touch", 1),
}


def throughput(sampler: Sampler, into: Data) -> None:
    """Nanoseconds for each operation of the loop, in interleaved rounds."""
    pools = contenders.tlsf()
    everybody = [*pools, *(one.growable() for one in pools), *contenders.general()]
    operations = 1_000_000 if sampler.short else 10_000_000
    loops: Data = {cell: {one.name: [] for one in everybody} for cell in LOOPS}
    for number in range(3 if sampler.short else 5):
        for cell, arguments in LOOPS.items():
            sampler.progress(f"round {number + 1}, {cell}")
            for who in in_turns(everybody, number):
                line = (*arguments, "--operations", operations, "--seed", number)
                loops[cell][who.name].append(sampler.sample("loop", who, *line))
            ratios = {one: over(loops[cell][one], loops[cell]["brimful"]) for one in loops[cell]}
            into[cell] = {"samples": loops[cell], "over_brimful": ratios}


def over(theirs: Sequence[Data | None], ours: Sequence[Data | None]) -> Data | None:
    """The ratio of samples of the same rounds, of those that have both; None if none has."""
    key = "ns_per_operation"
    pairs = [(a[key], b[key]) for a, b in zip(theirs, ours, strict=False) if a and b]
    return vars(statistics.paired_ratio(*zip(*pairs, strict=True))) if pairs else None


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


def latency(sampler: Sampler, into: Data) -> None:
    """How long single calls take: whole pools, and general allocators."""
    operations = 200_000 if sampler.short else 1_000_000
    into["quantiles"] = list(QUANTILES)
    into["scenes"] = {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "calls"
        for scene, arguments in SCENES.items():
            kept = into["scenes"].setdefault(scene, {})
            for who in [*contenders.tlsf(), *contenders.general()]:
                sampler.progress(f"{scene}, {who.name}")
                runs = []
                for _ in range(3 if sampler.short else 7):
                    line = (*arguments, "--operations", operations, "--out", str(out))
                    if sampler.sample("latency", who, *line) is not None:
                        runs.append(np.fromfile(out, dtype=np.uint32))
                kept[who.name] = summary(runs) if runs else None


CALLS = ("malloc", "free", "shrink", "grow")


def instructions(sampler: Sampler, into: Data) -> None:
    """Instructions of the slowest call by size and fill of the pool, counted one by one.

    tests/golden/tlsf_steps.cpp says how the slowest is found. "churn": the slowest of random calls.
    """
    sampler.progress()
    done = subprocess.run(
        [BUILT / STEPS.stem], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        sampler.record.fail("instructions", last_line(done.stderr) or done.returncode)
        return
    names = ("bytes", "fill", *CALLS, "churn")
    rows = [map(int, line.split()) for line in done.stdout.splitlines()]
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


def fill(sampler: Sampler, into: Data) -> None:
    """Bytes asked for over bytes given, at the first request that is refused."""
    seeds = {"1 MiB": 50, "16 MiB": 10, "256 MiB": 2}
    for who in contenders.tlsf():
        for size, count in POOL_BYTES.items():
            if sampler.short and size == "256 MiB":
                continue
            sampler.progress(f"{size}, {who.name}")
            for mix, (least, most) in MIXES.items():
                for churn in (0, 1):
                    line = ("--bytes", count, "--least", least, "--most", most, "--churn", churn)
                    found = sampler.sample("fill", who, *line, "--seeds", seeds[size])
                    kept = into.setdefault(mix, {}).setdefault(who.name, {}).setdefault(size, {})
                    kept["churn" if churn else "plain"] = found and found["shares"]


# --- sweeps ---------------------------------------------------------------------------------------

SMALL_POOL = 100 << 20  # runs out at about 10,000 bytes, as the pool of the report that we imitate
RANGES = ((0, 2048), (0, 4096), (2048, 4096), (0, 16384))
PAGE_RANGES = ((0, 2048), (0, 4032), (2048, 4032))  # what fits into a page beside a header


def sizes(sampler: Sampler, into: Data) -> None:
    """Mean and slowest operation by size: 0 to 16 KiB, and 0 to 4 KiB for the pools of pages."""
    pools = contenders.tlsf()
    small = pools[0].called("100 MiB", "--bytes", str(SMALL_POOL))
    jobs = [
        *((one, 16384) for one in pools),
        *((one.growable(), 16384) for one in pools[:2]),
        (small, 16384),
        *((one, 16384) for one in contenders.general() if one.name in ("glibc", "mimalloc3")),
        *((one, 4608) for one in contenders.pages()),
    ]
    step = 512 if sampler.short else 64
    for who, most in jobs:
        sampler.progress(who.name)
        line = ("--from", 0, "--to", most, "--step", step, "--width", 64, "--repeats", 2)
        found = sampler.sample(
            "sweep", who, *line, "--operations", 10000 if sampler.short else 40000
        )
        into[who.name] = found and found["points"]


def runs(sampler: Sampler, into: Data) -> None:
    """The same range 50 times over."""
    pools = contenders.tlsf()
    jobs = {
        "tlsf": ([pools[0], pools[0].growable(), *pools[1:]], RANGES),
        "pages": (contenders.pages(), PAGE_RANGES),
    }
    for kind, (everybody, ranges) in jobs.items():
        for who in everybody:
            sampler.progress(who.name)
            for least, most in ranges:
                line = ("--runs", 5 if sampler.short else 50, "--least", least, "--most", most)
                found = sampler.sample("sweep", who, *line, "--operations", 40000, "--repeats", 0)
                kept = into.setdefault(kind, {}).setdefault(f"{least} … {most}", {})
                kept[who.name] = found and found["points"]


# --- the pools of pages ---------------------------------------------------------------------------

# Denser around half a page, where the page pool's cliff is, and around 3/4 of one, where zsmalloc's was.
BANDS: tuple[int, ...] = (
    *(16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1280, 1344, 1536, 1792, 1984),
    *(2032, 2064, 2128, 2304, 2560, 2816, 3072, 3264, 3520, 3776, 4032, 4080),
)


SHOWN_BANDS = (16, 64, 256, 512, 1024, 1344, 1984, 2064, 2560, 3072, 4032)  # in the page's table


def bands(sampler: Sampler, into: Data) -> None:
    """Time of free, malloc and a write, and memory held, by size of the blocks."""
    everybody = [*contenders.pages(), *contenders.general(), contenders.brimful_malloc()]
    some = [size for size in BANDS if not sampler.short or size in SHOWN_BANDS]
    into |= {one.name: {} for one in everybody}
    for number in range(1 if sampler.short else 2):
        for size in some:
            sampler.progress(f"round {number + 1}, {size} bytes")
            for who in in_turns(everybody, number):
                line = ("--size", size, "--operations", 50000, "--seed", number + 1)
                found = sampler.sample("bands", who, *line)
                into[who.name].setdefault(str(size), []).append(found)


LIVES = {
    "16 … 4096 B": ("--least", 16, "--most", 4096),
    "16 … 512 B": ("--least", 16, "--most", 512),
    "1024 … 3072 B": ("--least", 1024, "--most", 3072),
}


def compaction(sampler: Sampler, into: Data) -> None:
    """The handle pool after churn to 30 % live, and after compaction."""
    for life, arguments in LIVES.items():
        sampler.progress(life)
        for seed in range(1 if sampler.short else 3):
            line = (*arguments, "--megabytes", 128 if sampler.short else 256, "--seed", seed + 1)
            into.setdefault(life, []).append(sampler.sample("compaction", OURS, *line))


ZCACHE = ROOT / "build" / "release" / "examples" / "zcache" / "zcache"
FOLDERS = ("/usr/include", "/usr/share/doc", "/usr/lib")  # with files to compress
CACHES = {
    "pages-lz4": ("--codec", "lz4"),
    "pages-zstd": ("--codec", "zstd"),
    "pages-lru": ("--codec", "lz4", "--limit", "64M", "--erase", "0"),
    "objects-64k": ("--codec", "lz4", "--piece", "64K"),
}


def zcache(sampler: Sampler, into: Data) -> None:
    """A cache of compressed pieces of real files, on the handle pool and on every malloc."""
    if not ZCACHE.exists():
        sampler.record.fail("zcache", "not built: it needs libzstd-dev and liblz4-dev")
        return
    handles = contenders.malloc("glibc", "handle pool", "--store", "handles")
    names = ("glibc", "brimful", *contenders.GENERAL[1:], *contenders.UNDER_THE_CACHE)
    mallocs = [contenders.malloc(name, name, "--store", "malloc") for name in names]
    options = sampler.options
    for workload in options.caches.split(","):
        line = (*CACHES[workload], "--bytes", options.bytes, "--settle", options.settle, *FOLDERS)
        into[workload] = []
        for who in (handles, *mallocs):
            sampler.progress(f"{workload}, {who.name}")
            if found := sampler.run(ZCACHE, who, *line):
                into[workload].append(found | {"subject": who.name})


def destroy(sampler: Sampler, into: Data) -> None:
    """A heap of a million objects: freed one by one, and destroyed."""
    ours = contenders.malloc("brimful")
    for number in range(2 if sampler.short else 7):
        for size in ("mixed", "64"):
            sampler.progress(f"round {number + 1}, {size}")
            found = sampler.sample("heap_destroy", ours, 1_000_000, size, number + 1)
            into.setdefault(size, []).append(found)


EXPERIMENTS: Mapping[str, Experiment] = {
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
