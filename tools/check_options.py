#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The options of the library on the pages are those of their one table, kOptions in
src/config/options.h.

Compared with it: the table of docs/guide/options.md (names, values, defaults), the list of the
manual page (names and words), each `key:value` and each BRIMFUL_KEY in the text of README.md, docs/
and the manual page. An option that a page lacks is a fault, and so is one that it has too many.

    check_options.py [--root FOLDER]
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

TABLE = "src/config/options.h"
GUIDE = "docs/guide/options.md"
MANUAL = "docs/man/brimful.1"
ENTRY = re.compile(
    r'\{"(\w+)",\s*&Options::\w+,\s*(nullptr|"[^"]*"),\s*(true|false),\s*([^,]+),\s*([^,]+),\s*([^,]+),',
    re.S,
)
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|", re.MULTILINE)
ITEM = re.compile(r"^\.It Cm (\w+) : Ns (.*)$", re.MULTILINE)
PAIR = re.compile(r"`(?:BRIMFUL_CONF=)?\"?([a-z][a-z_]*):([\w−-]+)\"?`")
VARIABLE = re.compile(r"\bBRIMFUL_([A-Z_]+)\b")
CONSTANTS = {"kAutoBytes": "auto"}
# An option that takes any text is not in the table.
TEXT_OPTION = re.compile(r'kPathOption = "(\w+)"')


@dataclass(frozen=True)
class Option:
    """A line of kOptions."""

    name: str
    words: tuple[str, ...]  # empty: a number
    is_bytes: bool
    least: str
    most: str
    initial: str

    def takes(self, value: str) -> bool:
        """Whether the parser would, but for the range."""
        if value in self.words:
            return True
        if self.words and not self.is_bytes:
            return False
        if value == "auto":
            return self.least == "kAutoBytes"
        return bool(re.fullmatch(r"[-−]?\d+[KMGT]?" if self.is_bytes else r"[-−]?\d+", value))

    @property
    def default(self) -> str:
        return self.words[int(self.initial)] if self.words else self.initial


def options_of(text: str) -> list[Option]:
    """The entries of the table."""
    body = text[text.find("kOptions[] = {") :]
    result = []
    for name, words, is_bytes, least, most, initial in ENTRY.findall(body):
        choice = () if words == "nullptr" else tuple(words.strip('"').split("|"))
        result.append(
            Option(name, choice, is_bytes == "true", least.strip(), most.strip(), initial.strip())
        )
    return result


def names_differ(place: str, known: set[str], shown: list[str]) -> list[str]:
    """Missing, unknown and doubled names."""
    faults = [f"{place}: lacks {name}" for name in sorted(known - set(shown))]
    faults += [f"{place}: {name} is no option" for name in sorted(set(shown) - known)]
    faults += [f"{place}: {name} comes twice" for name in sorted(known) if shown.count(name) > 1]
    return faults


def guide_faults(options: dict[str, Option], text: str) -> list[str]:
    rows = ROW.findall(text)
    faults = names_differ(f"{GUIDE}:1", set(options), [row[0] for row in rows])
    for name, values, default in rows:
        option = options.get(name)
        if option is None:
            continue
        wanted = list(option.words)
        if not wanted and not option.is_bytes:
            wanted = [option.least, option.most]
        if option.least in CONSTANTS:
            wanted.append(CONSTANTS[option.least])
        # What another row explains may be said by its name: "as `limit`".
        other = re.search(r"as `(\w+)`", values)
        shown = re.findall(r"[\w-]+", values.replace("−", "-"))
        if other is None or other[1] not in options:
            faults += [
                f"{GUIDE}:1: {name} takes {word}, which is not said"
                for word in wanted
                if word not in shown
            ]
            words = re.findall(r"`(\w+)`", values)
            faults += [
                f"{GUIDE}:1: {name} does not take {word}"
                for word in words
                if not option.takes(word)
            ]
        if default.strip().strip("`") != option.default:
            faults.append(f"{GUIDE}:1: the default of {name} is {option.default}")
    return faults


def manual_faults(options: dict[str, Option], text: str) -> list[str]:
    items = ITEM.findall(text)
    faults = names_differ(f"{MANUAL}:1", set(options), [item[0] for item in items])
    for name, values in items:
        option = options.get(name)
        if option is None or not option.words:
            continue
        shown = re.findall(r"\w+", values.removeprefix("Cm "))
        if shown != list(option.words):
            faults.append(f"{MANUAL}:1: {name} takes {' | '.join(option.words)}")
    # The text of each item up to the next one names the default.
    for part in re.split(r"^\.It Cm ", text, flags=re.MULTILINE)[1:]:
        option = options.get(part.split(" ", 1)[0])
        if option is None:
            continue
        default = re.search(r"\bDefault (?:\.Cm )?([^\s.]+)", part.replace("\n", " "))
        if default is None or default[1] != option.default:
            faults.append(f"{MANUAL}:1: {option.name}: say `Default {option.default}.`")
    return faults


def text_faults(options: dict[str, Option], of_text: list[str], name: str, text: str) -> list[str]:
    """Of what a page mentions."""
    faults = []
    for number, line in enumerate(text.split("\n"), 1):
        for key, value in PAIR.findall(line):
            if key in options and not options[key].takes(value) and value != "value":
                faults.append(f"{name}:{number}: {key} does not take {value}")
            elif key not in options and key not in of_text and "_" in key:
                faults.append(f"{name}:{number}: {key} is no option")
        for variable in VARIABLE.findall(line):
            key = variable.lower()
            # Only what looks like an option's variable: the others are constants of headers and tests.
            if f"BRIMFUL_{variable}=" in line and key not in ("conf", *of_text, *options):
                faults.append(f"{name}:{number}: BRIMFUL_{variable} is no option's variable")
    return faults


def main() -> int:
    default_root = os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parent.parent)
    parser = argparse.ArgumentParser(description="Options on the pages are those of the library.")
    parser.add_argument("--root", type=Path, default=Path(default_root))
    root = parser.parse_args().root
    table = (root / TABLE).read_text()
    options = {option.name: option for option in options_of(table)}
    of_text = TEXT_OPTION.findall(table)
    if not options:
        print(f"{TABLE}: no option found: adapt this checker to the table's form")
        return 1
    faults = guide_faults(options, (root / GUIDE).read_text())
    faults += manual_faults(options, (root / MANUAL).read_text())
    pages = [
        root / "README.md",
        root / "HACKING.md",
        root / MANUAL,
        *sorted(root.glob("docs/**/*.md")),
    ]
    for page in (page for page in pages if page.exists()):
        if "design" not in page.parts:
            place = page.relative_to(root).as_posix()
            faults += text_faults(options, of_text, place, page.read_text())
    print("\n".join([*faults, f"options: {len(options)}, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
