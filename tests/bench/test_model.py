#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A result file gives back what was put in, and says what is wrong with one that does not."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

import fake_results

from brimful import locate
from brimful.bench import model

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"


class AResultFile(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "results.json"

    def test_it_gives_back_what_was_put_in(self) -> None:
        result = fake_results.full()
        model.save(result, self.path)
        self.assertEqual(model.load(self.path), result)

    def test_it_is_plain_json_that_other_programs_can_read(self) -> None:
        model.save(fake_results.full(), self.path)
        data = json.loads(self.path.read_text())
        self.assertEqual(data["schema"], model.SCHEMA)
        self.assertIn(data["samples"][0]["status"], set(model.Status))

    def test_it_names_no_folder_of_the_checkout(self) -> None:
        result = fake_results.full()
        here = f"{locate.project_root()}/build/libx.so"
        result.allocators.append(model.Allocator("x", library=here))
        model.save(result, self.path)
        self.assertNotIn(locate.project_root(), self.path.read_text())
        self.assertEqual(model.load(self.path).allocator("x").library, "build/libx.so")

    def test_a_file_from_before_figures_and_lock_counters_still_loads(self) -> None:
        model.save(fake_results.full(), self.path)
        data = json.loads(self.path.read_text())
        del data["contention"]
        for cell in data["cells"]:
            del cell["figures"]
        self.path.write_text(json.dumps(data))
        old = model.load(self.path)
        self.assertEqual(old.contention, [])
        self.assertEqual({cell.figures for cell in old.cells}, {()})
        for path in sorted(RESULTS.glob("league-*.json")):
            self.assertGreater(len(model.load(path).samples), 0, path)

    def test_a_file_that_cannot_be_used_is_refused_with_the_reason(self) -> None:
        model.save(fake_results.full(), self.path)
        whole = json.loads(self.path.read_text())
        for text, reason in (
            ("", "not JSON"),
            ("{", "not JSON"),
            ("[]", "not a result"),
            ('{"schema": "brimful-bench/2"}', "brimful-bench/2"),
            ('{"schema": "brimful-bench/1"}', "damaged"),
            (json.dumps(whole | {"samples": [{"cell": "x"}]}), "damaged"),
            (json.dumps(whole | {"cells": [{"nonsense": 1}]}), "damaged"),
        ):
            with self.subTest(text=text[:40]):
                self.path.write_text(text)
                with self.assertRaisesRegex(model.ResultError, reason):
                    model.load(self.path)
        with self.assertRaisesRegex(model.ResultError, "No such file"):
            model.load(self.path.with_name("absent.json"))


if __name__ == "__main__":
    unittest.main()
