#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes the figures of docs/evaluation.md from the raw data in bench/results/.

The tables between the two marker lines of that page are made here and nowhere else, so a figure in
the text cannot differ from the data it cites. Of each kind the newest file is taken, unless files
are named: league, memory and real are results of `brimful bench`; demo, pairs and metrics those of the
scripts beside this one. concurrency, sweeps, storms and designs are made by `make bench-concurrency`;
footprint, grown and thp by `make bench-memory`; the means over all workloads and real programs
are those of the league and real files shown. pools is `make bench-pools`; of it the goals are shown
here, and the rest on docs/guide/pools.md.
`--check` only says whether the page is up to date.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import benchlib
import pages
import pool_page

PAGE = benchlib.ROOT / "docs" / "evaluation.md"
# Results of `brimful bench`, which makes its tables and charts itself: kind → heading.
BENCH = {
    "league": "The league: workloads under every allocator",
    "memory": "Memory over time: what stays when work ends",
    "real": "The league: real programs under every allocator",
    "concurrency": "Concurrency: threads that meet",
    "sweeps": "Concurrency: from 1 thread to 2,048",
    "storms": "Concurrency: idle threads and storms of them",
    "designs": "Concurrency: three designs side by side",
    "footprint": "Memory: what is held after large objects, bursts and a long life",
    "grown": "Memory: a heap grown to 2 GiB, read at random",
    "thp": "Memory: nine objects in ten freed, with THP=always",
}
# Of these only the figures about threads are shown: `brimful bench report --concurrency`.
ABOUT_THREADS = ("concurrency", "sweeps", "storms", "designs")
# Of these only the figures about memory: `brimful bench report --memory`.
ABOUT_MEMORY = ("footprint", "grown", "thp")
# The page faults and means of these are shown a second time, with the figures about memory.
WHOLE = ("league", "real")
CHARTS = {
    "league": "Geometric means of time and of peak memory with intervals",
    "frontier": "Time against memory of all allocators",
    "memory-burst-and-idle": "Resident memory over time: a burst, then idleness",
}
THREAD_CHARTS = {
    "sweep-thread-sweep": "Time and memory against the number of threads",
    "sweep-thread-sweep-remote": "The same with remote frees",
    "locks-sweep": "Contended locks and throughput on the sweeps, design by design",
    "locks-threads": "Contended locks and throughput on the rows of several threads",
}
MEMORY_CHARTS = {
    "memory-burst-light": "Resident memory over time: a burst of 1 GiB, then light activity",
    "memory-burst-still": "Resident memory over time: a burst of 1 GiB, then stillness",
    "memory-long-life": "Resident memory over time: a long life of shifting sizes",
    "memory-thinned-small": "Resident memory over time: nine small objects in ten freed",
    "memory-thinned-mixed": "Resident memory over time: nine objects of all sizes in ten freed",
}
KINDS = (*BENCH, "pools", "demo")


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table; all columns but the first are figures and stand to the right."""
    rule = "|---|" + "---:|" * (len(head) - 1)
    return [row(head), rule, *map(row, rows), ""]


def interval(ratio: dict[str, Any]) -> str:
    return f"{ratio['median']:.3f} [{ratio['low']:.3f} … {ratio['high']:.3f}]"


def origin(name: str, data: dict[str, Any]) -> list[str]:
    """Where and on what a table was measured."""
    facts = data["environment"]
    libraries = [
        f"{allocator} {about.get('version') or about.get('sha256', '')[:12]}"
        for allocator, about in data["allocators"].items()
        if about.get("version") or about.get("sha256")
    ]
    changed = ", with uncommitted changes" if facts["uncommitted_changes"] else ""
    return [
        f"Raw data: [`{name}`](../bench/results/{name}), {facts['date']}, commit "
        f"`{facts['commit'][:12]}`{changed}. {facts['cpu']}, {facts['cpus']} CPUs, Linux "
        f"{facts['kernel']}, {facts['libc']}, THP {facts['thp']}, load "
        f"{facts['load_average_before']:.2f} at the start. {'; '.join(libraries)}.",
        "",
    ]


def demo(data: dict[str, Any]) -> list[str]:
    lines = ["### Real programs: the system's allocator against brimful", ""]
    rows = []
    for program in data["programs"]:
        if program["failure"]:
            rows.append([program["name"], f"FAILED: {program['failure']}", "", "", ""])
        for at, measure in enumerate(program["summary"]):
            unit = f", {measure['unit']}" if measure["unit"] else ""
            digits = measure["digits"]
            rows.append(
                [
                    f"**{program['name']}**" if at == 0 else "",
                    measure["measure"] + unit,
                    f"{measure['system']:,.{digits}f}",
                    f"{measure['brimful']:,.{digits}f}",
                    interval(measure["ratio"]),
                ]
            )
    lines += table(["program", "measure", "system", "brimful", "ratio [95 %]"], rows)
    lines += [f"- {p['name']}: {p['what']} ({len(p['rounds'])} pairs)" for p in data["programs"]]
    return [*lines, ""]


def pool_figures(data: dict[str, Any]) -> list[str]:
    link = "Tables and charts: [docs/guide/pools.md](guide/pools.md)."
    return ["### Pools and heaps", "", *pool_page.goal_lines(data), link, ""]


def bench_tables(kind: str, path: Path) -> list[str]:
    """What `brimful bench report` says and draws of a result. Raises BenchError."""
    form, charts = "--markdown", CHARTS
    if kind in ABOUT_THREADS:
        form, charts = "--concurrency", THREAD_CHARTS
    elif kind in ABOUT_MEMORY:
        form, charts = "--memory", MEMORY_CHARTS
    command = ["report", str(path), form]
    pictures = []
    with tempfile.TemporaryDirectory() as folder:
        command += ["--charts", folder, *(word for key in charts for word in ("--chart", key))]
        tables = said(command, path)
        for key, meaning in charts.items():
            light, dark = f"{kind}-{key}-light.svg", f"{kind}-{key}-dark.svg"
            if not (Path(folder) / f"{key}-light.svg").exists():
                continue
            for name in (light, dark):
                shutil.copy(Path(folder) / name.removeprefix(f"{kind}-"), pages.IMAGES / name)
            dark_source = f'<source media="(prefers-color-scheme: dark)" srcset="img/{dark}">'
            image = f'<img alt="{meaning}" src="img/{light}">'
            pictures += [f"<picture>{dark_source}{image}</picture>", ""]
    data = json.loads(path.read_text())
    facts = data["environment"]
    changed = ", with uncommitted changes" if facts.get("uncommitted_changes") else ""
    source = (
        f"Raw data: [`{path.name}`](../bench/results/{path.name}), {facts['date']}, commit "
        f"`{facts['commit'][:12]}`{changed}, `{' '.join(data['options']['command_line'])}`. "
        f"{facts['cpu']}, {facts['cpus_allowed']} CPUs, Linux {facts['kernel']}, {facts['libc']}, "
        f"THP {facts['thp']}."
    )
    return [f"### {BENCH[kind]}", "", *pictures, *tables, "", source, ""]


def whole(files: list[Path]) -> list[str]:
    """The means over the league and the real programs together. Raises BenchError."""
    shown = {kind: path for kind in WHOLE for path in files if path.name.startswith(f"{kind}-")}
    lines = ["### Memory and time over all workloads and real programs", ""]
    for kind in ABOUT_MEMORY:
        if not any(path.name.startswith(f"{kind}-") for path in files):
            lines += [f"{BENCH[kind]}: not measured (make bench-memory).", ""]
    if set(shown) != set(WHOLE):
        absent = ", ".join(kind for kind in WHOLE if kind not in shown)
        return [*lines, f"Not measured: no result of: {absent}.", ""]
    first, second = shown.values()
    lines += said(["report", str(first), "--memory", "--also", str(second)], first)
    names = " and ".join(
        f"[`{path.name}`](../bench/results/{path.name})" for path in shown.values()
    )
    lines += ["", f"Raw data: {names}.", ""]
    return lines


def said(arguments: list[str], path: Path) -> list[str]:
    """What `brimful bench` prints. Raises BenchError."""
    command = [str(benchlib.ROOT / "brimful"), "bench", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise benchlib.BenchError(f"{path.name}: {done.stderr.strip()}")
    return done.stdout.splitlines()


MAKERS = {"pools": pool_figures, "demo": demo}


def figures(files: list[Path]) -> str:
    lines: list[str] = []
    for kind in KINDS:
        if kind == ABOUT_MEMORY[0]:
            lines += whole(files)
        for path in [path for path in files if path.name.startswith(f"{kind}-")]:
            if kind in BENCH:
                lines += bench_tables(kind, path)
                continue
            data = json.loads(path.read_text())
            lines += MAKERS[kind](data)
            for what, reason in data.get("not_measured", {}).items():
                lines += [f"Not measured: {what}: {reason}", ""]
            lines += origin(path.name, data)
    return "\n".join(lines)


def newest() -> list[Path]:
    """The newest results of each kind; their names sort by time."""
    found = [sorted(benchlib.RESULTS.glob(f"{kind}-*.json"))[-1:] for kind in KINDS]
    return [path for paths in found for path in paths]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", nargs="*", type=Path, help="results to show (default: the newest)")
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if out of date")
    options = parser.parse_args()
    files = options.files or newest()
    if not files:
        print("report: no results in bench/results/", file=sys.stderr)
        return 1
    before = PAGE.read_text()
    text = figures(files)
    try:
        after = pages.filled(PAGE, "report.py", text)
    except benchlib.BenchError as error:
        print(f"report: {error}", file=sys.stderr)
        return 2
    if options.check:
        return 0 if after == before else 1
    PAGE.write_text(after)
    print(f"{benchlib.path_for_record(PAGE)}: figures of {', '.join(path.name for path in files)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
