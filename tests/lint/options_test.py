#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check_options.py finds options that a page lacks, has too many, or describes otherwise than the
table."""

from __future__ import annotations

import unittest

from _tree import CheckedTree

TABLE = """inline constexpr OptionInfo kOptions[] = {
    {"tier", &Options::tier, "default|hardened", false, 0, 1, 0, "hardened: all"},
    {"delay_ms", &Options::delay_ms, nullptr, false, -1, 3600000, 1000,
     "ms"},
    {"limit", &Options::limit, nullptr, true, kAutoBytes, std::int64_t{1} << 50, 0, "bytes"},
};
"""
GUIDE = """| option | values | default | meaning |
|---|---|---|---|
| `tier` | `default`, `hardened` | `default` | x |
| `delay_ms` | −1 to 3600000 | 1000 | x |
| `limit` | bytes; `auto` | 0 | x |
"""
MANUAL = """.It Cm tier : Ns Cm default | hardened
Text.
Default
.Cm default .
.It Cm delay_ms : Ns Ar milliseconds
Default 1000.
.It Cm limit : Ns Ar bytes | Cm auto
Default 0.
"""


class Options(CheckedTree):
    checker = "check_options.py"

    def setUp(self) -> None:
        super().setUp()
        self.write("src/config/options.h", TABLE)
        self.write("docs/guide/options.md", GUIDE)
        self.write("docs/man/brimful.1", MANUAL)
        self.write(
            "README.md",
            "`tier:hardened`, `BRIMFUL_CONF=delay_ms:-1`, `limit:64M`, `BRIMFUL_DELAY_MS=0`\n",
        )

    def test_pages_that_agree_with_the_table_pass(self) -> None:
        code, output = self.check()
        self.assertEqual(code, 0, output)
        self.assertIn("options: 3,", output)

    def test_the_guide_must_agree(self) -> None:
        guide = "docs/guide/options.md"
        self.rejects(guide, "| `limit` | bytes; `auto` | 0 | x |\n", "", "lacks limit")
        self.rejects(guide, "`tier`", "`tire`", "tire is no option")
        self.rejects(guide, "| 1000 |", "| 100 |", "the default of delay_ms is 1000")
        self.rejects(guide, ", `hardened`", "", "tier takes hardened")
        self.rejects(guide, "`hardened`", "`hardened`, `soft`", "tier does not take soft")
        self.rejects(guide, "3600000", "360000", "delay_ms takes 3600000")
        self.rejects(guide, "; `auto`", "", "limit takes auto")

    def test_the_manual_must_agree(self) -> None:
        manual = "docs/man/brimful.1"
        self.rejects(manual, ".It Cm limit : Ns", ".It Cm limits : Ns", "lacks limit")
        self.rejects(manual, "default | hardened", "default", "tier takes default | hardened")
        self.rejects(manual, "Default 1000", "Default 100", "say `Default 1000.`")

    def test_a_text_must_agree(self) -> None:
        self.rejects("README.md", "tier:hardened", "tier:hard", "tier does not take hard")
        self.rejects("README.md", "delay_ms:-1", "purge_ms:-1", "purge_ms is no option")
        self.rejects("README.md", "BRIMFUL_DELAY_MS", "BRIMFUL_DELAY", "BRIMFUL_DELAY is no option")

    def test_a_table_of_another_form_is_no_success(self) -> None:
        self.write("src/config/options.h", "// empty\n")
        self.assertEqual(self.check()[0], 1)


if __name__ == "__main__":
    unittest.main()
