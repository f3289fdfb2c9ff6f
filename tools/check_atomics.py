#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every atomic operation names its memory order, and every order says why it is right.

    acquire, release, acq_rel, seq_cst   `// pairs with: PLACE (WHAT IT PUBLISHES)`
    relaxed                              `// relaxed: WHY THAT SUFFICES`

A compare-exchange with two orders owes a comment for each. The comment stands on one of the lines
of the operation, or in the comment right above its statement; operations in consecutive lines may
share the comment above the first. An order that is a parameter (an identifier with `order` in its
name) is explained where the caller names it.

Also faults: `consume`, the __sync_* builtins, and `++`, `+=`, `=` and the like on a variable
declared as std::atomic, all of which mean seq_cst without saying so. What this script can't see is
a plain read of an atomic (`if (flag_)`); std::atomic allows it, reviews must not.

This is a reader of text, not a compiler. It errs on the strict side: a method called load, store,
exchange, fetch_* or compare_exchange_* is taken for an atomic operation.

    check_atomics.py [--root FOLDER]
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

METHODS = (
    "load|store|exchange|compare_exchange_weak|compare_exchange_strong"
    "|fetch_add|fetch_sub|fetch_and|fetch_or|fetch_xor|test_and_set"
)
OPERATION = re.compile(
    rf"(?:(?:\.|->)\s*(?P<method>{METHODS})"
    r"|\b(?P<fence>atomic_thread_fence|atomic_signal_fence)"
    r"|\b(?P<free>atomic_(?:load|store|exchange|compare_exchange|fetch)\w*)"
    r"|\b(?P<builtin>__atomic_(?!always_lock_free|is_lock_free)\w+))\s*\("
)
SYNC_BUILTIN = re.compile(r"\b__sync_\w+\s*\(")
ORDER = re.compile(r"\b(?:memory_order(?:_|::)|__ATOMIC_)(?P<order>\w+)")
PASSED_ON = re.compile(r"\b\w*order\w*\b")
DECLARATION = re.compile(r"\b(?:std::)?atomic(?:_ref)?\s*<[^;{}()]*>\s+(?P<name>\w+)\s*[;{=\[]")
STRONG = {"acquire", "release", "acq_rel", "seq_cst"}
PAIRS = re.compile(r"//.*\bpairs with:\s*\S")
RELAXED = re.compile(r"//.*\brelaxed:\s*\S")


@dataclass
class Source:
    """A file as lines, with and without comments and strings; same line numbers in both."""

    name: str
    lines: list[str]
    code: list[str]

    @staticmethod
    def read(path: Path, name: str) -> Source:
        text = path.read_text(encoding="utf-8")

        def blank(match: re.Match[str]) -> str:
            return re.sub(r"[^\n]", " ", match[0])

        code = re.sub(
            r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
            blank,
            text,
            flags=re.S,
        )
        return Source(name, text.split("\n"), code.split("\n"))

    def is_comment(self, row: int) -> bool:
        return row >= 0 and not self.code[row].strip() and self.lines[row].strip() != ""


def arguments(source: Source, row: int, column: int) -> tuple[str, int]:
    """The text in the parentheses that open at (row, column), and the row where they close."""
    depth = 0
    text: list[str] = []
    while row < len(source.code):
        for at in range(column, len(source.code[row])):
            character = source.code[row][at]
            depth += {"(": 1, ")": -1}.get(character, 0)
            if depth == 0:
                return "".join(text), row
            text.append(character)
        row, column = row + 1, 0
    return "".join(text), row - 1


def statement_start(source: Source, row: int) -> int:
    """The first row of the statement that `row` belongs to."""
    while row > 0:
        above = source.code[row - 1].strip()
        if not above or above[-1] in ";{}:" or above.startswith("#"):
            break
        row -= 1
    return row


def comments_for(source: Source, first: int, last: int) -> str:
    """The comments beside rows first…last and the block right above, past rows like them."""
    texts = source.lines[first : last + 1]
    start = statement_start(source, first)
    texts += source.lines[start:first]
    while start > 0 and OPERATION.search(source.code[start - 1]):
        start = statement_start(source, start - 1)
    # Above this line, and, inside a longer statement, above the line of the operation itself.
    for row in (start - 1, first - 1):
        while source.is_comment(row):
            texts.append(source.lines[row])
            row -= 1
    return "\n".join(texts)


def operation_faults(source: Source, row: int, match: re.Match[str]) -> list[str]:
    where = f"{source.name}:{row + 1}"
    what = match["method"] or match["fence"] or match["free"] or match["builtin"]
    text, last = arguments(source, row, match.end() - 1)
    orders = {order.lower() for order in ORDER.findall(text)}
    if not orders:
        if PASSED_ON.search(text):
            return []
        return [f"{where}: {what} names no memory order"]
    faults = []
    if unknown := orders - STRONG - {"relaxed"}:
        faults.append(f"{where}: {what}: {', '.join(sorted(unknown))} is not used here")
    comments = comments_for(source, row, last)
    if orders & STRONG and not PAIRS.search(comments):
        named = ", ".join(sorted(orders & STRONG))
        faults.append(f"{where}: {what} is {named} without `// pairs with: …`")
    if "relaxed" in orders and not RELAXED.search(comments):
        faults.append(f"{where}: {what} is relaxed without `// relaxed: …`")
    return faults


def silent_faults(source: Source, names: set[str]) -> list[str]:
    """Operators on atomics declared here: seq_cst, and nobody can tell that it was meant."""
    if not names:
        return []
    any_name = "|".join(sorted(names))
    operator = re.compile(
        rf"(?:\+\+|--)\s*(?:{any_name})\b|(?<![\w.])(?:{any_name})\s*(?:\+\+|--|[-+&|^]?=(?!=))"
    )
    return [
        f"{source.name}:{row + 1}: operator on an atomic: name the operation and its order"
        for row, line in enumerate(source.code)
        if operator.search(line) and not DECLARATION.search(line)
    ]


def check(source: Source) -> tuple[int, list[str]]:
    count = 0
    faults = []
    for row, line in enumerate(source.code):
        for match in OPERATION.finditer(line):
            count += 1
            faults += operation_faults(source, row, match)
        if SYNC_BUILTIN.search(line):
            faults.append(f"{source.name}:{row + 1}: use std::atomic, not __sync builtins")
    names = {found["name"] for line in source.code for found in DECLARATION.finditer(line)}
    return count, faults + silent_faults(source, names)


def main() -> int:
    default_root = os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parent.parent)
    parser = argparse.ArgumentParser(description="Every atomic operation explains its order.")
    parser.add_argument("--root", type=Path, default=Path(default_root))
    root = parser.parse_args().root
    files = [
        path
        for folder in ("src", "include")
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in {".h", ".cpp", ".inc"}
    ]
    if not files:
        print(f"{root}: no sources found, so nothing was checked")
        return 1
    results = [check(Source.read(path, path.relative_to(root).as_posix())) for path in files]
    faults = [fault for _, found in results for fault in found]
    total = sum(count for count, _ in results)
    print("\n".join([*faults, f"atomics: {total} operations, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
