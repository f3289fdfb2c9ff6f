#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What brimful costs on machines with more CPUs than this one: writes the figures of docs/scaling.md.

Runs the simulated machines of tests/topology at several numbers of CPUs: `topology` for the events
(its library is the shipped one), `topology_traffic` for cache lines and locks, and `hold_times` for
the time that a lock is held. From these counts and from public figures of what it takes to move a
cache line, it derives time for each operation, use of the locks, and memory.

The raw data go to bench/results/scaling-DATE.json; the tables between the marker lines of
docs/scaling.md and the charts beside them are made from that and from nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import benchlib
import pages
from benchlib import BenchError

try:
    import altair as alt

    from brimful.bench.charts import look
    from brimful.bench.charts.parts import Layered, quiet_axis
    from brimful.bench.charts.parts import data as inline
except ImportError:
    sys.exit("scaling: altair is missing: run it by tools/in_venv.sh bench/scaling.py")

PAGE = benchlib.ROOT / "docs" / "scaling.md"
PROGRAMS = benchlib.ROOT / "build" / "release" / "tests"

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
Data = dict[str, Any]


def run(program: str, *arguments: str) -> Data:
    command = [str(PROGRAMS / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
    result: Data = json.loads(done.stdout)
    return result


def measure() -> Data:
    result: Data = {"what": "bench/scaling.py", "environment": benchlib.environment()}
    result["hold_times"] = run("hold_times")
    result["machines"] = {}
    for cpus, nodes in MACHINES.items():
        print(f"scaling: {cpus} CPUs", file=sys.stderr)
        options = ["--cpus", str(cpus), "--nodes", str(nodes), "--rounds", str(ROUNDS), "--json"]
        result["machines"][str(cpus)] = {
            "events": run("topology", *options),
            "traffic": run("topology_traffic", *options),
        }
    return result


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


def workloads(result: Data) -> list[str]:
    return list(next(iter(result["machines"].values()))["events"]["workloads"])


# --- tables -------------------------------------------------------------------------------------


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table; all columns but the first are figures and stand to the right."""

    def row(cells: list[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    return [row(head), "|---|" + "---:|" * (len(head) - 1), *map(row, rows), ""]


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
        for cpus in SHOWN
    ]
    head = "### Time that an operation waits for other CPUs' lines, ns (derived)"
    return [head, "", *table(["", *names], rows)]


def lock_table(result: Data) -> list[str]:
    names = workloads(result)
    rows = []
    for cpus in SHOWN:
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
    for cpus in SHOWN:
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


# --- charts -------------------------------------------------------------------------------------


def chart(result: Data) -> alt.TopLevelMixin:
    names = workloads(result)
    colours = ("#0072b2", "#86234f", "#00875f", "#a8458f", "#7d7d1c", "#3b2c94", "#7a5a36")
    traffic, memory = [], []
    for name in names:
        for cpus in MACHINES:
            cell = Cell(result, cpus, name)
            traffic.append({"workload": name, "at": cpus, "value": cell.transfers()})
            held = sum(
                cell.shipped["loaded"][field]
                for field in ("resident_bytes", "header_bytes", "context_bytes", "table_bytes")
            )
            memory.append({"workload": name, "at": cpus, "value": held / cpus / 1024})

    def panel(rows: list[Data], title: str) -> Layered:
        x = alt.X(
            "at:Q",
            scale=alt.Scale(type="log", base=2, nice=False),
            axis=quiet_axis("CPUs", values=list(MACHINES), labelExpr="format(datum.value, ',d')"),
        )
        y = alt.Y("value:Q", scale=alt.Scale(zero=True), axis=quiet_axis(title, tickCount=6))
        colour = alt.Color(
            "workload:N",
            scale=alt.Scale(domain=names, range=list(colours)),
            sort=names,
            legend=alt.Legend(title="workload", symbolType="stroke"),
        )
        base = alt.Chart(inline(rows)).encode(x=x, y=y, color=colour)
        marks = alt.layer(
            base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=30, opacity=1)
        )
        return marks.properties(width=300, height=240)

    both = alt.hconcat(
        panel(traffic, "cache lines from other CPUs, for one operation"),
        panel(memory, "memory held, KiB for each CPU"),
        spacing=30,
    )
    return both.configure(**look.config())


def draw(result: Data) -> list[str]:
    meaning = "Cache lines from other CPUs for one operation, and memory for each CPU, from 1 to 1600 CPUs"
    return pages.picture(PAGE, "scaling", chart(result), meaning)


# --- the page -----------------------------------------------------------------------------------


def figures(name: str, result: Data) -> str:
    facts = result["environment"]
    changed = ", with uncommitted changes" if facts.get("uncommitted_changes") else ""
    lines = [
        *draw(result),
        *event_table(result, 256),
        *traffic_table(result, 256),
        *cost_table(result),
        *hold_lines(result),
        *lock_table(result),
        *memory_table(result),
        f"Raw data: [`{name}`](../bench/results/{name}), {facts['date']}, "
        f"commit `{facts['commit'][:12]}`{changed}. "
        f"Counts don't depend on the machine; the times held are of {facts['cpu']}.",
        "",
    ]
    return "\n".join(lines)


def write_page(path: Path) -> None:
    text = figures(path.name, json.loads(path.read_text()))
    PAGE.write_text(pages.filled(PAGE, "scaling.py", text))
    print(f"{benchlib.path_for_record(PAGE)}: figures of {path.name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("file", nargs="?", type=Path, help="a result to show, instead of a new run")
    options = parser.parse_args()
    try:
        path = options.file
        if path is None:
            path = benchlib.RESULTS / f"scaling-{benchlib.stamp()}.json"
            benchlib.save_json(path, measure())
        write_page(path)
    except BenchError as error:
        print(f"scaling: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
