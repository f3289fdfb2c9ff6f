# SPDX-License-Identifier: MIT
"""The tables in the terminal: who wins, by how much, how sure that is, and where brimful loses.

Only formats what `summary` has computed. Nothing is said by colour or weight alone, because output
is piped, copied into mails and read by people who do not see colours: every mark is a character,
and each table says below what its marks mean. Widths follow the terminal: where not all allocators
fit beside each other, the table of ratios comes in several parts, each with the names of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import statistics
from .contention import NOT_COUNTED
from .model import MEMORY, Allocator, Result
from .summary import summarize, word
from .tables import FIGURE, MAIN, OTHER, ROW, Summary, figures_of, own_key, title
from .wording import (
    BEST,
    LEVEL,
    LOCK_HEADS,
    NO_DIFFERENCE,
    SHORT,
    absolute,
    against,
    counted,
    interval,
    judged,
    lock_row,
    ratio_or_value,
    sat_out,
    value,
    with_goal,
)

NARROWEST = 100  # columns: below it (pipes have 80) lines may wrap, but no figure is cut off
WIDE = 130  # columns from which the league shows more than it must


def show(source: Result | Summary, console: Console) -> None:
    """Everything, from the machine down to the lost rows. A console narrower than that is widened."""
    console.width = max(console.width, NARROWEST)
    summary = summarize(source) if isinstance(source, Result) else source
    _machine(summary, console)
    _allocators(summary, console)
    _ratios(summary, console)
    _figures(summary, console)
    _locks(summary, console)
    _ours(summary, console)
    _league(summary, console)
    _noise(summary, console)
    _failures(summary, console)
    _losses(summary, console)
    _headlines(summary, console)


def _say(console: Console, text: str, **options: Any) -> None:
    """A line of text as it is: no markup, no colours of rich's own choice."""
    console.print(text, markup=False, highlight=False, **options)


def _table(*columns: str, right: Sequence[str] = (), gap: int = 2) -> Table:
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=True, justify="right" if name in right else "left")
    return table


def _print(console: Console, heading: str, table: Table) -> None:
    _say(console, f"\n{heading}", style="bold")
    console.print(table, highlight=False)


# --- what ran where ------------------------------------------------------------------------------


def _machine(summary: Summary, console: Console) -> None:
    facts = summary.result.environment
    memory = facts.get("memory_mib")
    parts = (
        str(facts.get("cpu") or "unknown processor"),
        f"{facts['cpus_allowed']} CPUs" if facts.get("cpus_allowed") else "",
        f"{memory / 1024:.0f} GiB" if memory else "",
        f"Linux {facts['kernel']}" if facts.get("kernel") else "",
        str(facts.get("libc") or ""),
        f"huge pages: {facts['thp']}" if facts.get("thp") else "",
        f"governor: {facts['governor']}" if facts.get("governor") else "",
        f"commit {facts['commit'][:12]}" if facts.get("commit") else "",
        str(facts.get("date") or ""),
    )
    _say(console, "Machine: " + " · ".join(part for part in parts if part))
    if not summary.result.finished:
        _say(console, "The bench did not run to its end: some rows have few samples or none.")


def _allocators(summary: Summary, console: Console) -> None:
    table = _table("name", "version", "SHA-256", "from", "mode")
    for column in table.columns[3:]:
        column.no_wrap, column.overflow = False, "fold"
    for allocator in summary.result.allocators:
        if not allocator.missing:
            cells = (allocator.version or "?", allocator.sha256[:12] or "?", allocator.origin)
            name = allocator.name + (" (baseline)" if allocator.name == summary.baseline else "")
            table.add_row(*map(escape, (name, *cells, _mode(allocator))))
    _print(console, "Allocators", table)
    for allocator in summary.missing:
        _say(console, f"Missing: {allocator.name}: {allocator.missing}")


def _mode(allocator: Allocator) -> str:
    settings = " ".join(f"{key}={value}" for key, value in allocator.settings.items())
    return "; ".join(part for part in (allocator.mode, settings) if part)


