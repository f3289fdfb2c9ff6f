# SPDX-License-Identifier: MIT
"""A record as the tables of docs/guide/pools.md, one function for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from brimful.bench.study.model import Data
from brimful.bench.study.pages import human, interval, table
from studies.pools.experiments import BANDS, QUANTILES, SHOWN_BANDS
from studies.pools.goals import NAMES, STATES

NONE = "—"


def throughput(found: Data) -> list[str]:
    """Medians, and ratios to brimful in the same rounds."""

    def shown(name: str, cell: Data) -> str:
        good = [one for one in cell["samples"].get(name, []) if one]
        ratio = cell["over_brimful"].get(name)
        if not good or not ratio:
            return "failed"
        text = f"{median(one['ns_per_operation'] for one in good):.1f}"
        if name != "brimful":
            text += f" · {interval(ratio)}"
        refused = sum(one["failed"] for one in good)
        return f"{text} ({refused} refused)" if refused else text

    names = list(next(iter(found.values()))["samples"])
    rows = [[name, *(shown(name, cell) for cell in found.values())] for name in names]
    loops = [[s for kept in c["samples"].values() for s in kept if s] for c in found.values()]
    alone = ", ".join(f"{median(s['ns_loop'] for s in kept):.1f}" for kept in loops if kept)
    lines = table(["ns for an operation · over brimful [95 %]", *found], rows)
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
                f"{median(shares) * 100:.1f} %" if shares else NONE
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
        ns = median(one["ns"] for one in good)
        shares = [
            median(one[key] for one in good) for key in ("resident_per_live", "thinned_per_live")
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
            medians = {n: median(s[key] for s in v) for n, v in kept.items() if v}
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

        def middle(get: Callable[[Data], float], good: Sequence[Data] = good) -> float:
            return median(get(one) for one in good)

        rows.append(
            [
                life,
                f"{middle(lambda one: one['before']['with_metadata_per_live']):.3f}",
                f"{middle(lambda one: one['after']['with_metadata_per_live']):.3f}",
                f"{middle(lambda one: one['after']['resident_per_live']):.3f}",
                f"{middle(lambda one: one['step_cpu']['p50_ns']) / 1000:.1f}",
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
                median(one["states"][at]["resident_per_live"] for one in own)
                for at in range(len(STATES))
            ]
            times = [
                median(one[call]["median"] for one in own) / 1000 for call in ("put_ns", "get_ns")
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
        [what, *(f"{median(one[k] for one in s) / 1e6:.2f}" for s in kept.values())]
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


# By place: the experiment that it shows, and how.
TABLES: Mapping[str, tuple[str, Callable[[Data], list[str]]]] = {
    "throughput": ("throughput", throughput),
    "latency": ("latency", latency),
    "instructions": ("instructions", instructions),
    "fill": ("fill", fill),
    "sizes": ("sizes", refusals),
    "bands": ("bands", bands),
    "winners": ("bands", winners),
    "compaction": ("compaction", compaction),
    "zcache": ("zcache", zcache),
    "destroy": ("destroy", destroy),
}


def written(results: Data) -> dict[str, list[str]]:
    """Place → its tables, of what was measured."""
    return {
        place: make(results[experiment])
        for place, (experiment, make) in TABLES.items()
        if results.get(experiment)
    }
