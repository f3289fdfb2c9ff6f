# SPDX-License-Identifier: MIT
"""What the pools promise, and whether a record keeps it.

A goal that was not measured says so; one whose interval holds its bound is judged by the median,
and the interval is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from brimful.bench.study import pages
from brimful.bench.study.model import Data
from studies.pools.contenders import GENERAL
from studies.pools.experiments import CALLS, MIXES, QUANTILES

SEED_CELL = "512 B"
GOAL_LIFE = "16 … 4096 B"
NAMES = dict(
    zip(CALLS, ("malloc", "free", "realloc, shrinks", "realloc, grows in place"), strict=True)
)
P50, P9999 = QUANTILES.index(0.5), QUANTILES.index(0.9999)


@dataclass(frozen=True)
class Goal:
    """One line: met is None where nothing was measured."""

    what: str
    wanted: str
    measured: str = ""
    met: bool | None = None

    def cells(self) -> list[str]:
        verdict = {True: "met", False: "**missed**", None: "not measured"}[self.met]
        return [self.what, self.wanted, self.measured, verdict]


def throughput(found: Data) -> list[Goal]:
    made = []
    for peer, bound in (("rlsf", 1.15), ("talc", 1.0)):
        what = f"TLSF throughput, the seed's loop, over {peer}"
        wanted = f"≥ {bound:.2f}"
        ratio = found.get(SEED_CELL, {}).get("over_brimful", {}).get(peer)
        shown = (pages.interval(ratio), ratio["median"] >= bound) if ratio else ()
        made.append(Goal(what, wanted, *shown))
    return made


def instructions(found: Data) -> list[Goal]:
    what = "TLSF, instructions of the slowest call over pool sizes and fills"
    wanted = "≤ 200, spread ≤ 10 %"
    made = []
    for call in CALLS:
        counts = [row[call] for row in found.get("rows", [])]
        if counts:
            spread = 100 * (max(counts) - min(counts)) / max(counts)
            shown = f"{min(counts)} to {max(counts)}, spread {spread:.1f} %"
            met = max(counts) <= 200 and spread <= 10
            made.append(Goal(f"{what}: {NAMES[call]}", wanted, shown, met))
    return made or [Goal(what, wanted)]


def latency(found: Data) -> list[Goal]:
    """Both promises, for each scene, by the best of all runs."""
    scenes = found.get("scenes")
    if not scenes:
        return [
            Goal("TLSF p99.99", "≤ 3 × median"),
            Goal("TLSF p99.99", "below each general one's"),
        ]
    made = []
    for scene, kept in scenes.items():
        where = f", {scene}"
        ours = (kept.get("brimful") or {}).get("bounded")
        if not ours:
            made.append(Goal(f"TLSF p99.99{where}", "≤ 3 × median"))
            continue
        ratio = ours["best"][P9999] / max(ours["best"][P50], 1)
        single = ours["single"][P9999] / max(ours["single"][P50], 1)
        shown = f"{ratio:.2f} × ({single:.2f} × in a single run)"
        made.append(Goal(f"TLSF p99.99{where}", "≤ 3 × median", shown, ratio <= 3))
        general = {
            name: kept[name]["bounded"]["best"][P9999]
            for name in GENERAL
            if kept.get(name) and "bounded" in kept[name]
        }
        if general:
            best = min(general, key=lambda name: general[name])
            shown = f"{ours['best'][P9999]:.0f} ns; {best} {general[best]:.0f} ns"
            lower = ours["best"][P9999] < general[best]
            what = f"TLSF p99.99{where}, against general allocators"
            made.append(Goal(what, "below each", shown, lower))
    return made


def fill(found: Data) -> list[Goal]:
    what, wanted = "TLSF memory, live ÷ pool at the first failure, least of the mixes", "≥ 0.90"
    medians = {
        f"{mix}, {size}, {kind}": median(shares)
        for mix in MIXES
        for size, kinds in found.get(mix, {}).get("brimful", {}).items()
        for kind, shares in kinds.items()
        if shares
    }
    if not medians:
        return [Goal(what, wanted)]
    worst = min(medians, key=lambda key: medians[key])
    return [Goal(what, wanted, f"{medians[worst]:.3f} ({worst})", medians[worst] >= 0.90)]


def bands(found: Data) -> list[Goal]:
    """The cliff at half a page: there for the page pool, and not for the handle pool."""
    made = []
    for pool, wanted, cliff in (
        ("page pool", "a cliff: ≥ 1.5 × the memory", True),
        ("handle pool", "none: ≤ 1.15 × the memory", False),
    ):
        by_size = found.get(f"{pool}, pages from a list", {})
        below, above = (_held(by_size.get(size, [])) for size in ("1984", "2064"))
        what = f"{pool}, just above half a page over just below"
        if below is None or above is None:
            made.append(Goal(what, wanted))
            continue
        ratio = above / below
        made.append(Goal(what, wanted, f"{ratio:.2f} ×", ratio >= 1.5 if cliff else ratio <= 1.15))
    return made


def _held(samples: Sequence[Data | None]) -> float | None:
    good = [one["resident_per_live"] for one in samples if one and not one["refused"]]
    return median(good) if good else None


def compaction(found: Data) -> list[Goal]:
    samples = [one for one in found.get(GOAL_LIFE, []) if one]
    cpu, wall = "step_cpu", "step_wall"
    held = f"handle pool ({GOAL_LIFE}), churned to 30 % live, compacted: held ÷ live"
    real = "the same by the process's resident size"
    pause, whole = "handle pool: longest step of compaction", "handle pool: objects damaged by it"
    if not samples:
        names = (held, "≤ 1.08"), (real, "≤ 1.08"), (pause, "≤ 1 ms"), (whole, "0")
        return [Goal(*one) for one in names]
    share = max(one["after"]["with_metadata_per_live"] for one in samples)
    resident = max(one["after"]["resident_per_live"] for one in samples)
    # The thread's own time: what other programs took in between is not the pool's.
    longest = max(one[cpu]["max_ns"] for one in samples)
    by_clock = max(one[wall]["max_ns"] for one in samples)
    damaged = sum(one["damaged"] for kept in found.values() for one in kept if one)
    return [
        Goal(held, "≤ 1.08", f"{share:.3f}", share <= 1.08),
        Goal(real, "≤ 1.08", f"{resident:.3f}", resident <= 1.08),
        Goal(
            pause,
            "≤ 1 ms",
            f"{longest / 1e6:.3f} ms ({by_clock / 1e6:.3f} by the clock)",
            longest <= 1e6,
        ),
        Goal(whole, "0", str(damaged), damaged == 0),
    ]


STATES = ("loaded", "churned", "thinned")


def zcache_shares(samples: Sequence[Data]) -> dict[str, tuple[float, str]]:
    """By state: the handle pool's resident bytes over the best malloc's, and whose those are."""
    by_name: dict[str, dict[str, list[float]]] = {}
    for one in samples:
        for state in one["states"]:
            kept = by_name.setdefault(one["subject"], {}).setdefault(state["state"], [])
            kept.append(state["resident_per_live"])
    shares = {}
    ours = by_name.pop("handle pool", {})
    for state in STATES:
        others = {n: median(by[state]) for n, by in by_name.items() if state in by}
        if state in ours and others:
            best = min(others, key=lambda name: others[name])
            shares[state] = (median(ours[state]) / others[best], best)
    return shares


def zcache(found: Data) -> list[Goal]:
    """By the cache's steady state; the other two are shown beside it."""
    what, wanted = "zcache on real files: resident ÷ the same on the best malloc", "≤ 0.92"
    made = []
    for workload, samples in found.items():
        shares = zcache_shares(samples)
        if "churned" not in shares:
            continue
        shown = ", ".join(f"{state} {share:.3f} ({who})" for state, (share, who) in shares.items())
        made.append(Goal(f"{what}, {workload}", wanted, shown, shares["churned"][0] <= 0.92))
    return made or [Goal(what, wanted)]


