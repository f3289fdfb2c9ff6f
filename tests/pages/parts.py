#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The parts of blocks.py and messages.py: that they take from a page what a reader sees, and that a
page that is wrong fails."""

from __future__ import annotations

import tempfile
import unittest
from collections import Counter
from pathlib import Path

import _blocks
import _compare
import _substitutes
import blocks
from _sandbox import Sandbox, commands_of

COMMANDS = """```sh
cat > a.c <<'END'
int main(void) {
  return 0;
}
END

echo one \\
  two    # says it
echo 'three
four'
```
"""


class Extracting(unittest.TestCase):
    def test_fences_have_a_language_a_line_and_their_text(self) -> None:
        found = _blocks.of_markdown("Text\n\n```sh\na\n\nb\n```\n\n~~~text\nc\n~~~\n", "p.md")
        self.assertEqual(
            [(b.language, b.line, b.text) for b in found],
            [("sh", 4, "a\n\nb\n"), ("text", 10, "c\n")],
        )

    def test_a_block_without_a_fence_has_no_language(self) -> None:
        found = _blocks.of_markdown("Text\n\n    make lib\n\n- item\n\n      more of it\n", "p.md")
        self.assertEqual([(b.language, b.text) for b in found], [("", "make lib\n")])

    def test_notes_belong_to_the_next_fence(self) -> None:
        text = "<!-- pages: numbers: times -->\n\n```text\n1\n```\n\n```text\n2\n```\n"
        self.assertEqual([b.notes for b in _blocks.of_markdown(text, "p.md")], [("numbers",), ()])

    def test_notes_without_a_reason_or_without_a_fence_are_errors(self) -> None:
        for text in (
            "<!-- pages: numbers -->\n",
            "<!-- pages: numbers: x -->\n\nText\n",
            "```sh\n",
        ):
            with self.subTest(text=text), self.assertRaises(_blocks.PageError):
                _blocks.of_markdown(text, "p.md")

    def test_manuals_show_commands_and_displays(self) -> None:
        text = ".Dl $ brimful run \\-\\- make\n.Bd -literal\nout\\-put\n.Ed\n"
        found = _blocks.of_manual(text, "p.1")
        self.assertEqual(
            [(b.language, b.text) for b in found],
            [("sh", "brimful run -- make\n"), ("text", "out-put\n")],
        )

    def test_scripts_are_cut_into_whole_commands(self) -> None:
        script = _blocks.of_markdown(COMMANDS, "p.md")[0].text
        commands = commands_of(script)
        self.assertEqual(len(commands), 3)
        self.assertTrue(commands[0].endswith("END"))
        self.assertEqual(commands[1], "echo one \\\n  two    # says it")
        with self.assertRaises(ValueError):
            commands_of("echo 'open")


class Comparing(unittest.TestCase):
    def test_addresses_and_gaps_stand_for_others(self) -> None:
        shown = "free(0x7f00003e0000): … 64-byte\n"
        self.assertEqual(_compare.difference(shown, "free(0x7e1230): this 64-byte\n"), "")
        self.assertNotEqual(_compare.difference(shown, "free(0x7e1230): this 32-byte\n"), "")

    def test_numbers_stand_for_others_only_if_that_is_said(self) -> None:
        self.assertNotEqual(_compare.difference("took 12 ms", "took 134 ms"), "")
        self.assertEqual(_compare.difference("took    12 ms", "took 134 ms", numbers=True), "")
        self.assertNotEqual(_compare.difference("took 12 ms", "needed 134 ms", numbers=True), "")

    def test_lines_may_be_neither_missing_nor_left_over(self) -> None:
        self.assertNotEqual(_compare.difference("a\nb\n", "a\n"), "")
        self.assertNotEqual(_compare.difference("a\n", "a\nb\n"), "")
        self.assertEqual(_compare.difference("a\n…\nd\n", "a\nb\nc\nd\n"), "")
        self.assertNotEqual(_compare.difference("a\n…\nd\n", "a\nb\n"), "")

    def test_order_counts_unless_it_is_said(self) -> None:
        self.assertNotEqual(_compare.difference("a\nb\n", "b\na\n"), "")
        self.assertEqual(_compare.difference("a\nb\n", "b\na\n", any_order=True), "")

    def test_further_lines_are_passed_over_if_that_is_said(self) -> None:
        self.assertNotEqual(_compare.difference("a\nc\n", "a\nb\nc\nd\n"), "")
        self.assertEqual(_compare.difference("a\nc\n", "a\nb\nc\nd\n", more_lines=True), "")
        self.assertNotEqual(_compare.difference("a\nc\n", "a\nb\n", more_lines=True), "")
        self.assertNotEqual(_compare.difference("c\na\n", "a\nc\n", more_lines=True), "")

    def test_json_has_the_keys_that_are_shown(self) -> None:
        printed = 'tag: {"a":1,"b":{"c":2.5,"d":[]},"e":"x"}\n'
        self.assertEqual(_compare.json_difference('{"a":7,"b":{"c":1, …}, …}', printed), "")
        for wrong in ('{"z":7, …}', '{"b":{"z":1}, …}', '{"a":"text", …}', '{"a":'):
            with self.subTest(shown=wrong):
                self.assertNotEqual(_compare.json_difference(wrong, printed), "")


class Substituting(unittest.TestCase):
    def test_each_entry_has_a_reason_and_a_kind(self) -> None:
        for entry in _substitutes.TABLE:
            self.assertTrue(entry.reason)
            self.assertIn(entry.kind, (_substitutes.SHORTENED, _substitutes.PARSED))

    def test_a_comment_does_not_count(self) -> None:
        choice = _substitutes.choose("make test   # everything")
        self.assertEqual(
            (choice.kind, choice.script), (_substitutes.PARSED, "make test -n > /dev/null")
        )

    def test_what_is_not_in_the_table_runs_as_it_stands(self) -> None:
        choice = _substitutes.choose("make lib")
        self.assertEqual((choice.kind, choice.script), ("", "make lib"))


class Running(unittest.TestCase):
    def outcome(self, text: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder, Sandbox() as sandbox:
            path = Path(folder) / "page.md"
            path.write_text(text)
            page = blocks.Page(sandbox, Counter(), set())
            return [page.run(block) for block in _blocks.of_page(path, "page.md")]

    def test_a_page_that_is_right_passes(self) -> None:
        self.assertEqual(
            self.outcome(COMMANDS + "\n```text\none two\nthree\nfour\n```\n"), ["", ""]
        )

    def test_a_command_that_fails_is_named(self) -> None:
        wrong = self.outcome("```sh\ntrue\nexit 3\necho on\n```\n")
        self.assertIn("exit 3\n  ended with 3", wrong[0])

    def test_another_output_is_a_fault(self) -> None:
        self.assertEqual(bool(self.outcome("```sh\necho a\n```\n\n```text\nb\n```\n")[1]), True)

    def test_an_output_of_no_command_is_a_fault(self) -> None:
        self.assertNotEqual(self.outcome("```text\na\n```\n"), [""])
        self.assertNotEqual(self.outcome("```sh\nmake test\n```\n\n```text\na\n```\n")[1], "")

    def test_a_block_without_a_language_is_a_fault(self) -> None:
        self.assertNotEqual(self.outcome("    make lib\n"), [""])

    def test_an_abort_passes_only_as_the_last_command_and_is_shown(self) -> None:
        page = "```sh\nkill -ABRT $$\n```\n\n```text\nAborted\n```\n"
        self.assertEqual(self.outcome(page), ["", ""])
        self.assertNotEqual(self.outcome("```sh\nkill -ABRT $$\ntrue\n```\n"), [""])

    def test_so_does_a_segmentation_fault(self) -> None:
        page = "```sh\nkill -SEGV $$\n```\n\n```text\nSegmentation fault\n```\n"
        self.assertEqual(self.outcome(page), ["", ""])

    def test_a_program_with_a_warning_or_a_failure_is_a_fault(self) -> None:
        self.assertEqual(self.outcome("```c\nint main(void) { return 0; }\n```\n"), [""])
        self.assertNotEqual(
            self.outcome("```c\nint main(void) { int unused; return 0; }\n```\n"), [""]
        )
        self.assertNotEqual(self.outcome("```c\nint main(void) { return 1; }\n```\n"), [""])

    def test_a_warning_in_a_command_is_a_fault(self) -> None:
        page = "```sh\ncat > a.c <<'END'\nint main(void) { int unused; return 0; }\nEND\ncc -o a a.c\n```\n"
        self.assertIn("unused", self.outcome(page)[0])

    def test_toml_must_parse(self) -> None:
        self.assertEqual(self.outcome("```toml\na = 1\n```\n"), [""])
        self.assertNotEqual(self.outcome("```toml\na =\n```\n"), [""])


if __name__ == "__main__":
    unittest.main()
