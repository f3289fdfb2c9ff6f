#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Messages of the library that pages quote in the text are what programs with that fault get.

A quoted message is a piece of code in a line (`double free: …`), or an item of the manual page's
list, that begins with the name of a fault. It is compared with the lines that programs of
tests/misuse/ get (_compare.py: addresses and `…` stand for anything). Each kind of fault that these
programs show must be quoted somewhere, so that no message goes unexplained.

    tests/pages/messages.py
"""

from __future__ import annotations

import re
import sys

import _blocks
import _compare
from _sandbox import BUILD, ROOT, Sandbox, processor_seconds

# A program of tests/misuse/, its arguments, and options: one at least for each message.
FAULTS = (
    ("double_free 64", ""),
    ("double_free 1048576", ""),
    ("free_interior 64 16", ""),
    ("free_interior 200000 65536", ""),
    ("free_interior 64 8", ""),
    ("free_garbage 8", ""),
    ("free_stack", ""),
    ("free_sized_wrong 64 200", ""),
    ("heap_use_after_destroy", "tier:hardened"),
    ("heap_handle_bad malloc destroyed", ""),
    ("heap_handle_bad malloc garbage", ""),
    ("guarded_access overflow write 64 0", "guards:1"),
    ("guarded_access underflow write 64 1", "guards:1"),
    ("guarded_access freed read 64 8", "guards:1"),
    ("guarded_free behind 61 0", "guards:1"),
    ("guarded_free twice 61", "guards:1"),
    ("object_overflow 56 0 0", "canary:1"),
    ("object_late_write 64 8 0", "zero:1"),
)
QUOTED = re.compile(r"`((?:brimful: )?(?:[a-z]+ )+[a-z]+: [^`]*)`")
ITEM = re.compile(r"^\.It Li (brimful: .*)$")
NAMES: tuple[str, ...] = ("double free", "interior pointer", "foreign pointer")
NAMES += ("misaligned pointer", "wrong size", "use after destroy", "foreign heap", "use after free")
NAMES += ("buffer overflow", "buffer underflow")


def quoted() -> list[tuple[str, str]]:
    """All messages that pages quote: (place, text without `brimful: `)."""
    found = []
    pages = ["README.md", "docs/architecture.md"]
    pages += [p.relative_to(ROOT).as_posix() for p in sorted(ROOT.glob("docs/guide/*.md"))]
    pages += [p.relative_to(ROOT).as_posix() for p in sorted(ROOT.glob("docs/man/*.1"))]
    for name in pages:
        for number, line in enumerate((ROOT / name).read_text().split("\n"), 1):
            item = ITEM.match(line)
            texts = [_blocks.unquoted(item[1])] if item else QUOTED.findall(line)
            for text in texts:
                text = text.removeprefix("brimful: ")
                if text.startswith(NAMES):
                    found.append((f"{name}:{number}", text))
    return found


def said(sandbox: Sandbox, program: str, conf: str) -> str:
    """The library's line about one fault, without `brimful: `; what else was printed, if there is none."""
    name, *arguments = program.split()
    words = " ".join(arguments)
    done = sandbox.run(
        f"test -e {name} || "
        f"/usr/bin/gcc -O1 -w -fno-builtin -pthread -Iinclude -o {name} tests/misuse/{name}.c; "
        f"LD_PRELOAD={BUILD}/libbrimful.so BRIMFUL_CONF={conf} exec ./{name} {words}"
    )
    lines = [line for line in done.output.splitlines() if line.startswith("brimful: ")]
    return lines[0].removeprefix("brimful: ") if lines and done.end else done.output


def main() -> int:
    """Compares; exit code 1 when a page quotes what no program gets, or not what one gets."""
    faults = []
    messages = quoted()
    with Sandbox() as sandbox:
        printed = [said(sandbox, program, conf) for program, conf in FAULTS]
    for place, text in messages:
        if not any(_compare.line_pattern(text, False).fullmatch(line) for line in printed):
            faults.append(f"FAIL {place}: nobody gets {text!r}")
    for line, (program, _) in zip(printed, FAULTS, strict=True):
        if not any(_compare.line_pattern(text, False).fullmatch(line) for _, text in messages):
            faults.append(f"FAIL no page quotes what {program!r} gets: {line}")
    print("\n".join(faults + ["What they got:", *(f"  {line}" for line in printed)] * bool(faults)))
    print(
        f"{len(messages)} messages on the pages, compared with those of {len(FAULTS)} faults;"
        f" {len(faults)} faults; {processor_seconds():.1f} s of processor time"
    )
    return 1 if faults or not messages else 0


if __name__ == "__main__":
    sys.exit(main())