# --- rows ----------------------------------------------------------------------------------------


def _ratios(summary: Summary, console: Console) -> None:
    """Time of every allocator over the baseline's, in as many parts as the width needs."""
    rows = [row for row in summary.rows if not row.cell.missing]
    names = [s.allocator.name for s in summary.league if s.allocator.name != summary.baseline]
    headings = {name: _heading(name) for name in names}
    first = max((len(row.cell.name) for row in rows), default=3) + len("0.000 ms") + 8
    for part in _parts(names, headings, console.width - first):
        table = _table(
            *("row", summary.baseline, *(headings[name] for name in part)),
            right=(summary.baseline, *headings.values()),
        )
        for row in rows:
            base = row.entries[summary.baseline]
            cells = (_emphasised(ratio_or_value(row, row.entries[name])) for name in part)
            table.add_row(escape(row.cell.name), value(row, base), *cells)
        _print(console, f"Time: ratio to {summary.baseline} (below 1 is better)", table)
    whose = summary.baseline
    _say(
        console,
        f"{_others(summary)}{BEST} best of the row   {LEVEL} not shown to be slower than the best"
        f"   {NO_DIFFERENCE} no difference to {whose} shown   ? too few samples.  Where {whose} failed,"
        " figures stand for ratios. failed, crashed, timeout, foreign (another malloc was in use):"
        " see below. — not run.",
    )
    for row in summary.rows:
        if row.cell.missing:
            _say(console, f"Row left out: {row.cell.name}: {row.cell.missing}")


def _emphasised(text: str) -> str:
    return f"[bold]{text}[/bold]" if BEST in text else text


def _others(summary: Summary) -> str:
    """A sentence about the rows whose figure is not a time."""
    others = [row.cell for row in summary.rows if own_key(row.cell) == OTHER]
    names = ", ".join(f"{cell.name} ({cell.figure})" for cell in others)
    return f"Not times, and in no mean of times: {names}.\n" if others else ""


def _heading(name: str) -> str:
    """A name on two lines if it is long: column heads may be tall but not wide."""
    if len(name) <= 8 or "-" not in name:
        return name
    head, _, tail = name.partition("-")
    return f"{head}-\n{tail}"


def _parts(names: Sequence[str], headings: dict[str, str], width: int) -> list[list[str]]:
    """`names` in groups of about the same size that fit into `width`."""

    def groups(most: int) -> list[list[str]]:
        found: list[list[str]] = []
        used = width
        for name in names:
            needed = max(len("0.000*≈"), *(len(line) for line in headings[name].split("\n"))) + 2
            if not found or used + needed > width or len(found[-1]) == most:
                found.append([])
                used = 0
            found[-1].append(name)
            used += needed
        return found

    fewest = len(groups(len(names)))
    return groups(math.ceil(len(names) / fewest)) if fewest else []


def _figures(summary: Summary, console: Console) -> None:
    """The rows' further figures, which are absolute: a table for each such row."""
    for row in summary.rows_with_figures():
        table = _table("allocator", *(metric.key for metric in row.cell.figures), gap=3)
        for name in summary.present:
            entry = row.entries[name]
            if not entry.ok:
                table.add_row(escape(name), SHORT[entry.status])
                continue
            have = dict(figures_of(row, entry))
            cells = (
                absolute(metric, have[metric].median) if metric in have else "—"
                for metric in row.cell.figures
            )
            table.add_row(escape(name), *cells)
        _print(console, f"{row.cell.name}: {row.cell.title}", table)
        for metric in row.cell.figures:
            _say(console, f"{metric.key}: {with_goal(metric)}.")


