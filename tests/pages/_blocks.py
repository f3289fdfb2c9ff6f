# SPDX-License-Identifier: MIT
"""What a page shows: its blocks of code, with the line they stand on and the notes before them.

Markdown: fences with a language, as in ```sh. A block that is only indented has no language, so
nobody could say whether it is a command or what it prints; it is returned with the language "",
which is a fault. Manual pages: `.Dl $ command`, one command each; and what stands from `.Bd
-literal` to `.Ed`.

A note is an HTML comment right above a fence, `<!-- pages: KIND: reason -->`. A reader never sees
it. Kinds:

    numbers   the numbers in this output differ from run to run; any number stands for any other
    any order lines may come in another order
    more lines what was printed has further lines between these
    frame X   this piece of C is compiled inside tests/pages/frames/X.frame
    input X   this text is the content of file X, which a later block needs
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

NOTE = re.compile(r"<!-- pages: ([^:>]+): (.+?) -->")
FENCE = re.compile(r"^( *)(`{3,}|~{3,})\s*(\S*)\s*$")
LIST_ITEM = re.compile(r"^\s*([-*+]|\d+[.)])\s")


class PageError(Exception):
    """A page that cannot be read: an open fence, a note without a reason."""


@dataclass(frozen=True)
class Block:
    """A piece of code on a page."""

    page: str
    line: int  # of its first line of text, from 1
    language: str
    text: str
    notes: tuple[str, ...] = ()  # kinds

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def of_page(path: Path, name: str) -> list[Block]:
    """The blocks of the page at `path`, in order."""
    text = path.read_text(encoding="utf-8")
    return (
        of_manual(text, name) if re.fullmatch(r"\.[1-9]", path.suffix) else of_markdown(text, name)
    )


def of_markdown(text: str, name: str) -> list[Block]:
    """Fenced blocks and, without a language, indented ones."""
    lines = text.split("\n")
    blocks: list[Block] = []
    notes: list[str] = []
    at = 0
    in_list = False
    while at < len(lines):
        line = lines[at]
        fence = FENCE.match(line)
        if fence:
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip() == fence[2]), None)
            if end is None:
                raise PageError(f"{name}:{at + 1}: this fence is never closed")
            body = [one.removeprefix(fence[1]) for one in lines[at + 1 : end]]
            blocks.append(Block(name, at + 2, fence[3], "\n".join(body) + "\n", tuple(notes)))
            notes, at = [], end + 1
            continue
        found = NOTE.match(line.strip())
        if found:
            notes.append(found[1].strip())
        elif line.lstrip().startswith("<!-- pages:"):
            raise PageError(f"{name}:{at + 1}: a note says `pages: KIND: reason`")
        elif line.strip():
            if notes:
                raise PageError(f"{name}:{at + 1}: a note stands right above a fence")
            in_list = bool(LIST_ITEM.match(line)) or (in_list and line.startswith(" "))
            after_blank = at == 0 or not lines[at - 1].strip()
            if line.startswith("    ") and after_blank and not in_list:
                blocks.append(Block(name, at + 1, "", line.strip() + "\n"))
        at += 1
    return blocks


def of_manual(text: str, name: str) -> list[Block]:
    """Commands of `.Dl $ …` lines, and displays, of a manual page in mdoc."""
    blocks: list[Block] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith(".Dl $ "):
            command = unquoted(line.removeprefix(".Dl $ "))
            blocks.append(Block(name, at + 1, "sh", command + "\n"))
        elif line.startswith((".Bd -literal", ".EX", ".nf")):
            end = at + 1
            while end < len(lines) and lines[end] not in (".Ed", ".EE", ".fi"):
                end += 1
            if end == len(lines):
                raise PageError(f"{name}:{at + 1}: this display is never closed")
            body = "\n".join(unquoted(one) for one in lines[at + 1 : end])
            blocks.append(Block(name, at + 2, "text", body + "\n"))
            at = end
        at += 1
    return blocks


def unquoted(line: str) -> str:
    r"""The characters that a reader of the manual sees: `\-` is a minus, `\&` nothing, `\e` a backslash."""
    return line.replace(r"\-", "-").replace(r"\&", "").replace(r"\(aq", "'").replace(r"\e", "\\")
