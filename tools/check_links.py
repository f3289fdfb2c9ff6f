#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every link of the Markdown pages leads somewhere in the tree, and every page is reached from
README.md.

Checked: `[text](target)`, `src="…"` and `srcset="…"` of pictures, `#anchors` of this and of other
pages by the rule that GitHub makes them by, and names of files and folders in backticks
(`src/slots/fork.cpp`, `docs/`), from the top of the tree or from the page's own folder. Targets
with a scheme (https:) are out of the tree and not looked at. In backticks only what begins with a
folder of the tree counts as a name, and `build/` is no folder of the tree; `*` and `{a,b}` are
patterns, and a word in capitals (`tests/abi/SUBJECT.c`) stands for any.

CHANGELOG.md and the pages of docs/design/ tell of how things were: there names in backticks may be
of files that are gone.

    check_links.py [--root FOLDER]
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import sys
import unicodedata
from pathlib import Path

from check_spdx import tracked

LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^()\s]+)\)|!\[[^\]]*\]\(([^()\s]+)\)")
PICTURE = re.compile(r'\b(?:src|srcset|href)="([^"\s]+)"')
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"\.?[\w.*{},@+-]+/[\w./*{},@+-]*[\w/*}]")
CAPITALS = re.compile(r"(?<![A-Za-z])[A-Z]{4,}(?![A-Za-z])")
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")
HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
HISTORY = ("CHANGELOG.md", "docs/design/")
ENTRANCE = "README.md"


def without_code(text: str) -> str:
    """The page with the lines of its blocks of code emptied, so that line numbers stay."""
    result: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = re.match(r"^ *(`{3,}|~{3,})", line)
        is_code = bool(fence or mark)
        if fence:
            fence = "" if line.strip() == fence else fence
        elif mark:
            fence = mark[1]
        result.append("" if is_code else line)
    return "\n".join(result)


def slug(heading: str) -> str:
    """GitHub's anchor of a heading: lower case, without punctuation, blanks as hyphens."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    kept = (
        letter
        for letter in heading.lower()
        if letter in " -_" or unicodedata.category(letter)[0] in "LN"
    )
    return "".join(kept).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """All anchors of a page; a heading that comes again has -1, -2 … behind it."""
    found: dict[str, int] = {}
    result: set[str] = set()
    for line in without_code(text).split("\n"):
        heading = HEADING.match(line)
        if heading:
            name = slug(heading[2])
            again = found.get(name, 0)
            found[name] = again + 1
            result.add(f"{name}-{again}" if again else name)
        result.update(re.findall(r'\b(?:id|name)="([^"]+)"', line))
    return result


class Checker:
    """All pages of a tree, each link of which is looked at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = [name for name in tracked(root) if (root / name).exists()]
        self.folders = {parent.as_posix() for name in self.files for parent in Path(name).parents}
        self.tops = {name.split("/")[0] for name in self.files if "/" in name}
        self.pages = {
            name: (root / name).read_text(encoding="utf-8")
            for name in self.files
            if name.endswith(".md") and not (root / name).is_symlink()
        }
        self.known = set(self.files) | self.folders
        self.links: dict[str, set[str]] = {name: set() for name in self.pages}
        self.count = 0
        self.faults: list[str] = []

    def check(self) -> None:
        for page, text in self.pages.items():
            for number, line in enumerate(without_code(text).split("\n"), 1):
                self._line(page, f"{page}:{number}", line)
        self._reach()

    def _line(self, page: str, place: str, line: str) -> None:
        plain = CODE.sub("``", line)
        targets = [a or b for a, b in LINK.findall(plain)] + PICTURE.findall(plain)
        for target in targets:
            if not SCHEME.match(target):
                self.count += 1
                self._target(page, place, target)
        if not page.startswith(HISTORY):
            for code in CODE.findall(line):
                for word in code.split():
                    self._name(page, place, word)

    def _target(self, page: str, place: str, target: str) -> None:
        path, _, anchor = target.partition("#")
        name = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if name not in self.known:
            self.faults.append(f"{place}: {target} leads to no file of the tree")
            return
        self.links[page].add(name)
        if anchor and name in self.pages and anchor not in anchors(self.pages[name]):
            self.faults.append(f"{place}: {name} has no heading #{anchor}")

    def _name(self, page: str, place: str, word: str) -> None:
        word = word.rstrip(".,;:")
        if not NAME.fullmatch(word) or word.split("/")[0] not in self.tops:
            return
        self.count += 1
        for alternative in expanded(word):
            for folder in ("", os.path.dirname(page)):
                name = os.path.normpath(os.path.join(folder, alternative))
                pattern = CAPITALS.sub("*", name)
                if name in self.known or ("*" in pattern and self._has(pattern)):
                    break
            else:
                self.faults.append(f"{place}: there is no {alternative}")

    def _has(self, pattern: str) -> bool:
        """Whether a tracked file or folder has a name of this pattern."""
        return any(fnmatch.fnmatch(name, pattern) for name in self.known)

    def _reach(self) -> None:
        """What no link leads to. A link to a folder leads to its README.md."""
        reached: set[str] = set()
        waiting = [ENTRANCE]
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            waiting += self.links.get(name, ())
            waiting += [f"{name}/README.md"] if f"{name}/README.md" in self.pages else []
        self.faults += [
            f"{name}:1: no link leads here from {ENTRANCE}"
            for name in sorted(self.pages)
            if name not in reached
        ]


def expanded(word: str) -> list[str]:
    """`a.{h,cpp}` as a.h and a.cpp."""
    found = re.search(r"\{([^{}]*)\}", word)
    if found is None:
        return [word]
    head, tail = word[: found.start()], word[found.end() :]
    return [one for part in found[1].split(",") for one in expanded(head + part + tail)]


def main() -> int:
    default_root = os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parent.parent)
    parser = argparse.ArgumentParser(description="Links within the tree lead somewhere.")
    parser.add_argument("--root", type=Path, default=Path(default_root))
    checker = Checker(parser.parse_args().root)
    if ENTRANCE not in checker.pages:
        print(f"{checker.root}: no {ENTRANCE}, so nothing was checked")
        return 1
    checker.check()
    summary = f"links: {checker.count} on {len(checker.pages)} pages, {len(checker.faults)} faults"
    print("\n".join([*checker.faults, summary]))
    return 1 if checker.faults else 0


if __name__ == "__main__":
    sys.exit(main())
