# SPDX-License-Identifier: MIT
"""Whether what a page shows is what a command printed.

Texts are compared line by line. What can't repeat is a pattern: an address (0x and four digits at
least) stands for any other, `…` for anything within a line, a line of nothing but `…` for any
lines. With the note "numbers", each number stands for any other, and so does the width of the
column it is in. Everything else has to be the same.
"""

from __future__ import annotations

import json
import re

ADDRESS = re.compile(r"0x[0-9a-f]{4,}")
NUMBER = re.compile(r"-?\d[\d.,]*")
GAP = "…"


def line_pattern(line: str, numbers: bool) -> re.Pattern[str]:
    """What a line that is shown stands for."""
    special = rf"{ADDRESS.pattern}|{GAP}" + (rf"|{NUMBER.pattern}|\s+" if numbers else "")
    result = ""
    at = 0
    for found in re.finditer(special, line):
        result += re.escape(line[at : found.start()])
        at = found.end()
        text = found[0]
        if text == GAP:
            result += ".*"
        elif ADDRESS.fullmatch(text):
            result += r"0x[0-9a-f]+"
        elif text.isspace():
            result += r"\s+"
        else:
            result += NUMBER.pattern
    return re.compile(result + re.escape(line[at:]))


def difference(
    shown: str,
    printed: str,
    numbers: bool = False,
    any_order: bool = False,
    more_lines: bool = False,
) -> str:
    """What is wrong with the page, or nothing. The switches are the notes of _blocks.py."""
    wanted = shown.rstrip().split("\n")
    given = [line.rstrip() for line in printed.rstrip().split("\n")]
    if any_order:
        wanted, given = sorted(wanted), sorted(given)
    if more_lines:
        wanted = [one for line in wanted for one in (GAP, line)] + [GAP]
    wrong = _first_wrong([line.rstrip() for line in wanted], given, numbers)
    if wrong is None:
        return ""
    return f"shown: {wrong}\nprinted:\n" + "\n".join(f"  | {line}" for line in given)


def _first_wrong(wanted: list[str], given: list[str], numbers: bool) -> str | None:
    """The first line that is shown and was not printed, or None."""
    at = 0
    for number, line in enumerate(wanted):
        if line.strip() == GAP:
            rest = wanted[number + 1 :]
            # The earliest place from which on the rest fits.
            ends = range(at, len(given) + 1)
            if any(_first_wrong(rest, given[end:], numbers) is None for end in ends):
                return None
            return f"nothing fits after `{GAP}`: {rest[:1]}"
        if at == len(given):
            return f"{line!r}, but nothing more was printed"
        if line_pattern(line, numbers).fullmatch(given[at]) is None:
            return repr(line)
        at += 1
    return None if at == len(given) else f"nothing, but {given[at]!r} was printed"


def json_difference(shown: str, printed: str) -> str:
    """Whether all keys that are shown are there, with values of the same kind. `…` is any number of keys."""
    begin = printed.find("{")
    try:
        wanted = json.loads(re.sub(rf",\s*{GAP}|{GAP}\s*,?", "", shown[shown.find("{") :]))
        given = json.JSONDecoder().raw_decode(printed[max(begin, 0) :])[0]
    except json.JSONDecodeError as error:
        return f"not JSON: {error}"
    return _keys_missing(wanted, given, "")


def _keys_missing(wanted: object, given: object, path: str) -> str:
    if isinstance(wanted, dict) and isinstance(given, dict):
        for key, value in wanted.items():
            # A size class is a key that depends on the program.
            if key not in given and not key.isdigit():
                return f"{path}.{key} is shown, but not printed"
            wrong = _keys_missing(value, given[key], f"{path}.{key}") if key in given else ""
            if wrong:
                return wrong
        return ""
    kinds = {int: "number", float: "number"}
    if kinds.get(type(wanted), type(wanted)) != kinds.get(type(given), type(given)):
        return f"{path} is shown as {wanted!r}, but is {given!r}"
    return ""
