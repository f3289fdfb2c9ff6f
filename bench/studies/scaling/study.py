# SPDX-License-Identifier: MIT
"""What brimful costs on machines with more CPUs than this one.

Runs the simulated machines of tests/topology at several numbers of CPUs: `topology` for the events
(its library is the shipped one), `topology_traffic` for cache lines and locks, and `hold_times` for
the time that a lock is held. From these counts and from public figures of what it takes to move a
cache line, it derives time for each operation, use of the locks, and memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from brimful.bench.study import records
from brimful.bench.study.model import ROOT, Data, Run, Study, StudyError
from brimful.bench.study.pages import Place, table

PROGRAMS = ROOT / "build" / "release" / "tests"

# CPUs → nodes, as machines of this size have them.
MACHINES = {1: 1, 2: 1, 8: 1, 64: 2, 256: 8, 1600: 32}
# The same for all: caches and slabs are equally far from a steady state.
# A multiple of 32, the period of "phases".
ROUNDS = 64
CLASSES = 32  # that the workloads use
SHOWN = (64, 256, 1600)
# ns to get a cache line that another core has modified: in the same socket, and from another one.
# Medians of nviennot/core-to-core-latency (README): Xeon 8375C 51 and 108, Xeon 8275CL 47 and 134,
# EPYC 7R13 107 and 197.
NEAR_NS, FAR_NS = 50.0, 135.0
# malloc and free calls a second of one CPU: a program that allocates often, and one that does little else.
RATES = {"1 M/s": 1e6, "10 M/s": 1e7}


def said(program: str, *arguments: str) -> Data:
    command = [str(PROGRAMS / program), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    except OSError as error:
        raise StudyError(f"{records.shown(PROGRAMS / program)}: {error.strerror}") from None
    if done.returncode != 0:
        raise StudyError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
    result: Data = json.loads(done.stdout)
    return result


def measure(run: Run) -> None:
    result = run.record.results
    result["hold_times"] = said("hold_times")
    result["machines"] = {}
    for cpus, nodes in MACHINES.items():
        if run.options.short and cpus not in SHOWN[:2]:
            continue
        print(f"scaling: {cpus} CPUs", file=sys.stderr)
        options = ["--cpus", str(cpus), "--nodes", str(nodes), "--rounds", str(ROUNDS), "--json"]
        result["machines"][str(cpus)] = {
            "events": said("topology", *options),
            "traffic": said("topology_traffic", *options),
        }


# --- derived figures ----------------------------------------------------------------------------


class Cell:
    """One workload on one machine."""

    def __init__(self, result: Data, cpus: int, workload: str) -> None:
        machine = result["machines"][str(cpus)]
        self.cpus = cpus
        self.shipped: Data = machine["events"]["workloads"][workload]
        self.watched: Data = machine["traffic"]["workloads"][workload]
        self.hold_times: Data = result["hold_times"]

    def event(self, name: str) -> float:
        """For each operation."""
        return float(self.shipped["events"][name] / self.shipped["operations"])

    def transfers(self, kind: str | None = None) -> float:
        return self._each("transfers", kind)

    def crossings(self, kind: str | None = None) -> float:
        return self._each("crossings", kind)

    def locks(self, rank: str) -> float:
        return self._each("locks", rank)

    def line_ns(self) -> float:
        """Time that an operation waits for lines of other CPUs, were each waited for alone."""
        far = self.crossings()
        return (self.transfers() - far) * NEAR_NS + far * FAR_NS

    def heap_hold_ns(self) -> float:
        """How long the heap lock is held: as long as here, and until its lines have come."""
        acquisitions = self.watched["locks"]["heap"]
        if acquisitions == 0:
            return 0.0
        moved = self.watched["transfers_in_heap_lock"] / acquisitions
        share = self.crossings() / self.transfers() if self.transfers() else 0.0
        return self.hold_times["slab_64_ns"] / 2 + moved * (NEAR_NS + share * (FAR_NS - NEAR_NS))

    def heap_use(self, rate: float) -> float:
        """Share of time that the heap lock is held; above 1 it is what limits the machine."""
        return self.cpus * rate * self.locks("heap") * self.heap_hold_ns() * 1e-9

    def class_use(self, rate: float) -> float:
        """Share of time that the lock of one class's index is held, were all used alike.

        A holder waits for the index's own line and for the header of the slab it lists.
        """
        acquisitions = self.watched["locks"]["central"]
        moved = 1 + self.watched["transfers"]["central"] / acquisitions if acquisitions else 0.0
        held = self.hold_times["central_add_take_ns"] / 2 + moved * FAR_NS
        return self.cpus * rate * self.locks("central") / CLASSES * held * 1e-9

    def _each(self, counts: str, name: str | None) -> float:
        found = self.watched[counts]
        total = sum(found.values()) if name is None else found[name]
        return float(total / self.watched["operations"])


def shown(result: Data) -> list[int]:
    """The machines of the tables, of those that were measured."""
    return [cpus for cpus in SHOWN if str(cpus) in result["machines"]]


def workloads(result: Data) -> list[str]:
    return list(next(iter(result["machines"].values()))["events"]["workloads"])


# --- tables -------------------------------------------------------------------------------------


def figure(value: float) -> str:
    """Three digits, without an exponent."""
    if value == 0:
        return "0"
    if value < 0.001:
        return "< 0.001"
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def event_table(result: Data, cpus: int) -> list[str]:
    names = workloads(result)
    cells = [Cell(result, cpus, name) for name in names]
    rows = []
    for event in result["machines"][str(cpus)]["events"]["workloads"][names[0]]["events"]:
        values = [1000 * cell.event(event) for cell in cells]
        if any(values):
            rows.append([f"`{event}`", *map(figure, values)])
    head = f"### Events for 1000 operations, {cpus} CPUs on {MACHINES[cpus]} nodes"
    return [head, "", *table(["event", *names], rows)]


def traffic_table(result: Data, cpus: int) -> list[str]:
    names = workloads(result)
    cells = [Cell(result, cpus, name) for name in names]
    rows = []
    for kind in result["machines"][str(cpus)]["traffic"]["workloads"][names[0]]["transfers"]:
        values = [1000 * cell.transfers(kind) for cell in cells]
        if any(values):
            rows.append([f"line: {kind}", *map(figure, values)])
    rows.append(["**all lines**", *(figure(1000 * cell.transfers()) for cell in cells)])
    rows.append(["of these between nodes", *(figure(1000 * cell.crossings()) for cell in cells)])
    for rank in ("context", "central", "heap"):
        rows.append([f"lock: {rank}", *(figure(1000 * cell.locks(rank)) for cell in cells)])
    head = (
        f"### Transfers of cache lines, and acquisitions of locks, for 1000 operations, {cpus} CPUs"
    )
    return [head, "", *table(["", *names], rows)]


def cost_table(result: Data) -> list[str]:
    names = workloads(result)
    rows = [
        [
            f"{cpus} CPUs, {MACHINES[cpus]} nodes",
            *(figure(Cell(result, cpus, name).line_ns()) for name in names),
        ]
        for cpus in shown(result)
    ]
    head = "### Time that an operation waits for other CPUs' lines, ns (derived)"
    return [head, "", *table(["", *names], rows)]


def lock_table(result: Data) -> list[str]:
    names = workloads(result)
    rows = []
    for cpus in shown(result):
        cells = [Cell(result, cpus, name) for name in names]
        what = f"{cpus} CPUs: "
        rows.append(
            [f"{what}heap lock held for, ns", *(figure(cell.heap_hold_ns()) for cell in cells)]
        )
        for label, rate in RATES.items():
            uses = [cell.heap_use(rate) for cell in cells]
            rows.append(
                [f"{what}heap lock in use at {label}", *(f"{100 * use:,.1f} %" for use in uses)]
            )
        full = []
        for cell in cells:
            use = cell.heap_use(1.0)
            full.append(figure(1e-6 / use) if use > 1e-9 else "–")
        rows.append([f"{what}heap lock saturated from, M/s a CPU", *full])
        uses = [cell.class_use(RATES["1 M/s"]) for cell in cells]
        rows.append([f"{what}one class's lock at 1 M/s", *(f"{100 * use:.1f} %" for use in uses)])
    head = "### The locks that CPUs share (derived; operations a second for each CPU)"
    return [head, "", *table(["", *names], rows)]


def memory_table(result: Data) -> list[str]:
    names = workloads(result)
    rows = []
    for cpus in shown(result):
        for label, field in (
            ("live objects", "live_bytes"),
            ("memory in slabs", "resident_bytes"),
            ("in magazines", "kept_bytes"),
            ("headers of slabs", "header_bytes"),
            ("contexts", "context_bytes"),
            ("granule table", "table_bytes"),
        ):
            found = [Cell(result, cpus, name).shipped["loaded"][field] for name in names]
            rows.append([f"{cpus} CPUs: {label}", *(f"{one / cpus / 1024:,.1f}" for one in found)])
        slabs = [Cell(result, cpus, name).shipped["loaded"]["slabs"] for name in names]
        rows.append([f"{cpus} CPUs: slabs", *(f"{one / cpus:,.1f}" for one in slabs)])
    return ["### Memory for each CPU while the program works, KiB", "", *table(["", *names], rows)]


def hold_lines(result: Data) -> list[str]:
    found = result["hold_times"]
    return [
        "### Held here, when nobody else wants the lock",
        "",
        f"A slab made and released, two acquisitions of the heap lock: {found['slab_64_ns']:.0f} ns "
        f"(64-byte objects), {found['slab_1024_ns']:.0f} ns (1 KiB), "
        f"{found['slab_32768_ns']:.0f} ns (32 KiB). "
        f"A slab put into the central index and taken out, two acquisitions of a class's lock: "
        f"{found['central_add_take_ns']:.0f} ns. For comparison, a malloc and a free that hit: "
        f"{found['malloc_free_hit_ns']:.1f} ns. Whole calls, so upper bounds.",
        "",
    ]


# --- the page -------------------------------------------------------------------------------------


def tables(result: Data) -> list[str]:
    """All tables; events and transfers of the largest machine of which they are shown."""
    largest = min(256, max(map(int, result["machines"])))
    return [
        *event_table(result, largest),
        *traffic_table(result, largest),
        *cost_table(result),
        *hold_lines(result),
        *lock_table(result),
        *memory_table(result),
    ]


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    from studies.scaling import charts

    path = files["scaling"]
    record = records.load(path)
    result, facts = record.results, record.environment
    meaning = "Cache lines from other CPUs for one operation, and memory for each CPU, from 1 to 1600 CPUs"
    source = (
        f"{place.source(path, facts)}. "
        f"Counts don't depend on the machine; the times held are of {facts['cpu']}."
    )
    drawn = place.chart("scaling", charts.chart(result), meaning)
    return {"": [*drawn, *tables(result), source]}


STUDY = Study(
    "scaling",
    title="What would brimful cost on machines with up to 1600 CPUs?",
    time="10 minutes",
    short_time="2 minutes",
    measure=measure,
    show=lambda record: tables(record.results) if record.results.get("machines") else [],
    figures=figures,
    pages=("docs/scaling.md",),
    needs=(
        "tools/install-deps.sh bench",
        "make lib",
        "cmake --build build/release --target topology topology_traffic hold_times",
    ),
)
