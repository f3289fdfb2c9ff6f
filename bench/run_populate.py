#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What populating memory and hugepages save or cost, on the workloads with which it was asked first.

The fixed levels of `populate` (off, partial, all) and its `auto`, first without hugepages, where
every page counts, then with `thp:auto`, as shipped. Two counters of faults stand side by side,
because they count different things: `minor_faults` (getrusage) also has the pages that a system
call brought, `page_faults` (perf) only those that the program was stopped for.

Raw data go to bench/results/populate-DATE.json; the tables and the chart between the marker lines of
docs/design/0016-hugepages-and-populate.md are made from that and from nothing else. Every sample is a
fresh process, the settings take turns in an order drawn anew for each round.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import benchlib
import pages
from benchlib import Allocator, BenchError
from brimful.bench import building, catalog

try:
    import altair as alt

    from brimful.bench.charts import look
    from brimful.bench.charts.parts import data as inline
    from brimful.bench.charts.parts import quiet_axis
except ImportError:
    sys.exit("run_populate: altair is missing: run it by tools/in_venv.sh bench/run_populate.py")

PAGE = benchlib.ROOT / "docs" / "design" / "0016-hugepages-and-populate.md"
SYSTEM = Path("/sys/kernel/mm/transparent_hugepage/enabled")
MIB = 1 << 20

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
Data = dict[str, Any]


# --- measuring ----------------------------------------------------------------------------------


@contextmanager
def system_says(word: str) -> Iterator[None]:
    """Transparent hugepages of the whole system as `word` says, until the block ends."""
    if not word:
        yield
        return
    before = SYSTEM.read_text().partition("[")[2].partition("]")[0]
    try:
        SYSTEM.write_text(word)
        yield
    finally:
        SYSTEM.write_text(before)


def command(name: str) -> list[str]:
    program, *arguments = WORKLOADS[name]
    source = benchlib.ROOT / "bench" / "workloads" / f"{program}.cpp"
    binary = benchlib.ROOT / "build" / "bench" / "workloads" / program
    return [str(building.built(binary, source, ["g++", *catalog.FLAGS])), *arguments]


def sample(name: str, setting: str) -> Data:
    output = benchlib.WORK / "populate.out"
    output.parent.mkdir(parents=True, exist_ok=True)
    allocator = Allocator(setting, benchlib.LIBRARY, {"BRIMFUL_CONF": SETTINGS[setting]})
    line = benchlib.measure_command(allocator, command(name), output=output)
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise BenchError(f"{name}, {setting}: {done.stderr.strip()}")
    measured = json.loads(done.stdout)
    if measured["exit_code"] != 0:
        raise BenchError(f"{name}, {setting}: exit code {measured['exit_code']}")
    report = json.loads(output.read_text())
    if "libbrimful" not in report["malloc"]:
        raise BenchError(f"{name}, {setting}: served by {report['malloc']}")
    return {
        "wall_s": measured["wall_s"],
        "cpu_s": measured["user_s"] + measured["system_s"],
        "seconds": report["seconds"],
        "minor_faults": measured["minor_faults"],
        "page_faults": measured["counters"]["page_faults"],
        "peak_mib": measured["peak_rss_kib"] / 1024,
    }


def measure(rounds: int, names: list[str]) -> Data:
    rows: Data = {name: {setting: [] for setting in SETTINGS} for name in names}
    for number in range(rounds):
        print(f"populate: round {number + 1} of {rounds}", file=sys.stderr)
        for name in names:
            for setting in random.sample(list(SETTINGS), len(SETTINGS)):
                rows[name][setting].append(sample(name, setting))
    return rows


# --- tables -------------------------------------------------------------------------------------


def values(samples: list[Data], key: str) -> list[float]:
    return [found[key] for found in samples if found[key] is not None]


def middle(samples: list[Data], key: str) -> str:
    found = values(samples, key)
    return f"{statistics.median(found):,.0f}".replace(",", " ") if found else "–"


def ratio(row: Data, setting: str) -> benchlib.Ratio:
    return benchlib.paired_ratio(values(row[setting], "cpu_s"), values(row[BASELINE], "cpu_s"))


def table(head: str, rows: Data, cell: Any) -> list[str]:
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
        lines += table(f"{title} (medians):", rows, lambda row, s, k=key: middle(row[s], k))
    return [*lines, verdict(rows), ""]


