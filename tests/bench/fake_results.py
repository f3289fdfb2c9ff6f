# SPDX-License-Identifier: MIT
"""Results that no machine ever produced, for tests of everything that reads a result.

Two makers. `full()` looks like a real run: 15 allocators (one missing), 46 cells in all families,
two sweeps, failures of each kind, curves, histograms and lock counters; every allocator has a true
speed and a true size, so a test knows what the tables have to say. `constructed()` is for one point
at a time: the caller names the true value of each cell and allocator and everything else stays out
of the way.

Drift is part of both: each round has its own speed, common to all samples of the round, as a
shared machine has. Who compares paired samples does not see it; who compares means does.
"""

from __future__ import annotations

import hashlib
import math
import random
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cli"))

from brimful.bench.model import (
    Allocator,
    Cell,
    Contention,
    Curve,
    Histogram,
    LockCounts,
    Metric,
    Phase,
    Result,
    Sample,
    Status,
)

Failures = Mapping[tuple[str, str], tuple[Status, str]]  # (cell, allocator) → how and why

ENVIRONMENT = {
    "cpu": "Imaginary 9000 (made up)",
    "cpus": 2,
    "memory_kib": 24 << 20,
    "kernel": "6.1.0",
    "glibc": "2.36",
    "thp": "madvise",
    "governor": "performance",
    "commit": "0123456789ab",
    "started": "2026-01-02T03:04:05",
}

# name, version, true time and true memory against glibc; the names are those of real allocators so
# that tables have their true widths, the figures are inventions
SPEEDS: tuple[tuple[str, str, float, float], ...] = (
    ("glibc", "2.36", 1.0, 1.0),
    ("brimful", "0.1", 0.74, 0.88),
    ("brimful-thread", "0.1", 0.78, 0.88),
    ("jemalloc-5.3.0", "5.3.0", 0.92, 1.10),
    ("jemalloc-5.3.1", "5.3.1", 0.90, 1.08),
    ("gperftools", "2.10", 0.95, 1.35),
    ("tcmalloc-percpu", "2024-01", 0.88, 1.40),
    ("tcmalloc-perthread", "2024-01", 0.93, 1.45),
    ("mimalloc-2.0", "2.0.9", 0.80, 1.30),
    ("mimalloc-2.2", "2.2.4", 0.77, 1.28),
    ("mimalloc-3.1", "3.1.5", 0.76, 1.45),
    ("snmalloc", "0.7.6", 0.73, 1.05),
    ("rpmalloc", "1.4.5", 0.82, 1.15),
    ("scudo", "19", 2.10, 0.97),
    ("hardened-malloc", "", 3.00, 0.80),
)

# family → workloads of one cell each
WORKLOADS: dict[str, tuple[str, ...]] = {
    "threads": ("larson", "larson-sized", "xmalloc", "mstress", "rptest", "sh8", "cache-thrash"),
    "single": ("random-slots", "glibc-simple", "sh6", "alloc-test"),
    "compute": ("cfrac", "espresso", "barnes"),
    "large": ("malloc-large", "realloc-growth"),
    "memory": ("fragmentation", "burst-idle", "idle-threads", "leak-at-exit"),
    "latency": ("latency-mixed",),
    "start": ("cold-start",),
    "program": ("redis-set", "lua", "sqlite3"),
}
THREADS = tuple(2**k for k in range(11)) + (1024 * 2,)
# Of idle-threads: what stays for each thread, with a goal that some meet.
PER_THREAD = (
    Metric("idle_kib_per_thread", "resident for each idle thread", "KiB", 1),
    Metric("threads_started", "threads", "count"),
)
OPERATIONS = 4e6  # of each row
SIZES = (16, 64, 256, 1024, 4096, 16384, 65536, 262144)


def _noisy(chance: random.Random, value: float, spread: float) -> float:
    return value * math.exp(chance.gauss(0, spread))


def _metrics(seconds: float, peak_kib: float, work: float) -> dict[str, float]:
    """The other figures of a sample, in sensible proportions to its time and its size."""
    return {
        "seconds": seconds,
        "wall_s": seconds + 0.004,
        "user_s": seconds * 0.9,
        "system_s": seconds * 0.08,
        "peak_rss_kib": peak_kib,
        "mean_rss_kib": peak_kib * 0.8,
        "idle_rss_kib": peak_kib * 0.3,
        "peak_pss_kib": peak_kib * 0.98,
        "huge_share": 0.25,
        "ullage": peak_kib / (work * 20000),
        "minor_faults": peak_kib / 4,
        "major_faults": 0.0,
        "voluntary_switches": 40.0,
        "involuntary_switches": 7.0,
    }