def _locks(summary: Summary, console: Console) -> None:
    """Lock counters of ours; the others have none, which one line says."""
    ours = {allocator.name for allocator in summary.result.allocators if allocator.ours}
    counted = [one for one in summary.contention if one.allocator in ours]
    if not counted:
        return
    heads = (
        "row",
        "allocator",
        "contended/M",
        "busy/M",
        "acquired/M",
        "waited",
        "Mop/s",
        "by kind",
    )
    table = _table(*heads, right=heads[2:-1])
    table.columns[-1].no_wrap, table.columns[-1].overflow = False, "fold"
    for one in counted:
        row, name, contended, kinds, *rest = lock_row(one)
        if not one.missing:
            table.add_row(*map(escape, (row, name, contended, *rest, kinds)))
    _print(console, "Locks", table)
    _say(
        console,
        f"{LOCK_HEADS[2]}; {LOCK_HEADS[4]}; {LOCK_HEADS[5]}; {LOCK_HEADS[6]}; {LOCK_HEADS[7]}. An"
        " operation is a malloc and its free. Counted in runs of their own."
        f" Everybody else: {NOT_COUNTED}.",
    )
    for one in counted:
        if one.missing:
            _say(console, f"Not counted: {one.cell}, {one.allocator}: {one.missing}.")


def _ours(summary: Summary, console: Console) -> None:
    """Each of ours over the best rival of the row, in time and memory."""
    for name in (s.allocator.name for s in summary.league if s.allocator.ours):
        table = _table(*("row", "time", "best rival", "peak memory", "best rival"), gap=1)
        for row in summary.rows:
            if row.cell.missing:
                continue
            entry = row.entries[name]
            cells = [
                text
                for m in (own_key(row.cell), MEMORY)
                for text in map(escape, against(row, name, m))
            ]
            table.add_row(escape(row.cell.name), *(cells if entry.ok else [SHORT[entry.status]]))
        _print(console, f"{name} over the best rival of each row (below 1 is better)", table)
    misses = statistics.expected_misses(summary.intervals)
    _say(
        console,
        f"+ better, − worse, {NO_DIFFERENCE} no difference shown (the interval holds 1, or the"
        " difference is within the row's noise floor), ? too few samples; ratio and 95 % interval."
        f" Of {summary.intervals} intervals here and above, about {misses:.0f} do not hold the"
        " truth.",
    )


# --- the league ----------------------------------------------------------------------------------


def _league(summary: Summary, console: Console) -> None:
    wide = console.width >= WIDE
    heads = ["#", "allocator", "time", "memory", "rows", "T +/−/≈", "M +/−/≈", "fail"]
    heads += ["T common", "M common"] if wide else ["T com", "M com"]
    table = _table(*heads, right=("#",), gap=2 if wide else 1)
    count = sum(own_key(r.cell) == FIGURE and not r.cell.missing for r in summary.rows)
    place = 0
    for standing in summary.league:
        place += bool(standing.common)
        tallies = (standing.tally[metric] for metric in MAIN)
        table.add_row(
            f"{place}" if standing.common else "—",
            escape(standing.allocator.name),
            *(judged(summary, standing, standing.means.get(metric)) for metric in MAIN),
            f"{standing.rows}/{count}",
            *(f"{t.better}/{t.worse}/{t.same + t.too_few}" for t in tallies),
            str(len(standing.failed)),
            *(
                judged(summary, standing, standing.common.get(metric), short=not wide)
                for metric in MAIN
            ),
        )
    _print(console, f"League: geometric means of ratios to {summary.baseline}", table)
    _league_notes(summary, console)
    _families(summary, console)


def _league_notes(summary: Summary, console: Console) -> None:
    beyond = any(standing.means[FIGURE].mean.beyond for standing in summary.league if standing.rows)
    meaning = (
        "other workloads of this kind would give a mean in it"
        if beyond
        else "they speak of these rows only"
    )
    _say(
        console,
        f"T time, M peak memory. Mean (95 % interval: {meaning}); {NO_DIFFERENCE} no difference"
        f" to {summary.baseline} shown. +/−/≈: rows better, worse, no difference shown. A sweep"
        f" counts as one workload. Order and common: over the {len(summary.common_rows)} rows in"
        " which all succeeded; only those compare allocators with each other.",
    )
    for name, why in summary.not_common:
        _say(console, f"The common rows do without {name}: {why}.")
    if summary.frontier:
        names = ", ".join(summary.frontier)
        _say(console, f"Frontier (nobody's means are lower in both time and memory): {names}.")


