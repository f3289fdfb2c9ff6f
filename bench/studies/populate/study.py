# SPDX-License-Identifier: MIT
"""What populating memory and hugepages save or cost, on the workloads with which it was asked first.

The fixed levels of `populate` (off, partial, all) and its `auto`, first without hugepages, where
every page counts, then with `thp:auto`, as shipped. Two counters of faults stand side by side,
because they count different things: `minor_faults` (getrusage) also has the pages that a system
call brought, `page_faults` (perf) only those that the program was stopped for.

Every sample is a fresh process, the settings take turns in an order drawn anew for each round. The
programs are those of bench/workloads/.
"""

from __future__ import annotations

import json
import random
import statistics as plain
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from brimful.bench import allocators, building, catalog, launch, statistics
from brimful.bench.study import records
from brimful.bench.study.hugepages import SYSTEM, system_says
from brimful.bench.study.model import ROOT, WORK, Data, Option, Run, Study, StudyError
from brimful.bench.study.pages import Place
from brimful.bench.study.records import Record

# name → program and its arguments
WORKLOADS = {
    "rptest": ("rptest", "--threads", "2", "--scale", "0.5"),
    "xmalloc": ("xmalloc", "--threads", "2", "--scale", "0.5"),
    "glibc-thread": ("glibc_thread", "--threads", "2", "--scale", "0.5"),
    "larson": ("larson", "--threads", "2", "--scale", "0.5"),
    "order small": (
        "order",
        "--order",
        "random",
        "--size",
        "16",
        "--count",
        "500000",
        "--rounds",
        "4",
    ),
    "order large": (
        "order",
        "--order",
        "fifo",
        "--size",
        "16384",
        "--count",
        "4000",
        "--rounds",
        "12",
    ),
    "order huge": (
        "order",
        "--order",
        "fifo",
        "--size",
        "4194304",
        "--count",
        "64",
        "--rounds",
        "4000",
    ),
    "malloc-large": ("malloc_large", "--scale", "0.5"),
    "fragmentation": ("fragmentation", "--scale", "0.5"),
    "grown": ("order", "--order", "lifo", "--size", "64", "--count", "6000000", "--rounds", "1"),
    "short": ("order", "--order", "lifo", "--size", "128", "--count", "100000", "--rounds", "1"),
}
BASELINE = "off"
# name → options. The first four without hugepages.
SETTINGS = {
    "off": "thp:never,populate:off",
    "partial": "thp:never,populate:partial",
    "all": "thp:never,populate:all",
    "auto": "thp:never,populate:auto",
    "off, thp": "thp:auto,populate:off",
    "auto, thp": "thp:auto,populate:auto",
}
MOST = 1.03  # auto may be this much slower than off
COUNTS = {"minor faults": "minor_faults", "faults (perf)": "page_faults", "peak MiB": "peak_mib"}


# --- measuring ------------------------------------------------------------------------------------


def command(name: str) -> list[str]:
    program, *arguments = WORKLOADS[name]
    source = ROOT / "bench" / "workloads" / f"{program}.cpp"
    binary = ROOT / "build" / "bench" / "workloads" / program
    return [str(building.built(binary, source, ["g++", *catalog.FLAGS])), *arguments]


def sample(name: str, setting: str) -> Data:
    output = WORK / "populate.out"
    allocator = replace(allocators.pair()[1], settings={"BRIMFUL_CONF": SETTINGS[setting]})
    line = launch.measuring(allocator, command(name), output)
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise StudyError(f"{name}, {setting}: {done.stderr.strip()}")
    measured = json.loads(done.stdout)
    if measured["exit_code"] != 0:
        raise StudyError(f"{name}, {setting}: exit code {measured['exit_code']}")
    report = json.loads(output.read_text())
    if "libbrimful" not in report["malloc"]:
        raise StudyError(f"{name}, {setting}: served by {report['malloc']}")
    return {
        "wall_s": measured["wall_s"],
        "cpu_s": measured["user_s"] + measured["system_s"],
        "seconds": report["seconds"],
        "minor_faults": measured["minor_faults"],
        "page_faults": measured["counters"]["page_faults"],
        "peak_mib": measured["peak_rss_kib"] / 1024,
    }