def constructed(
    times: Mapping[str, Mapping[str, float]],
    *,
    memory: Mapping[str, Mapping[str, float]] | None = None,
    failures: Failures | None = None,
    rounds: int = 10,
    spread: float = 0.01,
    drift: float = 0.05,
    seed: int = 1,
    again: str = "glibc",
    ours: Collection[str] = ("brimful",),
    sha256: Mapping[str, str] | None = None,
    finished: bool = True,
) -> Result:
    """A result in which `times[cell][allocator]` is the truth, in seconds.

    `spread` is the standard deviation of the logarithm of a sample, `drift` that of a round.
    `memory` (KiB) is 10,000 where it says nothing. A cell named "a@8" is point 8 of the sweep "a".
    """
    chance = random.Random(seed)
    names = list(dict.fromkeys(name for row in times.values() for name in row))
    hashes = sha256 or {}
    result = Result(
        environment=dict(ENVIRONMENT),
        options={"seed": seed, "command_line": "brimful bench"},
        allocators=[
            Allocator(name, title=name, sha256=hashes.get(name, f"{name:0<64}"), ours=name in ours)
            for name in names
        ],
        cells=[_plain_cell(name) for name in times],
        finished=finished,
    )
    for cell, row in times.items():
        sizes = (memory or {}).get(cell, {})
        for turn in range(rounds):
            speed = math.exp(chance.gauss(0, drift))
            for name in row:
                for second in (False, True) if name == again else (False,):
                    seconds = _noisy(chance, row[name], spread) * speed
                    peak = _noisy(chance, sizes.get(name, 10000.0), spread / 4)
                    result.samples.append(
                        Sample(
                            cell,
                            name,
                            turn,
                            Status.OK,
                            again=second,
                            metrics=_metrics(seconds, peak, row[name]),
                        )
                    )
    fail(result, failures or {})
    return result


def _plain_cell(name: str) -> Cell:
    workload, _, point = name.partition("@")
    if not point:
        return Cell(name, workload, "single", title=name)
    return Cell(name, workload, "sweep", title=name, axis="threads", at=float(point))


def fail(result: Result, failures: Failures) -> None:
    """Let the last sample of each named cell and allocator fail: one failure is enough to count."""
    for (cell, allocator), (status, reason) in failures.items():
        at = max(
            place
            for place, sample in enumerate(result.samples)
            if (sample.cell, sample.allocator) == (cell, allocator)
        )
        round_number = result.samples[at].round
        result.samples[at] = Sample(cell, allocator, round_number, status, reason)


FAILURES: Failures = {
    ("larson", "rpmalloc"): (Status.CRASHED, "killed by signal 11 (SIGSEGV)"),
    ("thread-sweep@2048", "scudo"): (Status.TIMED_OUT, "not finished after 60 s"),
    ("thread-sweep@1024", "scudo"): (Status.TIMED_OUT, "not finished after 60 s"),
    ("fragmentation", "mimalloc-3.1"): (Status.FAILED, "exit code 1: block 17 holds other bytes"),
    ("redis-set", "tcmalloc-percpu"): (Status.NOT_LOADED, "malloc is libjemalloc.so.2's"),
    ("burst-idle", "brimful-thread"): (Status.FAILED, "exit code 3"),
}


def full(*, rounds: int = 10, seed: int = 7) -> Result:
    """What a whole run looks like. brimful is slower than its rivals in xmalloc and cold-start."""
    chance = random.Random(seed)
    cells = _cells()
    slower = {("xmalloc", "brimful"): 1.25, ("cold-start", "brimful"): 1.3}
    times: dict[str, dict[str, float]] = {}
    memory: dict[str, dict[str, float]] = {}
    for cell in cells:
        base = 0.4 * (1 + math.log2(cell.at) / 8 if cell.at else 1.0)
        size = 20000.0 * (1 + cell.at / 500 if cell.axis == "threads" else 1.0)
        times[cell.name] = {}
        memory[cell.name] = {}
        for name, _, time, peak in SPEEDS[:-1]:
            own = 1.0 if name == "glibc" else _noisy(chance, 1.0, 0.08)
            times[cell.name][name] = base * time * own * slower.get((cell.name, name), 1.0)
            memory[cell.name][name] = size * peak * own
    result = constructed(
        times,
        memory=memory,
        failures=FAILURES,
        rounds=rounds,
        seed=seed,
        spread=0.012,
        ours=("brimful", "brimful-thread"),
    )
    result.cells = [*cells, _MISSING_CELL]
    result.samples = [_with_own_figure(sample) for sample in result.samples]
    result.allocators = [_allocator(name, version) for name, version, _, _ in SPEEDS]
    result.curves = [_curve(chance, "burst-idle", name, peak) for name, _, _, peak in SPEEDS[:-1]]
    result.contention = [
        contention(cell, name, waited, busy=8)
        for cell in ("larson", "thread-sweep@2", "thread-sweep@64", "thread-sweep@2048")
        for name, waited in (("brimful", 4), ("brimful-thread", 400))
    ]
    result.contention.append(Contention("xmalloc", "brimful", missing="printed no lock counters"))
    result.histograms = [
        _histogram(chance, name, operation, band, time)
        for name, _, time, _ in SPEEDS[:-1]
        for operation in ("malloc", "free", "realloc")
        for band in ("1-64", "65-512", "513-4096")
    ]
    return result


