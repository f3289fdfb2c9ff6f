#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The framework of studies: records, pages, options, and what is kept of a run that was ended early."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "cli")]

from brimful.bench import model as bench_model  # noqa: E402
from brimful.bench.study import command, model, pages, records, registry  # noqa: E402
from brimful.bench.study.model import Option, Run, Study, StudyError  # noqa: E402

PAGE = """text
<!-- figures: written by brimful bench study a -->
old
<!-- end of figures -->
between
<!-- figures: written by brimful bench study ab -->
theirs
<!-- end of figures -->
<!-- figures: written by brimful bench study a: place -->
<!-- end of figures -->
"""


class Pages(unittest.TestCase):
    def test_only_the_places_of_the_study_are_written(self) -> None:
        text = pages.filled(PAGE, "a", {"": ["new", ""], "place": ["x"], "unused": ["y"]})
        self.assertIn("study a -->\n\nnew\n\n<!-- end", text)
        self.assertIn("study a: place -->\n\nx\n\n<!-- end", text)
        self.assertIn("study ab -->\ntheirs\n<!-- end", text)
        self.assertNotIn("old", text)

    def test_what_is_written_once_more_stays_as_it_is(self) -> None:
        made = {"": ["new"], "place": ["x"]}
        once = pages.filled(PAGE, "a", made)
        self.assertEqual(pages.filled(once, "a", made), once)

    def test_a_page_without_a_place_and_a_place_without_figures_are_errors(self) -> None:
        with self.assertRaises(StudyError):
            pages.filled(PAGE, "b", {"": []})
        with self.assertRaises(StudyError):
            pages.filled(PAGE, "a", {"": []})

    def test_tables_are_aligned_for_a_terminal(self) -> None:
        lines = pages.aligned([*pages.table(["a", "b"], [["long", "1"], ["x", "**234**"]]), "end"])
        self.assertEqual(lines, ["a       b", "long    1", "x     234", "", "end"])


