# SPDX-License-Identifier: MIT
"""The pools and heaps: throughput, worst case, memory, sizes, compaction (docs/guide/pools.md)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from brimful.bench.study import records
from brimful.bench.study.model import ROOT, Data, Option, Run, Study, StudyError
from brimful.bench.study.pages import NOT_MEASURED, Place
from brimful.bench.study.records import Record

PAGE, EVALUATION = "docs/guide/pools.md", "docs/evaluation.md"
PARTS = (
    *("throughput", "latency", "instructions", "fill", "sizes", "runs"),
    *("bands", "compaction", "zcache", "destroy"),
)
PLACES = (*PARTS, "winners", "pages", "page_runs")  # in the page, with goals and origin


def measure(run: Run) -> None:
    from studies.pools import contenders, experiments, samples

    for cache in run.options.caches.split(","):
        if cache not in experiments.CACHES:
            known = ", ".join(experiments.CACHES)
            raise StudyError(f"--caches: no cache {cache!r}; there are: {known}")
    samples.build()
    run.record.allocators = [one.who for one in contenders.everybody()]
    sampler = samples.Sampler(run)
    for part in run.options.only:
        sampler.part = part
        into: Data = run.record.results.setdefault(part, {})
        try:
            experiments.EXPERIMENTS[part](sampler, into)
        except (ValueError, KeyError, OSError, subprocess.SubprocessError) as error:
            # A program printed something else, or the disk is full: the others go on.
            run.record.fail(part, f"{type(error).__name__}: {error}")


def show(record: Record) -> list[str]:
    """The goals about what was measured, and who took no part."""
    from studies.pools import goals

    lines = [*goals.table(goals.goals(record.results, record.results)), *absent(record)]
    if record.options["short"]:
        lines += ["A short run: that a goal is met or missed means little.", ""]
    return lines


def absent(record: Record) -> list[str]:
    missing = (f"- {one.name}: {one.missing}" for one in record.allocators if one.missing)
    return ["Took no part:", "", *missing, ""] if any(o.missing for o in record.allocators) else []


def figures(place: Place, files: Mapping[str, Path]) -> Mapping[str, Sequence[str]]:
    """What stands at each place of the page; docs/evaluation.md has the goals alone."""
    from studies.pools import charts, goals, tables

    path = files["pools"]
    record = records.load(path)
    origin = [
        *place.origin(path, record.environment, record.allocators),
        *absent(record),
        *record.gaps(),
    ]
    promised = goals.table(goals.goals(record.results))
    if place.page.name != Path(PAGE).name:
        link = f"Tables and charts: [{PAGE}]({place.link(ROOT / PAGE)})."
        return {"goals": ["### Pools and heaps", "", *promised, link, "", *origin]}
    drawn, written = charts.drawn(place, record.results), tables.written(record.results)
    shown = {key: [*drawn.get(key, []), *written.get(key, [])] or NOT_MEASURED for key in PLACES}
    return shown | {"goals": promised, "origin": origin}


STUDY = Study(
    name="pools",
    title="TLSF, page pool, handle pool and heaps against rlsf, talc and mallocs.",
    time="15 minutes",
    short_time="4 minutes",
    measure=measure,
    show=show,
    figures=figures,
    pages=(PAGE, EVALUATION),
    parts=PARTS,
    options={
        "caches": Option(
            "zcache: pages-lz4, pages-zstd, pages-lru, objects-64k", "pages-lz4,pages-zstd"
        ),
        "bytes": Option("zcache: of files", "96M", short="12M"),
        "settle": Option("zcache: seconds of little traffic after each state", 0),
    },
    # cargo, which fetches the crates, comes with what the rivals are built from.
    wants=("tools/install-deps.sh rivals", "cmake --build build/release --target zcache"),
)