_MISSING_CELL = Cell(
    "postgres-pgbench", "postgres-pgbench", "program", missing="pgbench is not installed"
)


def _cells() -> list[Cell]:
    cells = []
    for family, names in WORKLOADS.items():
        for name in names:
            threads = 2 if family == "threads" else 1
            text = f"what {name} does"
            cell = Cell(name, name, family, text, f"{name} as published", text, (), threads)
            if name == "burst-idle":
                cell = replace(cell, figure="resident_idle_end_mib")
            if name == "idle-threads":
                cell = replace(cell, figure=PER_THREAD[0].key, figures=PER_THREAD)
            cells.append(cell)
    for at in THREADS:
        name = f"thread-sweep@{at}"
        cells.append(Cell(name, "thread-sweep", "sweep", threads=at, axis="threads", at=at))
    for at in SIZES:
        cells.append(Cell(f"size-sweep@{at}", "size-sweep", "sweep", axis="size", at=at))
    return cells


def _with_own_figure(sample: Sample) -> Sample:
    """burst-idle and idle-threads compare no time but memory; such a figure stands in for the time.

    All others count operations.
    """
    if not sample.metrics:
        return sample
    if sample.cell == "burst-idle":
        extra = {"resident_idle_end_mib": sample.metrics["idle_rss_kib"] / 1024}
    elif sample.cell == "idle-threads":
        kib = 0.25 if sample.allocator == "brimful" else sample.metrics["peak_rss_kib"] / 100
        extra = {"idle_kib_per_thread": kib, "threads_started": 10000}
    else:
        return replace(sample, extra={"operations": OPERATIONS})
    metrics = sample.metrics | {"seconds": next(iter(extra.values()))}
    return replace(sample, metrics=metrics, extra=extra)


def contention(cell: str, allocator: str, contended: float, **more: float) -> Contention:
    """Counters of a run in which `contended` of a thousand acquisitions of one lock had to wait."""
    heap = LockCounts(acquisitions=1000, contended=contended, wait_ns=500 * contended, **more)
    return Contention(cell, allocator, OPERATIONS, 1, {"heap": heap, "central": LockCounts()})


def _allocator(name: str, version: str) -> Allocator:
    ours = name.startswith("brimful")
    missing = "its source is not in any registry that is asked" if name == SPEEDS[-1][0] else ""
    digest = "" if missing else hashlib.sha256(name.encode()).hexdigest()
    return Allocator(
        name=name,
        title=name,
        version=version,
        origin="this checkout" if ours else f"Debian package lib{name}",
        library="" if name == "glibc" or missing else f"/usr/lib/lib{name}.so",
        sha256=digest,
        mode="per-CPU caches" if "percpu" in name or name == "brimful" else "",
        missing=missing,
        ours=ours,
    )


def _curve(chance: random.Random, cell: str, allocator: str, peak: float) -> Curve:
    """Up, idle, half-way down, up again: the shape of burst-idle."""
    seconds = tuple(k * 0.05 for k in range(200))
    shape = [min(1.0, s) if s < 4 else 1 - 0.5 * min(1.0, s - 4) if s < 7 else 1 for s in seconds]
    rss = tuple(_noisy(chance, 60000 * peak * (0.05 + level), 0.01) for level in shape)
    return Curve(
        cell=cell,
        allocator=allocator,
        seconds=seconds,
        rss_kib=rss,
        pss_kib=tuple(value * 0.97 for value in rss),
        huge_kib=tuple(value * 0.2 for value in rss),
        phases=(Phase("burst", 0.0), Phase("idle", 4.0), Phase("burst", 7.0)),
    )


def _histogram(
    chance: random.Random, allocator: str, operation: str, band: str, time: float
) -> Histogram:
    """A body around 20 ns × the allocator's speed and a tail of ever rarer slow calls."""
    scale = 20 * time * {"malloc": 1.0, "free": 0.8, "realloc": 2.5}[operation]
    counts = []
    for step in range(60):
        value = scale * 1.2**step / 3
        body = 1_000_000 * math.exp(-((math.log(value / scale) / 0.4) ** 2))
        tail = 2_000 * (scale / value) ** 1.3
        count = int(_noisy(chance, body + tail, 0.05))
        if count:
            counts.append((round(value, 1), count))
    return Histogram(
        cell="latency-mixed",
        allocator=allocator,
        operation=operation,
        band=band,
        counts=tuple(counts),
        max_ns=counts[-1][0] * 1.1,
    )
