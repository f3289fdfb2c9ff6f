# SPDX-License-Identifier: MIT
"""Tables and charts of docs/guide/pools.md, made from one record of run_pools.py.

The page has places for them: a line `<!-- figures: NAME -->`, what this script writes, and
`<!-- end of figures -->`. All other text is written by hand and stays.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import benchlib
import pages
from benchlib import BenchError, paired_ratio
from brimful.bench.study.pages import human
from pages import table
from pool_goals import NAMES, STATES, goals
from pool_rows import BANDS, QUANTILES, SHOWN_BANDS
from pool_runs import Data

PAGE = benchlib.ROOT / "docs" / "guide" / "pools.md"
PLACE = re.compile(
    r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL | re.MULTILINE
)
TLSF_SERIES = (
    *("brimful", "brimful, growable", "brimful, 100 MiB", "rlsf", "rlsf, growable", "talc"),
    *("glibc", "mimalloc3"),
)
PAGE_SERIES = (
    *("page pool, pages from a list", "page pool, pages from the kernel"),
    *("handle pool, pages from a list", "handle pool, pages from the kernel"),
)
PLACES = (
    *("throughput", "latency", "instructions", "fill", "sizes", "pages", "runs"),
    *("page_runs", "bands", "compaction", "zcache", "destroy"),
)
NONE = "—"


def goal_lines(record: Data) -> list[str]:
    """The goals as a table: met, missed, or not measured."""
    return table(["what", "goal", "measured", ""], [goal.cells() for goal in goals(record)])


# --- tables ---------------------------------------------------------------------------------------


def throughput(found: Data) -> list[str]:
    """Medians, and ratios to brimful in the same rounds."""
    cells = list(found)
    names = list(found[cells[0]]) if cells else []
    rows = []
    for name in names:
        row = [name]
        for cell in cells:
            times = [sample and sample["ns_per_operation"] for sample in found[cell].get(name, [])]
            ours = [s and s["ns_per_operation"] for s in found[cell].get("brimful", [])]
            pairs = [(a, b) for a, b in zip(times, ours, strict=False) if a and b]
            if not pairs:
                row.append("failed")
                continue
            refused = sum(sample["failed"] for sample in found[cell][name] if sample)
            ratio = paired_ratio(*zip(*pairs, strict=True))
            shown = f"{statistics.median(a for a, _ in pairs):.1f}"
            if name != "brimful":
                shown += f" · {ratio}"
            row.append(f"{shown} ({refused} refused)" if refused else shown)
        rows.append(row)
    loops = [
        statistics.median(s["ns_loop"] for samples in found[c].values() for s in samples if s)
        for c in cells
    ]
    alone = ", ".join(f"{ns:.1f}" for ns in loops)
    lines = table(["ns for an operation · over brimful [95 %]", *cells], rows)
    return [*lines, f"The loop without any pool: {alone} ns, part of every figure.", ""]


def latency(found: Data) -> list[str]:
    """Single calls: the best of all runs and one run, at the quantiles that matter."""
    places = [QUANTILES.index(q) for q in (0.5, 0.9999, 1.0)]
    lines = []
    for scene, kept in found["scenes"].items():
        rows = []
        for name, kinds in kept.items():
            if not kinds or "bounded" not in kinds:
                rows.append([name, *["failed"] * 6])
                continue
            figures = [kinds["bounded"][key][at] for key in ("best", "single") for at in places]
            rows.append([name, *(f"{ns:,.0f}" for ns in figures)])
        head = [scene, *("best: p50", "p99.99", "slowest"), *("one run: p50", "p99.99", "slowest")]
        lines += table(head, rows)
    return lines


def fill(found: Data) -> list[str]:
    """The median share; how pool size and holes change it."""
    rows = []
    for mix, kept in found.items():
        for name, sizes in kept.items():
            cells = [
                f"{statistics.median(shares) * 100:.1f} %" if shares else NONE
                for by_kind in sizes.values()
                for shares in (by_kind.get("plain"), by_kind.get("churn"))
            ]
            rows.append([f"{mix} · {name}", *cells])
    sizes = next(iter(next(iter(found.values())).values())) if found else {}
    return table(
        ["sizes · pool", *(f"{s}, {k}" for s in sizes for k in ("filled", "churned"))], rows
    )


def bands(found: Data) -> list[str]:
    """ns and resident over live at some sizes."""

    def shown(samples: Sequence[Data | None], listed: bool) -> str:
        good = [one for one in samples if one]
        if not good:
            return NONE
        if good[0]["refused"]:
            return "refused"
        ns = statistics.median(one["ns"] for one in good)
        shares = [
            statistics.median(one[key] for one in good)
            for key in ("resident_per_live", "thinned_per_live")
        ]
        return f"{ns:.0f} · {shares[0]:.2f}" + ("" if listed else f" · {shares[1]:.2f}")

    sizes = [size for size in map(str, BANDS) if any(size in by for by in found.values())]
    some = [size for size in sizes if int(size) in SHOWN_BANDS] or sizes
    rows = []
    for name, by_size in found.items():
        listed = name.endswith("a list")  # whose pages stay with the list
        rows.append([name, *(shown(by_size.get(size, []), listed) for size in some)])
    return table(["ns · resident over live · thinned", *some], rows)


def winners(found: Data) -> list[str]:
    """The quickest and the leanest of the pools and of the mallocs at each size."""
    rows = []
    for size in map(str, BANDS):
        kept = {
            name: [one for one in by.get(size, []) if one and not one["refused"]]
            for name, by in found.items()
        }
        row = [size]
        for key in ("ns", "thinned_per_live"):
            if key != "ns":
                kept = {name: samples for name, samples in kept.items() if "a list" not in name}
            medians = {n: statistics.median(s[key] for s in v) for n, v in kept.items() if v}
            best = sorted(medians, key=lambda name: medians[name])[:2]
            row += [f"{name} {medians[name]:.3g}" for name in best]
        if len(row) == 5:
            rows.append(row)
    return table(
        ["size", "quickest, ns", "next", "leanest when thinned, resident over live", "next"], rows
    )


def compaction(found: Data) -> list[str]:
    rows = []
    for life, samples in found.items():
        good = [one for one in samples if one]
        if not good:
            rows.append([life, *["failed"] * 6])
            continue

        def median(get: Callable[[Data], float], good: Sequence[Data] = good) -> float:
            return statistics.median(get(one) for one in good)

        rows.append(
            [
                life,
                f"{median(lambda one: one['before']['with_metadata_per_live']):.3f}",
                f"{median(lambda one: one['after']['with_metadata_per_live']):.3f}",
                f"{median(lambda one: one['after']['resident_per_live']):.3f}",
                f"{median(lambda one: one['step_cpu']['p50_ns']) / 1000:.1f}",
                f"{max(one['step_cpu']['max_ns'] for one in good) / 1000:.1f}",
                str(sum(one["damaged"] for one in good)),
            ]
        )
    head = ["objects of", "held over live, before", "after", "resident over live, after"]
    return table([*head, "a step, µs", "longest, µs", "objects damaged"], rows)


def zcache(found: Data) -> list[str]:
    """Resident over live bytes in each state, and the time of a put and a get."""
    lines = []
    for workload, samples in found.items():
        names = list(dict.fromkeys(one["subject"] for one in samples))
        rows = []
        for name in names:
            own = [one for one in samples if one["subject"] == name]
            shares = [
                statistics.median(one["states"][at]["resident_per_live"] for one in own)
                for at in range(len(STATES))
            ]
            times = [
                statistics.median(one[call]["median"] for one in own) / 1000
                for call in ("put_ns", "get_ns")
            ]
            rows.append([name, *(f"{s:.3f}" for s in shares), *(f"{us:.1f}" for us in times)])
        head = [f"{workload}: resident over live", *STATES, "put, µs", "get, µs"]
        lines += table(head, rows)
    return lines


DESTROYED = {
    "destroy_ns": "the heap destroyed",
    "free_ns": "its blocks freed in order",
    "free_random_ns": "its blocks freed at random",
    "malloc_free_ns": "blocks of malloc, freed in order",
    "malloc_free_random_ns": "blocks of malloc, freed at random",
}


def destroy(found: Data) -> list[str]:
    """Milliseconds for all objects, by their size."""
    kept = {size: [one for one in samples if one] for size, samples in found.items()}
    kept = {size: samples for size, samples in kept.items() if samples}
    rows = [
        [what, *(f"{statistics.median(one[k] for one in s) / 1e6:.2f}" for s in kept.values())]
        for k, what in DESTROYED.items()
    ]
    return table(["ms for a million objects", *(f"{size}, bytes" for size in kept)], rows)


def instructions(found: Data) -> list[str]:
    """Fewest and most over the fills, by size of the pool."""

    def span(call: str, size: int) -> str:
        counts = [row[call] for row in found["rows"] if row["bytes"] == size]
        low, high = min(counts), max(counts)
        return str(high) if low == high else f"{low}–{high}"

    sizes = list(dict.fromkeys(row["bytes"] for row in found["rows"]))
    names = {**NAMES, "churn": "slowest of random calls"}
    rows = [[name, *(span(call, size) for size in sizes)] for call, name in names.items()]
    return table(["instructions, slowest call", *(human(size) for size in sizes)], rows)


def refusals(found: Data) -> list[str]:
    """Where each series of a sweep begins to refuse."""
    lines = []
    for name, points in found.items():
        failed = [point["at"] for point in points or [] if point["failed"]]
        if failed:
            lines.append(f"- {name}: requests are refused from {min(failed):,} bytes on.")
    return [*lines, ""] if lines else []


TABLES: Mapping[str, Callable[[Data], list[str]]] = {
    "throughput": throughput,
    "latency": latency,
    "fill": fill,
    "bands": bands,
    "compaction": compaction,
    "zcache": zcache,
    "destroy": destroy,
    "instructions": instructions,
}


# --- charts ---------------------------------------------------------------------------------------


def picture(key: str, chart: object, meaning: str) -> list[str]:
    return pages.picture(PAGE, f"pools-{key}", chart, meaning)


def pictures(results: Data) -> dict[str, list[str]]:
    """By the name of their place, what each chart is in the page."""
    import pool_charts as charts

    drawn: dict[str, list[str]] = {}
    if scenes := results.get("latency", {}).get("scenes"):
        first = next(iter(scenes.values()))
        chart = charts.latency(first, QUANTILES)
        drawn["latency"] = picture("latency", chart, "Time of single calls by quantile")
    if found := results.get("instructions"):
        chart = charts.instructions(found["rows"])
        meaning = "Instructions of the slowest call by fill and size of the pool"
        drawn["instructions"] = picture("instructions", chart, meaning)
    if sweep := results.get("sizes"):
        chart = charts.sizes(sweep, TLSF_SERIES)
        drawn["sizes"] = picture("sizes", chart, "Mean and slowest operation by size, TLSF")
        chart = charts.sizes(sweep, PAGE_SERIES, pages=True)
        meaning = "Mean and slowest operation by size, pools of pages"
        drawn["pages"] = picture("pages", chart, meaning)
    for place, kind in (("runs", "tlsf"), ("page_runs", "pages")):
        if ranges := results.get("runs", {}).get(kind):
            key = place.replace("_", "-")
            drawn[place] = picture(key, charts.runs(ranges), "Mean of each of 50 runs")
    if found := results.get("bands"):
        meaning = "Time and memory by size of the blocks"
        drawn["bands"] = picture("bands", charts.bands(found), meaning)
    return drawn


# --- the page -------------------------------------------------------------------------------------


def origin(name: str, record: Data) -> list[str]:
    """Where and on what this was measured."""
    facts = record["environment"]
    changed = ", with uncommitted changes" if facts["uncommitted_changes"] else ""
    versions = [
        f"{who} {about['version']}"
        for who, about in record["allocators"].items()
        if about.get("version")
    ]
    short = "A short run, which proves nothing. " if record["options"]["short"] else ""
    lines = [
        f"{short}Raw data: [`{name}`](../../bench/results/{name}), {facts['date']}, commit "
        f"`{facts['commit'][:12]}`{changed}. {facts['cpu']}, {facts['cpus_allowed']} CPUs, Linux "
        f"{facts['kernel']}, {facts['libc']}, THP {facts['thp']}, load "
        f"{facts['load_average_before']:.2f} at the start. {'; '.join(versions)}.",
        "",
    ]
    if record.get("joined"):
        lines += [
            f"Joined from two runs, to be measured anew on a quiet machine: {', '.join(record['joined'])}.",
            "",
        ]
    if record["failures"]:
        lines += ["Not measured:", "", *(f"- {one}" for one in record["failures"]), ""]
    return lines


def sections(name: str, record: Data) -> dict[str, list[str]]:
    """What stands at each place of the page."""
    results = record["results"]
    drawn = pictures(results)
    made = {"goals": goal_lines(record), "origin": origin(name, record)}
    for key in PLACES:
        found = results.get(key)
        text = drawn.get(key, [])
        if found and key in TABLES:
            text = [*text, *TABLES[key](found)]
        if found and key == "sizes":
            text = [*text, *refusals(found)]
        made[key] = text or ["Not measured.", ""]
    found = results.get("bands")
    made["winners"] = winners(found) if found else ["Not measured.", ""]
    return made


def filled(page: str, made: Mapping[str, Sequence[str]]) -> str:
    """`page` with the text of each place replaced. Raises BenchError for an unknown place."""

    def one(found: re.Match[str]) -> str:
        begin, key, end = found.groups()
        if key not in made:
            raise BenchError(f"no figures called {key!r} for {PAGE.name}")
        return f"{begin}\n" + "\n".join(made[key]).rstrip() + f"\n\n{end}"

    return PLACE.sub(one, page)


def write(path: Path) -> None:
    """Writes the page from a record."""
    record: Data = json.loads(path.read_text())
    PAGE.write_text(filled(PAGE.read_text(), sections(path.name, record)))
    print(f"{benchlib.path_for_record(PAGE)}: figures of {path.name}")
