#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What `brimful prof` makes of samples: weights, views, pprof's format, folded stacks, the flame graph.

The samples are made here, so that each number can be computed by hand; test_prof.py has real ones.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cli"))

from brimful.prof import flame, folded, samples, stacks, views  # noqa: E402

try:
    from brimful.prof import pprof
except ImportError:  # python3-protobuf
    pprof = None  # type: ignore[assignment]

INTERVAL = 1 << 19
SECOND = 10**9


def answer(rows: list[list[int]], **changes: object) -> dict[str, object]:
    """An observer's answer with two stacks: small < run < main, and big < main with an end that was lost."""
    names = ["malloc", "small", "run", "main", "big"]
    return {
        "schema": "brimful-samples",
        "version": 1,
        "pid": 7,
        "program": "/bin/program",
        "name": "program",
        "began_ns": 10 * SECOND,
        "ended_ns": 20 * SECOND,
        "began_unix": 1.0,
        "interval": INTERVAL,
        "complete": False,
        "ended": "time",
        "missed": 0,
        "lost": 0,
        "allocated_bytes": 0,
        "modules": [
            {"path": "/usr/lib/libbrimful.so.1", "build_id": "00"},
            {"path": "/bin/program", "build_id": "ab12"},
        ],
        "locations": [
            {"module": int(i > 0), "address": 16 * i, "lines": [[name, f"{name}.c", i]]}
            for i, name in enumerate(names)
        ],
        "stacks": [
            {"end": "complete", "locations": [0, 1, 2, 3]},
            {"end": "unknown", "locations": [0, 4, 3]},
        ],
        "samples": rows,
    } | changes


def row(number: int, usable: int, stack: int, came: float, went: float = 0.0) -> list[int]:
    times = [int(came * SECOND), int(went * SECOND)]
    return [number, 4096 * number, usable, usable, INTERVAL, *times, 1, 1, 0, stack, -1]


def weight(usable: int) -> float:
    return 1 / (1 - math.exp(-usable / INTERVAL))


class Weights(unittest.TestCase):
    def test_a_sample_stands_for_as_many_objects_as_its_probability_says(self) -> None:
        recording = samples.recording(answer([row(1, 64, 0, 11), row(2, 1 << 30, 1, 12)]))
        small, big = recording.samples
        self.assertAlmostEqual(small.weight, INTERVAL / 64 + 0.5, delta=0.01)
        self.assertAlmostEqual(big.weight, 1.0)
        self.assertAlmostEqual(
            samples.standard_error(recording.samples),
            64 * math.sqrt(small.weight * (small.weight - 1)),
            delta=0.01,
        )

    def test_the_sum_over_stacks_is_the_sum_over_classes(self) -> None:
        rows = [row(i, 64 << (i % 9), i % 2, 11 + i / 100) for i in range(1, 200)]
        recording = samples.recording(answer(rows))
        by_stack = views.in_use(recording).total()
        by_class = stacks.total(views.by_class(recording.samples).values())
        self.assertAlmostEqual(by_stack.bytes, by_class.bytes, places=3)
        self.assertAlmostEqual(by_stack.objects, by_class.objects, places=3)

    def test_what_was_read_stands_for_what_was_missed(self) -> None:
        rows = [row(1, 1 << 24, 0, 11), row(2, 1 << 24, 1, 12, 13)]
        recording = samples.recording(answer(rows, missed=3, allocated_bytes=5 << 24))
        self.assertAlmostEqual(views.allocated(recording).total().bytes, 5 << 24, delta=1)
        # Live ones are never missed.
        self.assertAlmostEqual(views.in_use(recording).total().bytes, 1 << 24, delta=1)

    def test_another_version_of_the_observer_is_refused(self) -> None:
        with self.assertRaises(samples.FormatError):
            samples.recording(answer([], version=2))