def destroy(found: Data) -> list[Goal]:
    """Against freeing in the order of making, the best order there is."""
    what, wanted = "heap of 10⁶ objects: freeing them in order ÷ destroying it", "≥ 20 ×"
    ratios = {
        size: median(one["free_ns"] / one["destroy_ns"] for one in samples if one)
        for size, samples in found.items()
        if any(samples)
    }
    if not ratios:
        return [Goal(what, wanted)]
    shown = ", ".join(f"{ratio:.0f} × ({size})" for size, ratio in ratios.items())
    return [Goal(what, wanted, shown, min(ratios.values()) >= 20)]


# By experiment, in the order of the page.
GOALS: Mapping[str, Callable[[Data], list[Goal]]] = {
    "throughput": throughput,
    "instructions": instructions,
    "latency": latency,
    "fill": fill,
    "bands": bands,
    "compaction": compaction,
    "zcache": zcache,
    "destroy": destroy,
}


def goals(results: Data, experiments: Iterable[str] = tuple(GOALS)) -> list[Goal]:
    """Those about these experiments."""
    some = set(experiments)
    return [goal for key in GOALS if key in some for goal in GOALS[key](results.get(key, {}))]


def table(made: Sequence[Goal]) -> list[str]:
    """Met, missed, or not measured."""
    return pages.table(["what", "goal", "measured", ""], [goal.cells() for goal in made])
