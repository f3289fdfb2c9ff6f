# SPDX-License-Identifier: MIT
"""What README.md shows of the league: one picture, one table, and how many rows brimful wins and loses.

Times and peaks are geometric means of ratios to the baseline; docs/evaluation.md, which draws the
picture, has every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from brimful.bench.allocators import OURS
from brimful.bench.markdown import table
from brimful.bench.model import MEMORY, Result
from brimful.bench.statistics import LEVEL
from brimful.bench.summary import Summary, summarize
from brimful.bench.tables import FIGURE, MAIN, ROW, Standing
from brimful.bench.wording import ENOUGH, judged, named

KINDS = {"league": "workloads", "real": "real programs"}
WORST = 3  # lost rows that are named; docs/evaluation.md has all
PICTURE = "docs/img/league-frontier"
MEANING = "Time against peak memory of all allocators, over the workloads of the league"


def block(results: Mapping[str, Result], files: Mapping[str, Path]) -> list[str]:
    """The lines for kinds of KINDS, the league among them."""
    found = {kind: summarize(result) for kind, result in results.items()}
    league = found["league"]
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="{PICTURE}-dark.svg">'
    light = f'<img alt="{MEANING}" width="520" src="{PICTURE}-light.svg">'
    lines = [f"<picture>{dark}{light}</picture>", "", *_table(found)]
    lines += [line for kind in found for line in _verdicts(found[kind], KINDS[kind])]
    facts = league.result.environment
    names = ", ".join(f"[{path.name}](bench/results/{path.name})" for path in files.values())
    rows = ", ".join(f"{len(one.common_rows)} {KINDS[kind]}" for kind, one in found.items())
    lines += [
        "",
        f"Geometric means of ratios to {league.baseline} over {rows} in which all succeeded, with"
        f" {LEVEL * 100:g} % intervals, which speak of other programs of this kind, too; below 1 is"
        f" better; ≈ means that no difference is shown. {ENOUGH}. {facts.get('cpu')},"
        f" {facts.get('cpus_allowed')} CPUs, Linux {facts.get('kernel')}, {facts.get('libc')};"
        f" {str(facts.get('date', ''))[:10]}; raw data: {names}.",
    ]
    return lines


def _table(found: Mapping[str, Summary]) -> list[str]:
    """A line for each allocator but the baseline, in the order of the league."""
    base = found["league"].baseline
    heads = [f"÷ {base}'s, less is better"]
    for kind in found:
        heads += [f"{KINDS[kind]}: time", "peak memory"]
    rows = []
    for standing in found["league"].league:
        name = standing.allocator.name
        if name == base:
            continue
        version = standing.allocator.version
        cells = [f"**{name}** {version}".strip() if name == OURS else f"{name} {version}".strip()]
        for summary in found.values():
            own = next((s for s in summary.league if s.allocator.name == name), None)
            cells += [_mean(summary, own, metric) for metric in MAIN]
        rows.append(cells)
    return table(heads, rows)


def _mean(summary: Summary, standing: Standing | None, metric: str) -> str:
    if standing is None or metric not in standing.common:
        return "—"
    return judged(summary, standing, standing.common[metric])


def _verdicts(summary: Summary, what: str) -> Iterator[str]:
    """A line for each metric: rows won, lost and not shown, with the worst of the lost by name."""
    for metric in ROW:
        found = summary.verdicts(OURS, metric)
        if not found.rows:
            continue
        title = {FIGURE: "time", MEMORY: "peak memory"}.get(metric, "other figures")
        worst = f"; worst: {named(found.losses[:WORST])}" if found.losses else ""
        too_few = f"; too few rounds to say in {len(found.open)}" if found.open else ""
        yield (
            f"- {what}, {title}, against the best rival of each row: shown to win in"
            f" {len(found.wins)} of {found.rows}, to lose in {len(found.losses)}; no difference shown"
            f" in {len(found.level)}{too_few}{worst}."
        )