class Studies(unittest.TestCase):
    def test_all_load_and_have_what_they_name(self) -> None:
        self.assertGreater(len(registry.names()), 5)
        for name in registry.names():
            study = registry.load(name)
            with self.subTest(study=name):
                for page in study.pages:
                    place = pages.begin(name).removesuffix(" -->")
                    self.assertIn(place, (ROOT / page).read_text())
                for option in study.options.values():
                    self.assertTrue(option.short is None or type(option.short) is type(option.full))

    def test_they_are_listed_without_any_package(self) -> None:
        """What a bare machine has is typer and rich; the list must not need more."""
        code = (
            "import sys; sys.path[:0] = sys.argv[1:]\n"
            "for name in ('numpy', 'scipy', 'altair', 'vl_convert', 'rich'): sys.modules[name] = None\n"
            "from brimful.bench.study import registry\n"
            "for name in registry.names(): registry.load(name)\n"
            "import studies.demo.programs\n"
        )
        folders = [str(ROOT / "bench"), str(ROOT / "cli")]
        done = subprocess.run(
            [sys.executable, "-c", code, *folders], capture_output=True, text=True, timeout=60
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_figures_of_the_newest_kept_runs_stand_in_the_pages(self) -> None:
        for name in ("pairs", "metrics", "demo"):
            with self.subTest(study=name), contextlib.redirect_stdout(io.StringIO()) as said:
                code = command.write(registry.load(name), [], check=True)
                self.assertEqual(code, 0, said.getvalue())

    def test_every_kept_record_can_be_read(self) -> None:
        for name in registry.names():
            study = registry.load(name)
            for path in command._kept(study):
                with self.subTest(record=path.name):
                    if study.kinds:
                        bench_model.load(path)
                    else:
                        self.assertEqual(records.load(path).study, name)


class Runs(unittest.TestCase):
    """A study of this test, whose records go to a folder of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.kept, self.other = Path(folder.name) / "kept", Path(folder.name) / "other"
        for place, name in ((self.kept, "RESULTS"), (self.other, "WORK")):
            patch = mock.patch.object(command, name, place)
            patch.start()
            self.addCleanup(patch.stop)

    def run_study(
        self, measure: Callable[[Run], None], *words: str, **changes: object
    ) -> tuple[int, str, records.Record | None]:
        options: Mapping[str, Option] = {"rounds": Option("how often", 10, 2)}
        study = Study(
            "x", "?", "long", "short", measure, lambda record: [str(record.results)],
            parts=("one", "two"), options=options, plain=True,
        )  # fmt: skip
        study = replace(study, **changes)  # type: ignore[arg-type]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = command._run(study, command._parsed(study, words))
        found = [*self.kept.glob("*"), *self.other.glob("*")]
        return code, said.getvalue(), records.load(found[0]) if found else None

    @staticmethod
    def whole(run: Run) -> None:
        for part in run.options.only:
            run.record.results[part] = [run.options.rounds]

    def test_a_whole_run_is_kept(self) -> None:
        code, _, record = self.run_study(self.whole)
        assert record is not None
        self.assertEqual((code, record.results), (0, {"one": [10], "two": [10]}))
        self.assertTrue(record.finished)
        self.assertTrue(any(self.kept.iterdir()))

    def test_short_runs_and_parts_are_not_kept_unless_asked_for(self) -> None:
        code, _, record = self.run_study(self.whole, "--short")
        assert record is not None
        self.assertEqual((code, record.results["one"]), (0, [2]))
        self.run_study(self.whole, "--only", "one")
        self.assertFalse(self.kept.exists())
        self.run_study(self.whole, "--only", "two", "--keep")
        self.assertTrue(self.kept.exists())

    def test_what_was_measured_before_an_interruption_is_shown_and_saved(self) -> None:
        def interrupted(run: Run) -> None:
            run.record.results["one"] = [1]
            raise KeyboardInterrupt

        code, said, record = self.run_study(interrupted)
        assert record is not None
        self.assertEqual((code, record.finished, record.results), (130, False, {"one": [1]}))
        self.assertIn("{'one': [1]}", said)
        self.assertFalse(self.kept.exists())

    def test_what_could_not_be_measured_is_said_and_costs_the_exit_code(self) -> None:
        def partly(run: Run) -> None:
            self.whole(run)
            run.record.fail("three", "nobody knows")

        code, said, record = self.run_study(partly)
        assert record is not None
        self.assertEqual(code, 1)
        self.assertIn("three: not measured: nobody knows", said)
        self.assertEqual(record.not_measured, {"three": "nobody knows"})

    def test_what_was_measured_before_an_error_is_saved_too(self) -> None:
        def broken(run: Run) -> None:
            run.record.results["one"] = [1]
            raise StudyError("the program is gone")

        code, said, record = self.run_study(broken)
        assert record is not None
        self.assertEqual((code, record.finished, record.results), (1, False, {"one": [1]}))
        self.assertIn("the program is gone", said)
        self.assertFalse(self.kept.exists())

    def test_an_unknown_part_is_refused(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
            self.run_study(self.whole, "--only", "three")
        self.assertIn("there are: one, two", said.getvalue())


class Files(unittest.TestCase):
    def test_a_record_survives_the_way_to_disk_and_names_no_path_of_this_machine(self) -> None:
        record = records.Record("x", {"cpu": "?"}, {"rounds": 1}, results={"at": f"{ROOT}/build/y"})
        record.allocators = [bench_model.Allocator("a", library=f"{ROOT}/liba.so", ours=True)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x-2026.json"
            records.save(record, path)
            self.assertNotIn(str(ROOT), path.read_text())
            found = records.load(path)
            self.assertEqual(found.results, {"at": "build/y"})
            self.assertEqual(found.allocators[0].library, "liba.so")
            # `bench report` names the study instead of a damaged file.
            with self.assertRaisesRegex(bench_model.ResultError, "study x --write"):
                bench_model.load(path)

    def test_a_full_disk_names_the_file_and_leaves_the_old_one_whole(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a-2026.json"
            records.save(records.Record("a", {}, {}), path)
            before = path.read_text()
            full = OSError(errno.ENOSPC, "No space left on device")
            with mock.patch("os.fsync", side_effect=full), self.assertRaises(OSError) as caught:
                records.save(records.Record("a", {}, {}, results={"x": 1}), path)
            self.assertEqual(caught.exception.filename, str(path))
            self.assertEqual(path.read_text(), before)
            self.assertEqual([one.name for one in Path(folder).iterdir()], [path.name])

    def test_another_file_is_no_record(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.json"
            for text in ("", "[]", "{}", json.dumps({"schema": bench_model.SCHEMA})):
                path.write_text(text)
                with self.assertRaises(StudyError):
                    records.load(path)
            with self.assertRaises(StudyError):
                records.load(model.RESULTS / "none.json")


if __name__ == "__main__":
    unittest.main()
