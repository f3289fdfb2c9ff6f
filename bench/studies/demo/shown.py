# SPDX-License-Identifier: MIT
"""What the demonstration shows at its end: figures, the proof, and one sentence for each program."""

from __future__ import annotations

import json
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from brimful.bench import statistics
from brimful.bench.statistics import Ratio, Verdict
from brimful.bench.study.model import Data
from brimful.bench.study.records import Record

PLAIN_WIDTH = 110
MORE_IS_BETTER = "requests/s"


def results(record: Record) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    programs = record.results["programs"]
    ours = record.allocators[-1]
    console.print()
    console.print(figures_table(programs))
    console.print(maps_table([p for p in programs if p["rounds"]], ours.library))
    lines = [f"{program['name']}: {program['what']}" for program in programs]
    if "libjemalloc" in json.dumps([p["rounds"] for p in programs if "redis" in p["name"]]):
        lines.append(
            "redis-server links jemalloc itself here: its system column is jemalloc, not glibc."
        )
    facts = record.environment
    lines.append(
        f"{facts['cpu']}, {facts['cpus_allowed']} CPUs · Linux {facts['kernel']} · {facts['libc']} · "
        f"THP {facts['thp']} · commit {facts['commit'][:12]} · libbrimful sha256 {ours.sha256[:16]}"
    )
    for line in [*lines, *map(verdict, programs)]:
        console.print(line, highlight=False, markup=False)


def figures_table(programs: list[Data]) -> Table:
    table = Table(
        title="Medians; ratio: brimful ÷ system in pairs, with its 95 % interval",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("program", no_wrap=True)
    table.add_column("measure")
    for title in ("system", "brimful", "ratio", "interval"):
        table.add_column(title, justify="right", no_wrap=True)
    for program in programs:
        if program["failure"]:
            failed = f"[bold red]FAILED[/]: {program['failure']}"
            table.add_row(f"[bold]{program['name']}", failed)
            table.add_section()
            continue
        for at, row in enumerate(program["summary"]):
            ratio = Ratio(**row["ratio"])
            found = statistics.verdict(ratio)
            better, worse = Verdict.BETTER, Verdict.WORSE
            if row["measure"] == MORE_IS_BETTER:
                better, worse = worse, better
            colour = {better: "green", worse: "red"}.get(found, "default")
            name = {0: f"[bold]{program['name']}", 1: f"{ratio.pairs} pairs"}.get(at, "")
            table.add_row(
                name,
                f"{row['measure']}{', ' + row['unit'] if row['unit'] else ''}",
                *(f"{row[key]:,.{row['digits']}f}" for key in ("system", "brimful")),
                f"[{colour}]{ratio.median:.3f}",
                f"{ratio.low:.3f}…{ratio.high:.3f}" if ratio.claims else "too few",
            )
        table.add_section()
    return table


def maps_table(programs: list[Data], library: str) -> Table:
    table = Table(
        title="What /proc/PID/maps says each process had loaded",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for title in ("program", "run", "process", "allocators, the one in charge first"):
        table.add_column(title)
    for program in programs:
        first = True
        for name in program["rounds"][0]:
            seen = {
                (process["name"], in_charge_first(process["allocators"], library))
                for sample in program["rounds"]
                for process in sample[name]["processes"]
            }
            for process_name, shown in sorted(seen):
                table.add_row(program["name"] if first else "", name, process_name, shown)
                first = False
        table.add_section()
    return table


def in_charge_first(paths: list[str], library: str) -> str:
    """File names in the loader's order of search: the preload, the program's own, libc last."""
    ours = str(Path(library).resolve())

    def rank(path: str) -> int:
        return 0 if path == ours else 2 if "/libc" in path else 1

    return ", ".join(Path(path).name for path in sorted(sorted(paths), key=rank))


def verdict(program: Data) -> str:
    """One sentence for a person."""
    name, rounds = program["name"], len(program["rounds"])
    if program["failure"]:
        return f"{name}: FAILED: {program['failure']}"
    if rounds < statistics.FEWEST_PAIRS:
        return f"{name}: {rounds} rounds, too few to say anything"
    rows = {row["measure"]: Ratio(**row["ratio"]) for row in program["summary"]}

    def say(what: str, ratio: Ratio) -> str:
        word = {Verdict.BETTER: "less", Verdict.WORSE: "more"}.get(statistics.verdict(ratio))
        if word is None:
            return f"no clear difference in {what}"
        return f"{abs(ratio.median - 1) * 100:.1f} % {word} {what}"

    time_said, memory_said = say("time", rows["wall time"]), say("peak memory", rows["peak RSS"])
    return f"{name}: {time_said}, {memory_said}"