class Views(unittest.TestCase):
    def setUp(self) -> None:
        self.recording = samples.recording(
            answer(
                [
                    row(1, 1 << 24, 0, 5, 15),  # came before we did
                    row(2, 1 << 25, 0, 11, 11.5),
                    row(3, 1 << 26, 1, 12),
                    row(4, 1 << 24, 1, 13, 13.25),
                ]
            )
        )

    def bytes_of(self, view: str) -> dict[str, int]:
        found = views.VIEWS[view](self.recording)
        return {next(stacks.functions(s)): round(a.bytes) for s, a in found.amounts.items()}

    def test_in_use_is_what_was_not_freed(self) -> None:
        self.assertEqual(self.bytes_of("in-use"), {"big": 1 << 26})

    def test_allocated_is_all_since_the_beginning(self) -> None:
        self.assertEqual(
            self.bytes_of("allocated"), {"small": 1 << 25, "big": (1 << 26) + (1 << 24)}
        )

    def test_lifetimes_are_of_what_was_freed_again(self) -> None:
        self.assertEqual(self.bytes_of("lifetimes"), {"small": 1 << 25, "big": 1 << 24})
        ages = views.lifetimes(self.recording).lifetimes or {}
        self.assertEqual(sorted(ages.values()), [0.25, 0.5])

    def test_growth_takes_off_what_went(self) -> None:
        self.assertEqual(self.bytes_of("growth"), {"small": -(1 << 24), "big": 1 << 26})

    def test_peak_is_the_moment_of_the_most(self) -> None:
        self.assertEqual(self.bytes_of("peak"), {"small": 1 << 24, "big": (1 << 26) + (1 << 24)})

    def test_a_stack_begins_at_the_programs_own_call_and_says_how_it_ends(self) -> None:
        names = [list(stacks.functions(s.stack)) for s in self.recording.samples[1:3]]
        self.assertEqual(names, [["small", "run", "main"], ["big", "main", "[unknown]"]])

    def test_in_a_static_program_the_allocator_is_known_by_its_names(self) -> None:
        names = ["brimful::slots::copy_stack(char*)", "helper", "malloc", "run", "helper", "main"]
        stack = tuple(stacks.Location((stacks.Line(name),), 1, "/bin/p") for name in names)
        found = list(stacks.functions(samples.without_allocator(stack, "/bin/p")))
        self.assertEqual(found, ["run", "helper", "main"])

    def test_a_library_of_any_name_is_left_out(self) -> None:
        files = [
            "/opt/ours.so",
            "/opt/ours.so",
            "/usr/lib/libstdc++.so.6",
            "/bin/p",
            "/opt/ours.so",
        ]
        names = ["ours.so+0x1", "malloc", "operator new(unsigned long)", "main", "again"]
        stack = tuple(
            stacks.Location((stacks.Line(name),), 1, file)
            for name, file in zip(names, files, strict=True)
        )
        found = list(stacks.functions(samples.without_allocator(stack, "/bin/p")))
        self.assertEqual(found, ["main", "again"])

    def test_a_recursive_function_counts_once(self) -> None:
        line = stacks.Location((stacks.Line("again"),))
        table = stacks.flat_and_cumulative({(line, line, line): stacks.Amount(1, 100)})
        self.assertEqual(table["again"][1].bytes, 100)


class Outputs(unittest.TestCase):
    def setUp(self) -> None:
        self.recording = samples.recording(
            answer([row(1, 1 << 24, 0, 11), row(2, 1 << 25, 1, 12), row(3, 1 << 26, 1, 12, 13)])
        )

    def test_folded_stacks_begin_outermost(self) -> None:
        lines = folded.lines(views.in_use(self.recording).amounts)
        self.assertEqual(lines, [f"[unknown];main;big {1 << 25}", f"main;run;small {1 << 24}"])

    def test_the_flame_graph_holds_the_tree_and_nothing_from_a_network(self) -> None:
        page = flame.page("</script>@DATA@", "m", views.in_use(self.recording).amounts)
        self.assertNotRegex(page, r"(src|href)=|https?://|import ")
        found = re.search(
            r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL
        )
        self.assertIsNotNone(found)
        tree = json.loads(found[1])  # type: ignore[index]
        self.assertEqual(tree["b"], (1 << 25) + (1 << 24))
        self.assertEqual([child["n"] for child in tree["c"]], ["[unknown]", "main"])
        for node in (tree, *tree["c"]):
            self.assertLessEqual(sum(child["b"] for child in node["c"]), node["b"])

    def test_a_stack_as_deep_as_they_come_is_drawn(self) -> None:
        deep = tuple(stacks.Location((stacks.Line(f"f{i}"),)) for i in range(3000))
        page = flame.page("t", "m", {deep: stacks.Amount(1, 5)})
        self.assertIn('"f2999"', page)

    @unittest.skipIf(pprof is None, "python3-protobuf is not installed")
    def test_a_profile_reads_back_as_it_was_written(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/heap.pb.gz"
            pprof.write(path, self.recording, views.allocated(self.recording))
            self.assertTrue(pprof.is_profile(path))
            profile = pprof.read(path)
        self.assertEqual(profile.default, "alloc")
        for name, view in (("alloc", views.allocated), ("inuse", views.in_use)):
            expected = view(self.recording)
            read = profile.amounts[name]
            self.assertEqual(set(read), set(expected.amounts))
            for stack, amount in expected.amounts.items():
                self.assertEqual(read[stack].bytes, round(amount.bytes))
                self.assertEqual(read[stack].objects, round(amount.objects))

    @unittest.skipIf(pprof is None, "python3-protobuf is not installed")
    def test_a_view_of_another_kind_has_columns_of_its_own(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/heap.pb.gz"
            pprof.write(path, self.recording, views.peak(self.recording))
            profile = pprof.read(path)
        self.assertEqual(profile.default, "peak")
        self.assertEqual(set(profile.amounts), {"alloc", "inuse", "peak"})

    @unittest.skipIf(pprof is None, "python3-protobuf is not installed")
    def test_what_is_no_profile_is_refused(self) -> None:
        import gzip

        with tempfile.TemporaryDirectory() as folder:
            for name, content in (
                ("cut.gz", gzip.compress(b"x" * 100)[:20]),
                ("other.gz", gzip.compress(b"\xff" * 100)),
            ):
                path = Path(folder) / name
                path.write_bytes(content)
                with self.assertRaises(samples.FormatError, msg=name):
                    pprof.read(str(path))


if __name__ == "__main__":
    unittest.main()