def _families(summary: Summary, console: Console) -> None:
    """Subtotals of time, each over the rows of the family in which the allocator succeeded."""
    families = list(dict.fromkeys(r.cell.family for r in summary.rows if not r.cell.missing))
    if len(families) < 2:
        return
    table = _table("allocator", *families, right=families)
    for standing in summary.league:
        means = (standing.families.get(family, {}).get(FIGURE) for family in families)
        cells = (judged(summary, standing, mean, short=True) for mean in means)
        table.add_row(escape(standing.allocator.name), *cells)
    _print(console, f"Time by family: geometric mean of ratios to {summary.baseline}", table)


# --- noise, failures, losses ---------------------------------------------------------------------


def _noise(summary: Summary, console: Console) -> None:
    _say(console, "")
    for metric in ROW:
        floor = summary.noise[metric]
        if not floor.cells:
            if metric != OTHER:
                _say(console, f"Noise floor, {title(metric)}: not measured.")
            continue
        _say(
            console,
            f"Noise floor, {title(metric)}: two runs of the same allocator differ by"
            f" {floor.typical:.1%} (median over rows). To be shown, a difference has to exceed the"
            f" floor of its row ({floor.default:.1%} or less in 95 % of rows), that of a mean"
            f" {_floor(floor.of_means)}. The A/A interval"
            f" misses 1 in {floor.excluded} of {len(floor.cells)} rows (expected: about"
            f" {statistics.expected_misses(len(floor.cells)):.0f}).",
        )


def _floor(share: float) -> str:
    return "the unknown: too few pairs" if math.isinf(share) else f"{share:.1%}"


def _failures(summary: Summary, console: Console) -> None:
    failed = [
        (cell, standing.allocator.name, reason)
        for standing in summary.league
        for cell, reason in standing.failed
    ]
    if not failed:
        _say(console, "\nFailed cells: none.")
        return
    table = _table("row", "allocator")
    table.add_column("reason", overflow="fold")
    for line in sorted(failed):
        table.add_row(*map(escape, line))
    _print(console, f"Failed cells: {len(failed)} (no figure of theirs is used)", table)


def _losses(summary: Summary, console: Console) -> None:
    if slow := sat_out(summary):
        _say(console, f"\n{slow}")
    for name in (s.allocator.name for s in summary.league if s.allocator.ours):
        for line in counted(summary, name):
            _say(console, line)
        losses = [loss for loss in summary.losses if loss.ours == name]
        if not losses:
            _say(
                console, f"\nRows in which {name} is shown to lose to a rival: none.", style="bold"
            )
            continue
        table = _table(*("row", "figure", "ratio (95 % interval)", "best rival"))
        for loss in losses:
            figure = {FIGURE: "time", OTHER: "own figure"}.get(loss.metric, "peak memory")
            ratio = interval(loss.against.ratio)
            table.add_row(*map(escape, (loss.cell, figure, ratio, loss.against.other)))
        _print(console, f"Rows in which {name} is shown to lose to a rival: {len(losses)}", table)


def _headlines(summary: Summary, console: Console) -> None:
    if summary.headlines:
        _say(console, "")
    for line in summary.headlines:
        figure = "peak memory" if line.metric == MEMORY else "time"
        over, each = line.over_rival, line.over_best_of_each
        _say(
            console,
            f"{line.ours}, {figure}: {interval(over.mean)} of {line.rival}, the best rival overall"
            f" ({word(over.verdict, line.metric)}; rows: {over.mean.rows});"
            f" {interval(each.mean)} of the best rival of each row"
            f" ({word(each.verdict, line.metric)}; rows: {each.mean.rows}).",
        )