def measure(run: Run) -> None:
    names = [name for name in WORKLOADS if run.wants(part_of(name))]
    results, rounds = run.record.results, run.options.rounds
    generator = random.Random(run.options.seed)
    run.record.allocators = [allocators.pair()[1]]
    with system_says(run.options.system):
        results["system"] = SYSTEM.read_text().strip() if SYSTEM.exists() else "none"
        results |= {"settings": SETTINGS, "workloads": WORKLOADS}
        rows = results["rows"] = {name: {setting: [] for setting in SETTINGS} for name in names}
        for number in range(rounds):
            print(f"populate: round {number + 1} of {rounds}", file=sys.stderr)
            for name in names:
                for setting in generator.sample(list(SETTINGS), len(SETTINGS)):
                    rows[name][setting].append(sample(name, setting))


def part_of(name: str) -> str:
    return name.replace(" ", "-")


# --- tables -------------------------------------------------------------------------------------


def values(samples: Sequence[Data], key: str) -> list[float]:
    return [found[key] for found in samples if found[key] is not None]


def middle(samples: Sequence[Data], key: str) -> str:
    found = values(samples, key)
    return f"{plain.median(found):,.0f}".replace(",", " ") if found else "–"


def ratio(row: Data, setting: str) -> statistics.Ratio:
    return statistics.paired_ratio(values(row[setting], "cpu_s"), values(row[BASELINE], "cpu_s"))


def table(head: str, rows: Data, cell: Callable[[Data, str], str]) -> list[str]:
    lines = [head, "", f"| | {' | '.join(SETTINGS)} |", "|---|" + "---:|" * len(SETTINGS)]
    for name, row in rows.items():
        lines.append(f"| {name} | {' | '.join(cell(row, setting) for setting in SETTINGS)} |")
    return [*lines, ""]


def tables(rows: Data) -> list[str]:
    lines = table(
        "CPU time of the whole process, relative to `off` (medians of paired ratios):",
        rows,
        lambda row, setting: f"{ratio(row, setting).median:.3f}",
    )
    for title, key in COUNTS.items():

        def cell(row: Data, setting: str, key: str = key) -> str:
            return middle(row[setting], key)

        lines += table(f"{title} (medians):", rows, cell)
    return [*lines, verdict(rows), ""]


def verdict(rows: Data) -> str:
    slower = [name for name, row in rows.items() if ratio(row, "auto").low > MOST]
    if slower:
        return f"`auto` is more than 3 % slower than `off` on: {', '.join(slower)}."
    return "On no row is `auto` shown to be more than 3 % slower than `off` (95 % interval)."


def share(row: Data, setting: str) -> float | None:
    ours, theirs = values(row[setting], "page_faults"), values(row[BASELINE], "page_faults")
    return plain.median(ours) / plain.median(theirs) if ours and theirs else None


# --- the page -------------------------------------------------------------------------------------


def whole_rows(record: Record) -> Data:
    """Those that have a sample of each setting: a run that was ended early lacks some."""
    found = record.results["rows"]
    fewest = {name: min(map(len, row.values())) for name, row in found.items()}
    return {
        name: {setting: samples[: fewest[name]] for setting, samples in row.items()}
        for name, row in found.items()
        if fewest[name]
    }


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    from studies.populate import charts

    path = files["populate"]
    record = records.load(path)
    rows, facts = record.results["rows"], record.environment
    meaning = "CPU time and page faults of each workload by level of populate, relative to off"
    source = (
        f"{place.source(path, facts)}, system's hugepages: {record.results['system']}; "
        f"{record.options['rounds']} rounds; {facts['cpu']}."
    )
    return {"": [*place.chart("populate", charts.chart(rows), meaning), *tables(rows), source]}


STUDY = Study(
    "populate",
    title="What do populating memory and hugepages save or cost, by their levels?",
    time="15 minutes",
    short_time="2 minutes",
    measure=measure,
    show=lambda record: tables(whole_rows(record)),
    figures=figures,
    pages=("docs/design/0016-hugepages-and-populate.md",),
    parts=tuple(map(part_of, WORKLOADS)),
    options={
        "rounds": Option("turns of each setting", 7, 1),
        "system": Option("what the system says about hugepages meanwhile (root; put back)", ""),
    },
)
