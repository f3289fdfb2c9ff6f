# SPDX-License-Identifier: MIT
"""The league's place on README.md: one table, one picture, and where brimful loses; and its raw data.

What stands between the two marker lines is written here and nowhere else, from the newest published
run, so that a figure on the front page is one of the raw data it cites. A page without these
lines is left as it is, and that is said.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path

from . import model
from .allocators import OURS
from .markdown import table
from .model import MEMORY, Result
from .statistics import LEVEL
from .summary import Summary, summarize
from .tables import FIGURE, MAIN, ROW, Standing
from .wording import ENOUGH, judged, named

BEGIN = "<!-- figures: written by brimful bench study league -->"
END = "<!-- end of figures -->"
KINDS = {"league": "workloads", "real": "real programs"}
WORST = 3  # lost rows that are named; docs/evaluation.md has all
PICTURE = "league-frontier"  # which docs/evaluation.md shows, too
MEANING = "Time against peak memory of all allocators, over the workloads of the league"


def publish(root: Path, results: Mapping[str, Result]) -> Iterator[str]:
    """Keep the raw data of a league in bench/results/ and write README.md; says what it did."""
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H%M")
    for kind, result in results.items():
        if not result.samples:
            yield f"{KINDS[kind]}: nothing measured, nothing written."
            continue
        path = root / "bench" / "results" / f"{kind}-{stamp}.json"
        model.save(result, path)
        whole = "" if result.finished else " (some rows are not known yet)"
        yield f"Raw data: {path.relative_to(root)}{whole}"
    yield write(root)


def write(root: Path) -> str:
    """Write README.md from the newest published results; returns what was done, in a sentence."""
    page = root / "README.md"
    text = page.read_text()
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        return f"README.md has no place for the league's figures ({BEGIN})."
    newest = {kind: files[-1] for kind in KINDS if (files := published(root, kind))}
    if "league" not in newest:
        return "README.md stays: no league is published in bench/results."
    lines = block({kind: model.load(path) for kind, path in newest.items()}, newest)
    draw(model.load(newest["league"]), root / "docs" / "img")
    page.write_text(f"{head}{BEGIN}\n\n{lines}\n\n{END}{tail}")
    return f"README.md: figures of {', '.join(path.name for path in newest.values())}"


def published(root: Path, kind: str) -> list[Path]:
    """The results of a kind, oldest first; their names sort by time."""
    return sorted((root / "bench" / "results").glob(f"{kind}-2*.json"))


def draw(result: Result, folder: Path) -> list[Path]:
    """The picture, light and dark."""
    from . import charts

    written = charts.export_charts(result, folder, formats=("svg",), keys=("frontier",))
    return [path.rename(folder / path.name.replace("frontier", PICTURE)) for path in written]


def block(results: Mapping[str, Result], files: Mapping[str, Path]) -> str:
    """What stands between the marker lines."""
    found = {kind: summarize(result) for kind, result in results.items()}
    league = found["league"]
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="docs/img/{PICTURE}-dark.svg">'
    light = f'<img alt="{MEANING}" width="520" src="docs/img/{PICTURE}-light.svg">'
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
    return "\n".join(lines)


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
