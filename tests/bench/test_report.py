# SPDX-License-Identifier: MIT
"""The report says what the result says, to everybody: in the dark, offline, and to whoever lost.

Whether a chart is pleasant to read only eyes can tell; here is what can be proved about it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
import sys
import tempfile
import unittest
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import fake_results

from brimful.bench import charts, report
from brimful.bench.charts import look, parts, render
from brimful.bench.model import Allocator, Result, Status
from brimful.bench.summary import summarize

EVIL = "<script>alert('reason')</script>"
EVIL_NAME = 'a<img src="x">&c'
PNG = b"\x89PNG\r\n"


@functools.cache
def full() -> Result:
    """A whole run, with markup in a reason, in an allocator's name and in a title."""
    result = fake_results.full(rounds=6)
    fake_results.fail(result, {("sh6", "jemalloc-5.3.0"): (Status.FAILED, EVIL)})
    result.allocators.append(Allocator(EVIL_NAME, missing=EVIL))
    result.cells[0] = replace(result.cells[0], title=EVIL)
    return result


def written(result: Result) -> str:
    """The page, by way of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new" / "report.html"
        report.write_report(result, path)
        assert [one.name for one in path.parent.iterdir()] == ["report.html"]
        return path.read_text()


@functools.cache
def full_page() -> str:
    return written(full())


def pictures(page: str) -> list[str]:
    return re.findall(r"<svg .*?</svg>", page, re.DOTALL)


def in_words(result: Result) -> str:
    """The page without its charts, which take most of the time: for what is said beside them."""
    none = parts.Figure("none", report.OVERALL, "Left out", "", absent="No chart.")
    with mock.patch.object(charts, "figures", return_value=[none]):
        return written(result)


def duel(brimful: float, **more: float) -> Result:
    """Six rows of glibc and brimful, which needs `brimful` times as long."""
    row = {"glibc": 1.0, "brimful": brimful, **more}
    return fake_results.constructed({f"row{k}": row for k in range(6)})


class EveryChart(unittest.TestCase):
    def test_is_drawn_from_a_whole_run(self) -> None:
        figures = charts.figures(summarize(full()))
        self.assertEqual([one.key for one in figures if one.chart is None], [])
        keys = {one.key for one in figures}
        self.assertEqual(len(keys), len(figures))
        for key in (
            *("league", "frontier", "metrics", "heat-time", "heat-memory", "changes-threads"),
            *("sweep-thread-sweep", "sweep-size-sweep", "latency-latency-mixed-malloc"),
            *(
                "locks-threads",
                "locks-sweep",
                "memory-burst-idle",
                "huge-share",
                "ullage",
                "runs-single",
                "noise",
            ),
        ):
            self.assertIn(key, keys)

    def test_holds_to_the_schema_of_vega_lite(self) -> None:
        result = fake_results.full(rounds=5)
        kept = {
            "larson",
            "burst-idle",
            "idle-threads",
            "latency-mixed",
            "thread-sweep@2",
            "thread-sweep@2048",
        }
        result.cells = [one for one in result.cells if one.name in kept]
        result.samples = [one for one in result.samples if one.cell in kept]
        result.contention = [one for one in result.contention if one.cell in kept]
        names = ("glibc", "brimful", "scudo")
        result.allocators = [one for one in result.allocators if one.name in names]
        drawn = [one.chart for one in charts.figures(summarize(result)) if one.chart is not None]
        self.assertGreater(len(drawn), 10)
        for chart in drawn:
            chart.to_dict(validate=True)

    def test_without_its_data_says_so_instead(self) -> None:
        figures = charts.figures(summarize(duel(0.9)))
        absent = {one.key: one.absent for one in figures if one.chart is None}
        for key in ("sweep-threads", "sweep-size", "latency", "memory-over-time", "locks"):
            self.assertRegex(absent[key], r"^No .*\.$")
        page = written(duel(0.9))
        for sentence in absent.values():
            self.assertIn(sentence.split("“")[0], page)

    def test_has_no_number_that_is_none(self) -> None:
        short = fake_results.constructed({"a": {"glibc": 1.0, "brimful": 0.9}}, rounds=3)
        for page in (full_page(), written(short)):
            for picture in pictures(page):
                self.assertNotRegex(picture, r"NaN|Infinity|undefined|null")

    def test_shows_the_same_allocator_always_alike(self) -> None:
        few = [Allocator("mimalloc-3.1"), Allocator("brimful", ours=True)]
        many = [*few, *(Allocator(name) for name in ("aaa", "mimalloc-2.0", "zzz", "glibc"))]
        for name in ("mimalloc-3.1", "brimful"):
            one, other = look.styles(few)[name], look.styles(many)[name]
            self.assertEqual((one.colour, one.shape), (other.colour, other.shape))
        self.assertEqual(look.styles(few)["brimful"].colour, look.ACCENT)

    def test_tells_all_allocators_apart_without_colour(self) -> None:
        styles = look.styles(full().allocators).values()
        signs = [(style.shape, style.dash) for style in styles if style.colour != look.OTHER]
        self.assertEqual(len(set(signs)), len(signs))


class TheDark(unittest.TestCase):
    def test_has_a_colour_for_each_colour_that_is_drawn(self) -> None:
        drawn = "".join(pictures(full_page()))
        used = set(re.findall(r'(?:fill|stroke)="([^"]*)"', drawn))
        self.assertIn(look.ACCENT, used)
        self.assertLessEqual(used, {*look.DARK, "none", "transparent", "white"})

    def test_is_in_the_page_for_each_of_them(self) -> None:
        for light, dark in look.DARK.items():
            for attribute in ("fill", "stroke"):
                rule = f'svg [{attribute}="{light}"]{{{attribute}:{dark}}}'
                self.assertEqual(full_page().count(rule), 2, rule)  # by the system, by hand

    def test_keeps_apart_what_is_apart_in_the_light(self) -> None:
        self.assertEqual(len({*look.DARK.values()}), len(look.DARK))
        self.assertNotIn(look.PAPER, render.dark(f'<rect fill="white"/><path fill="{look.INK}"/>'))


class ThePage(unittest.TestCase):
    def test_loads_nothing_from_anywhere(self) -> None:
        page = full_page()
        self.assertEqual(
            set(re.findall(r"https?://[^\"' <>)]+", page)), {"http://www.w3.org/2000/svg"}
        )
        loads = r"@import|url\(|<(?:link|img|iframe|object|embed)|<\w[^>]*\ssrc="
        self.assertIsNone(re.search(loads, page))
        targets = {one for one in re.findall(r'href="([^"]*)"', page) if not one.startswith("#")}
        self.assertEqual(targets, {"results.json", "results.csv"})

    def test_forbids_every_script_but_its_own(self) -> None:
        (script,) = re.findall(r"<script>(.*?)</script>", full_page(), re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        self.assertIn(f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
                      full_page())  # fmt: skip

    def test_escapes_what_comes_from_data(self) -> None:
        self.assertNotIn("<script>alert", full_page())
        self.assertNotIn("<img", full_page())
        self.assertIn("&lt;script&gt;alert", full_page())
        self.assertIn("a&lt;img", full_page())

    def test_is_small_enough_to_send(self) -> None:
        self.assertLess(len(full_page().encode()), 5_000_000)

    def test_has_pictures_that_are_whole(self) -> None:
        found = pictures(full_page())
        self.assertGreater(len(found), 20)
        for picture in found:
            root = ElementTree.fromstring(picture)
            self.assertTrue(root.get("aria-label"))

    def test_has_each_anchor_once_and_every_link_leads_to_one(self) -> None:
        anchors = re.findall(r'\bid="([^"]*)"', full_page())
        self.assertEqual(len(anchors), len(set(anchors)))
        links = set(re.findall(r'href="#([^"]*)"', full_page()))
        self.assertGreater(len(links), 10)
        self.assertLessEqual(links, set(anchors))

    def test_keeps_the_digits_of_its_tooltips(self) -> None:
        titles = re.findall(
            r"<title>(brimful · time [^<]*)</title>", "".join(pictures(full_page()))
        )
        self.assertRegex(titles[0], r"time 0\.\d{3}, 95 % interval 0\.\d{3} to 0\.\d{3}")

    def test_has_no_tooltip_that_names_fields(self) -> None:
        titles = re.findall(r"<title>([^<]*)</title>", "".join(pictures(full_page())))
        self.assertGreater(len(titles), 1000)
        fields = re.compile(r"\b(?:allocator|value|at|low|high|one|t|x|y|mib|round): ")
        self.assertEqual([one for one in titles if fields.search(one)], [])

    def test_shows_each_failed_cell_with_its_reason(self) -> None:
        section = full_page().partition('id="failed"')[2].partition("<h2")[0]
        for (cell, allocator), (status, reason) in fake_results.FAILURES.items():
            line = next(
                row for row in section.split("<tr>") if f">{cell}<" in row and allocator in row
            )
            self.assertIn(status, line)
            self.assertIn(reason.replace("'", "&#x27;"), line)
        heat = next(one for one in pictures(full_page()) if "Time, or the row" in one)
        self.assertIn("rpmalloc · larson: crashed: killed by signal 11", heat)
        self.assertEqual(heat.count("✕"), 7)  # FAILURES and EVIL

    def test_names_the_rows_and_allocators_that_are_missing_and_why(self) -> None:
        for reason in ("pgbench is not installed", "not in any registry that is asked"):
            self.assertIn(reason, full_page())

    def test_shows_the_figures_of_a_row_with_their_units_and_goals(self) -> None:
        section = full_page().partition('id="figures"')[2].partition("<h2")[0]
        self.assertIn("resident for each idle thread (goal: below 1 KiB)", section)
        self.assertIn("0.25 KiB ✓", section)
        self.assertRegex(section, r'<span class="worse">\d+ KiB ✗</span>')
        self.assertIn("10,000", section)

    def test_shows_lock_counters_or_why_there_are_none(self) -> None:
        section = full_page().partition('id="lock-counters"')[2].partition("<h2")[0]
        larson = {
            name: next(
                row for row in section.split("<tr") if ">larson<" in row and f">{name}<" in row
            )
            for name in ("brimful", "brimful-thread", "glibc")
        }
        self.assertIn(">1<", larson["brimful"])  # 4 in 4 million operations
        self.assertIn(">heap 100<", larson["brimful-thread"])
        self.assertIn("not counted by this allocator", larson["glibc"])
        self.assertIn("printed no lock counters", section)

    def test_without_lock_counters_says_so(self) -> None:
        self.assertIn("no runs for lock counters", in_words(duel(0.9)))

    def test_says_how_to_run_it_again(self) -> None:
        result = duel(0.9)
        result.options["command_line"] = ["brimful", "bench", "--", "./a program", "x"]
        page = in_words(result)
        self.assertIn("git checkout 0123456789ab", page)
        self.assertIn("./brimful bench --seed 1 -- &#x27;./a program&#x27; x", page)

    def test_warns_of_a_run_that_did_not_end(self) -> None:
        result = duel(0.9)
        result.finished = False
        self.assertIn("interrupted or out of budget", in_words(result))
        self.assertNotIn("interrupted or out of budget", in_words(duel(0.9)))


class TheHeadline(unittest.TestCase):
    def title(self, result: Result) -> str:
        found = re.search(r"<h1>(.*?)</h1>", in_words(result))
        assert found is not None
        return found[1].replace("\u00a0", " ")

    def test_says_that_brimful_wins(self) -> None:
        self.assertRegex(
            self.title(duel(0.8)), r"brimful .*: (19|20|21)\.\d % less time than glibc"
        )

    def test_says_as_plainly_that_it_loses(self) -> None:
        self.assertRegex(self.title(duel(1.25)), r"brimful .*: 2[456]\.\d % more time than glibc")
        self.assertIn("Where brimful loses", in_words(duel(1.25)))

    def test_says_that_no_difference_is_shown(self) -> None:
        self.assertIn("no difference shown in time (glibc)", self.title(duel(1.0)))
        self.assertIn("In no row is brimful shown to be worse", in_words(duel(1.0)))

    def test_compares_with_the_best_rival_and_not_with_the_baseline(self) -> None:
        self.assertIn("more time than snmalloc", self.title(duel(0.8, snmalloc=0.6)))

    def test_claims_nothing_of_too_few_rounds(self) -> None:
        result = fake_results.constructed({"a": {"glibc": 1.0, "brimful": 0.5}}, rounds=2)
        self.assertIn("too few samples in time", self.title(result))
        self.assertIn("fewer than 5 rounds", in_words(result))


class AResultWithNothingToCompare(unittest.TestCase):
    def pages(self) -> Iterable[tuple[str, str]]:
        one = fake_results.constructed({"a": {"glibc": 1.0}, "b": {"glibc": 2.0}})
        yield "Only glibc ran", written(one)
        yield "Only brimful ran", written(fake_results.constructed({"a": {"brimful": 1.0}}))
        yield "no allocator that could run", written(Result({}, {}, [], []))
        missing = Allocator("glibc", missing=EVIL)
        yield "no allocator that could run", written(Result({}, {}, [missing], []))
        no_rows = Result({}, {}, [Allocator("glibc"), Allocator("brimful", ours=True)], [])
        yield "No overall comparison is possible", written(no_rows)

    def test_is_a_page_that_says_so(self) -> None:
        for sentence, page in self.pages():
            with self.subTest(sentence):
                self.assertIn(sentence, page)
                self.assertIn("</html>", page)

    def test_in_which_all_failed_shows_every_reason(self) -> None:
        failures = {("a", name): (Status.CRASHED, f"{name} fell") for name in ("glibc", "brimful")}
        page = written(
            fake_results.constructed({"a": {"glibc": 1.0, "brimful": 1.0}}, failures=failures)
        )
        self.assertIn("glibc fell", page)
        self.assertIn("brimful fell", page)


class ExportedCharts(unittest.TestCase):
    def test_are_files_in_both_themes_and_formats(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            files = report.export_charts(duel(0.9), Path(folder) / "charts")
            names = {path.name for path in files}
            for theme in ("light", "dark"):
                self.assertLessEqual({f"league-{theme}.svg", f"league-{theme}.png"}, names)
            for path in files:
                content = path.read_bytes()
                self.assertTrue(content.startswith(PNG if path.suffix == ".png" else b"<svg"), path)

    def test_come_in_no_other_format(self) -> None:
        with self.assertRaisesRegex(ValueError, "gif"):
            report.export_charts(duel(0.9), Path("/nonexistent"), ("gif",))


if __name__ == "__main__":
    unittest.main()
