# SPDX-License-Identifier: MIT
"""report.html: one file with everything a reader needs to believe the result, or not to.

It works from a disk, without a network and without scripts: charts are SVG, drawn here (see
charts/render.py), the style and a page of script are inside. A content security policy forbids
whatever is not in the file, so even a reason that were not escaped could load or run nothing.

    markup      elements, tables; escapes everything else
    words       headline, findings, method: sentences from verdicts
    tables      allocators, league, rows, losses, failures, environment
    page.html, page.css, page.js
"""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template

from .. import charts
from ..charts import export_charts, overview, render
from ..charts.parts import Figure, slug
from ..model import Result
from ..summary import Summary, SummaryError, summarize
from ..wording import counted
from . import tables, words
from .markup import Markup, bullets, element, join, markup, paragraph

__all__ = ["export_charts", "write_report"]

_HERE = Path(__file__).resolve().parent
OVERALL = overview.SECTION  # stands right below the league, before the rows
FURTHER, LOCKS = "Figures of single rows", "Locks"
MANY = 3  # figures of a section; of more than these all but the first are folded


def write_report(result: Result, path: Path) -> None:
    """Write the page. Raises OSError when it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(page(result))
    os.replace(fresh, path)


def page(result: Result) -> str:
    """The page as text."""
    try:
        summary = summarize(result, str(result.options.get("baseline", "")))
    except SummaryError as error:
        return _filled("Nothing to compare", _without_summary(result, str(error)))
    title = words.title(summary)
    return _filled(title, _body(summary, title))


def _filled(title: str, body: Markup) -> str:
    script = (_HERE / "page.js").read_text()
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    dark = Template((_HERE / "dark.css").read_text()).substitute(
        automatic=render.style_rules(":root:not([data-theme=light])"),
        chosen=render.style_rules(":root[data-theme=dark]"),
    )
    return Template((_HERE / "page.html").read_text()).substitute(
        title=markup(f"{title} – brimful bench"),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        style=(_HERE / "page.css").read_text(),
        dark=dark,
        body=body,
        script=script,
    )


def _without_summary(result: Result, why: str) -> Markup:
    return join(
        [
            element("h1", "Nothing to compare"),
            paragraph(f"There are no tables and no charts: {why}.", class_="warning"),
            _section("allocators", "Allocators", tables.allocators(result.allocators)),
            _section("environment", "Environment", tables.facts(result.environment)),
            _section("reproduce", "How to reproduce", _reproduce(result)),
        ]
    )


def _body(summary: Summary, title: str) -> Markup:
    result = summary.result
    sections: dict[str, list[Figure]] = {}
    for figure in charts.figures(summary):
        sections.setdefault(figure.section, []).append(figure)
    overall = sections.pop(OVERALL)
    parts = [
        element("h1", title),
        _warnings(words.warnings(summary)),
        element("div", bullets(words.findings(summary)), class_="finding"),
        paragraph(
            "In every chart and table less is better, unless it says otherwise.", class_="note"
        ),
        _contents(sections),
        _section(
            "league-table", "League", tables.league(summary), bullets(tables.left_out(summary))
        ),
        _chips(summary),
        _figures(OVERALL, overall),
        _rows(summary),
        *_further(summary),
        _failures(summary),
        *(_figures(name, figures) for name, figures in sections.items()),
        _section("allocators", "Allocators", tables.allocators(result.allocators)),
        _section("method", "Method", paragraph(words.method(summary))),
        _section("rows-described", "What the rows are", tables.workloads(summary)),
        _section("environment", "Environment", tables.facts(result.environment)),
        _section("reproduce", "How to reproduce", _reproduce(result)),
    ]
    return join(parts, "\n")


def _warnings(texts: Sequence[str]) -> Markup:
    return element("div", bullets(texts), class_="warning") if texts else markup("")


def _section(anchor: str, title: str, *content: object) -> Markup:
    return element("section", element("h2", title, id=anchor), *content)


def _contents(sections: Iterable[str]) -> Markup:
    fixed = [
        ("league-table", "League"),
        (_anchor(OVERALL), OVERALL),
        ("rows", "Rows"),
        ("figures", FURTHER),
        ("lock-counters", LOCKS),
        ("failed", "Failed cells"),
    ]
    charted = [(_anchor(name), name) for name in sections]
    last = [
        ("allocators", "Allocators"),
        ("method", "Method"),
        ("rows-described", "What the rows are"),
        ("environment", "Environment"),
        ("reproduce", "How to reproduce"),
    ]
    links = [element("a", name, href=f"#{anchor}") for anchor, name in [*fixed, *charted, *last]]
    return element("nav", bullets(links), aria_label="Contents")


def _anchor(section: str) -> str:
    return f"charts-{slug(section.lower())}"


def _rows(summary: Summary) -> Markup:
    ours = [one.allocator.name for one in summary.league if one.allocator.ours]
    if not ours:
        text = "No build of brimful took part, so there are no rows of brimful against its rivals."
        return _section("rows", "Rows", paragraph(text))
    first, *more = sorted(ours, key=len)
    folded = [element("details", element("summary", one), *_duels(summary, one)) for one in more]
    return _section("rows", "Rows", *_duels(summary, first), *folded)


def _duels(summary: Summary, ours: str) -> list[Markup]:
    """What one of ours loses, and all of its rows."""
    lost = tables.losses(summary, ours)
    if lost is None:
        lost = paragraph(f"In no row is {ours} shown to be worse than the best rival there.")
    counts = [paragraph(line) for line in counted(summary, ours)]
    return [*counts, lost, tables.rows(summary, ours)]


def _further(summary: Summary) -> Iterable[Markup]:
    """Absolute figures and lock counters, or that there are none."""
    found = tables.figures(summary)
    none = paragraph("No row of this run has further figures of its own.", class_="note")
    yield _section("figures", FURTHER, *(found or [none]))
    counters = tables.locks(summary)
    uncounted = paragraph("This run has no runs for lock counters.", class_="note")
    yield _section("lock-counters", LOCKS, counters or uncounted)


def _failures(summary: Summary) -> Markup:
    failed, absent = tables.failures(summary), tables.missing(summary)
    none = paragraph("No cell failed.")
    return _section("failed", "Failed cells", failed or none, absent or "")


def _chips(summary: Summary) -> Markup:
    """Buttons that pick one allocator out of all charts; only scripts make them appear."""
    names = [one.allocator.name for one in summary.league]
    buttons = [element("button", name, type="button", value=name) for name in names]
    hint = element("span", "Pick one out of all charts:", class_="note")
    return element("div", hint, *buttons, id="chips", hidden=True)


def _figures(section: str, figures: Sequence[Figure]) -> Markup:
    if len(figures) <= MANY:
        return _section(_anchor(section), section, *map(_figure, figures))
    folded = [
        element(
            "details", element("summary", one.title), _figure(one, titled=False), open=place == 0
        )
        for place, one in enumerate(figures)
    ]
    return _section(_anchor(section), section, *folded)


def _figure(one: Figure, titled: bool = True) -> Markup:
    if one.chart is None:
        return element(
            "div", element("h3", one.title, id=one.key), paragraph(one.absent, class_="note")
        )
    picture = Markup(render.inline(charts.picture(one), one.title))
    title = one.title if titled else ""  # what it is folded under says it already
    caption = element("figcaption", title, element("span", one.note, class_="note"))
    scroll = element(
        "div", picture, class_="scroll", tabindex="0", role="region", aria_label=one.title
    )
    return element("figure", caption, scroll, id=one.key)


def _reproduce(result: Result) -> Markup:
    typed = result.options.get("command_line", "")
    command = typed if isinstance(typed, str) else shlex.join(map(str, typed))
    commit = str(result.environment.get("commit", "unknown"))
    seed = result.options.get("seed")
    if seed is not None and "--seed" not in command:
        before, dashes, after = command.partition(" -- ")
        command = f"{before} --seed {seed}{dashes}{after}"
    lines = f"git checkout {commit}\nmake lib rivals\n{command.replace('brimful', './brimful', 1)}"
    raw = [
        element("a", "results.json", href="results.json"),
        " (raw samples) and ",
        element("a", "results.csv", href="results.csv"),
        " (all figures with their intervals) lie beside this page.",
    ]
    return join(
        [element("pre", element("code", lines)), paragraph(*raw), tables.facts(result.options)]
    )