def verdict(rows: Data) -> str:
    slower = [name for name, row in rows.items() if ratio(row, "auto").low > MOST]
    if slower:
        return f"`auto` is more than 3 % slower than `off` on: {', '.join(slower)}."
    return "On no row is `auto` shown to be more than 3 % slower than `off` (95 % interval)."


# --- chart --------------------------------------------------------------------------------------


def chart(rows: Data) -> alt.TopLevelMixin:
    fixed = ("#7b838e", "#0072b2", "#a8458f", "#d1410c", "#00875f", "#86234f")
    found = [
        {"row": name, "setting": setting, "panel": panel, "value": value}
        for name, row in rows.items()
        for setting in SETTINGS
        for panel, value in (
            ("time", ratio(row, setting).median),
            ("faults", share(row, setting)),
        )
    ]

    def panel(name: str, title: str, kind: Literal["log", "linear"]) -> alt.Chart:
        mine = [entry for entry in found if entry["panel"] == name]
        return (
            alt.Chart(inline(mine))
            .mark_point(filled=True, size=60, opacity=0.9)
            .encode(
                x=alt.X("value:Q", scale=alt.Scale(type=kind, nice=False), axis=quiet_axis(title)),
                y=alt.Y("row:N", sort=list(rows), axis=quiet_axis("")),
                color=alt.Color(
                    "setting:N",
                    sort=list(SETTINGS),
                    scale=alt.Scale(domain=list(SETTINGS), range=list(fixed)),
                    legend=alt.Legend(title="populate", symbolType="circle"),
                ),
            )
            .properties(width=300, height=24 * len(rows))
        )

    both = alt.hconcat(
        # `all` can cost many times the time of the others, who must stay apart in the chart.
        panel("time", "CPU time, off = 1", "log"),
        panel("faults", "times the program was stopped by a fault, off = 1", "linear"),
        spacing=30,
    )
    return both.configure(**look.config())


def share(row: Data, setting: str) -> float | None:
    ours, theirs = values(row[setting], "page_faults"), values(row[BASELINE], "page_faults")
    return statistics.median(ours) / statistics.median(theirs) if ours and theirs else None


def draw(rows: Data) -> list[str]:
    meaning = "CPU time and page faults of each workload by level of populate, relative to off"
    return pages.picture(PAGE, "populate", chart(rows), meaning)


# --- the page -----------------------------------------------------------------------------------


def write_page(path: Path) -> None:
    result = json.loads(path.read_text())
    facts = result["environment"]
    changed = ", with uncommitted changes" if facts.get("uncommitted_changes") else ""
    lines = [
        *draw(result["rows"]),
        *tables(result["rows"]),
        f"Raw data: [`{path.name}`](../../bench/results/{path.name}), {facts['date']}, "
        f"commit `{facts['commit'][:12]}`{changed}, system's hugepages: {result['system']}; "
        f"{result['rounds']} rounds; {facts['cpu']}.",
    ]
    PAGE.write_text(pages.filled(PAGE, "run_populate.py", "\n".join(lines)))
    print(f"{benchlib.path_for_record(PAGE)}: figures of {path.name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("file", nargs="?", type=Path, help="a result to show, instead of a new run")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="comma-separated rows, nothing is kept")
    parser.add_argument(
        "--system",
        choices=("always", "madvise", "never"),
        default="",
        help="what the system says about hugepages meanwhile (needs root; restored, nothing is kept)",
    )
    options = parser.parse_args()
    try:
        if options.file is not None:
            write_page(options.file)
            return 0
        names = options.only.split(",") if options.only else list(WORKLOADS)
        with system_says(options.system):
            mode = SYSTEM.read_text().strip() if SYSTEM.exists() else "none"
            rows = measure(options.rounds, names)
        if options.only or options.system:
            print("\n".join(tables(rows)))
            return 0
        path = benchlib.RESULTS / f"populate-{benchlib.stamp()}.json"
        facts = {"what": "bench/run_populate.py", "environment": benchlib.environment()}
        settings = {"rounds": options.rounds, "system": mode, "settings": SETTINGS}
        benchlib.save_json(path, facts | settings | {"workloads": WORKLOADS, "rows": rows})
        write_page(path)
    except (BenchError, building.BuildError, OSError) as error:
        print(f"run_populate: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
