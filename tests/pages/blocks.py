#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every command on the pages runs, and every output that they show is compared with what it prints.

Pages: README.md, HACKING.md, docs/ without design/, the manual pages, the READMEs of examples/. Blocks are
taken from the page itself (_blocks.py). What a language means:

    sh            commands; each has to succeed. Long ones are replaced as _substitutes.py says
    text          what the commands of the block before it print, both streams (_compare.py)
    json          the same, where only keys and kinds of values are compared
    c, cpp        compiled with -Wall -Wextra -Werror, linked with libbrimful.a, run
    toml          parsed

All commands of a page run in one folder (_sandbox.py), in the order of the page.

    tests/pages/blocks.py [--list] [PAGE…]     --list prints what would run for each command
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter
from pathlib import Path

import _blocks
import _compare
import _substitutes
from _sandbox import ROOT, Run, Sandbox, commands_of, processor_seconds

FRAMES = Path(__file__).resolve().parent / "frames"
PAGES = ["README.md", "HACKING.md", "docs/*.md", "docs/guide/*.md", "docs/man/*.[1-9]"]
PAGES += ["examples/*/README.md"]
WHOLE = "run whole"
SKIPPED = 77
SLOW_S = 3.0  # such commands are named with their time


class Page:
    """The blocks of one page, in order; what came out is counted, faults are returned as texts."""

    def __init__(self, sandbox: Sandbox, counts: Counter[str], used: set[int]) -> None:
        self.sandbox = sandbox
        self.counts = counts
        self.used = used
        self.printed: Run | None = None  # by the last block of commands
        self.is_whole = False  # whether that block ran as it stands
        self.skipped: list[str] = []
        self.seconds: list[tuple[float, str]] = []  # of each command

    def run(self, block: _blocks.Block) -> str:
        """What is wrong with the block, or nothing."""
        self.counts["blocks"] += 1
        for note in block.notes:
            if note.startswith("input "):
                (self.sandbox.folder / note.removeprefix("input ")).write_text(block.text)
                self.counts["inputs"] += 1
                return ""
        kinds = {
            "sh": self._commands,
            "text": self._output,
            "json": self._output,
            "c": self._program,
            "cpp": self._program,
            "toml": self._toml,
        }
        if block.language not in kinds:
            return f"a block of language {block.language!r}: use a fence with one of {', '.join(kinds)}"
        return kinds[block.language](block)

    def _commands(self, block: _blocks.Block) -> str:
        try:
            commands = commands_of(block.text)
        except ValueError as error:
            return str(error)
        chosen = [_substitutes.choose(command) for command in commands]
        output = ""
        wrong = []
        done = Run(0, "")
        for command, choice in zip(commands, chosen, strict=True):
            if choice.entry is not None:
                self.used.add(_substitutes.TABLE.index(choice.entry))
            before = processor_seconds()
            done = self.sandbox.run(choice.script)
            self.seconds.append((processor_seconds() - before, command.split("\n")[0]))
            output += done.output
            if choice.entry is not None and done.status == SKIPPED:
                self.counts["skipped"] += 1
                self.skipped.append(
                    f"{block.place}: {command.splitlines()[0]}: {done.output.strip()}"
                )
                continue
            self.counts[choice.kind or WHOLE] += 1
            if done.status != 0 and not (done.end and command == commands[-1]):
                text = f"{command}\n  as {choice.script}" if choice.kind else command
                wrong.append(f"{text}\n  ended with {done.status}: {done.output[-2000:]}")
        self.printed = Run(done.status, output)
        self.is_whole = not any(choice.kind for choice in chosen)
        return "\n".join(wrong)

    def _output(self, block: _blocks.Block) -> str:
        if self.printed is None or not self.is_whole:
            return "an output that belongs to no command that runs as it stands"
        self.counts["outputs compared"] += 1
        printed, self.printed = self.printed, None
        if block.language == "json":
            return _compare.json_difference(block.text, printed.output)
        output = printed.output
        if printed.end:
            # What the reader's shell says; the one that runs the command ends with it.
            output = f"{output.rstrip()}\n{printed.end}\n".lstrip("\n")
        return _compare.difference(
            block.text,
            output,
            numbers="numbers" in block.notes,
            any_order="any order" in block.notes,
            more_lines="more lines" in block.notes,
        )

    def _program(self, block: _blocks.Block) -> str:
        text = block.text
        for note in block.notes:
            if note.startswith("frame "):
                text = framed((FRAMES / f"{note.removeprefix('frame ')}.frame").read_text(), text)
        source = self.sandbox.folder / f"block.{block.language}"
        source.write_text(text)
        compiler = "cc -std=gnu17" if block.language == "c" else "c++ -std=c++20"
        self.counts["programs compiled and run"] += 1
        done = self.sandbox.run(
            f"{compiler} -O1 -Iinclude -o block {source.name} build/release/libbrimful.a -pthread && ./block"
        )
        return "" if done.status == 0 else f"ended with {done.status}: {done.output[-2000:]}"

    def _toml(self, block: _blocks.Block) -> str:
        self.counts["texts parsed"] += 1
        try:
            tomllib.loads(block.text)
        except tomllib.TOMLDecodeError as error:
            return f"not TOML: {error}"
        return ""


def framed(frame: str, piece: str) -> str:
    """The piece's includes in the place of the frame's `@includes@`, the rest in that of `@lines@`."""
    lines = piece.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    rest = [line for line in lines if not line.startswith("#include")]
    return frame.replace("@includes@", "\n".join(includes)).replace("@lines@", "\n".join(rest))


def pages(wanted: list[str]) -> list[str]:
    """Names of the pages, those whose name contains one of `wanted`."""
    names = sorted(
        path.relative_to(ROOT).as_posix() for pattern in PAGES for path in ROOT.glob(pattern)
    )
    return [name for name in names if not wanted or any(part in name for part in wanted)]


def show_list(names: list[str]) -> None:
    for name in names:
        for block in _blocks.of_page(ROOT / name, name):
            for command in commands_of(block.text) if block.language == "sh" else ():
                choice = _substitutes.choose(command)
                why = f"{choice.kind}: {choice.entry.reason}" if choice.entry else WHOLE
                print(f"{block.place}: {command}\n    {why}")


def main() -> int:
    """Runs the pages; exit code 1 when one is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print what would run, and run nothing")
    parser.add_argument("names", nargs="*", metavar="PAGE", help="only pages whose name holds this")
    arguments = parser.parse_args()
    names = pages(arguments.names)
    if not names:
        print("no such page, so nothing was checked")
        return 1
    if arguments.list:
        show_list(names)
        return 0
    counts: Counter[str] = Counter()
    used: set[int] = set()
    faults = 0
    for name in names:
        before = processor_seconds()
        try:
            blocks = _blocks.of_page(ROOT / name, name)
        except _blocks.PageError as error:
            print(f"FAIL {error}")
            faults += 1
            continue
        with Sandbox() as sandbox:
            page = Page(sandbox, counts, used)
            for block in blocks:
                wrong = page.run(block)
                if wrong:
                    faults += 1
                    print(f"FAIL {block.place}: {wrong}")
        print(
            f"{name}: {len(blocks)} blocks, {processor_seconds() - before:.1f} s of processor time"
        )
        for text in page.skipped:
            print(f"    skipped: {text}")
        for seconds, command in page.seconds:
            if seconds > SLOW_S:
                print(f"    {seconds:.1f} s: {command}")
        sys.stdout.flush()
    if not arguments.names:
        for number, entry in enumerate(_substitutes.TABLE):
            if number not in used:
                faults += 1
                print(f"FAIL no page has a command like {entry.pattern}: take it out of the table")
    order = (WHOLE, _substitutes.SHORTENED, _substitutes.PARSED)
    print(
        f"\n{counts['blocks']} blocks on {len(names)} pages, all of them read and run."
        f"\nCommands: {', '.join(f'{counts[kind]} {kind}' for kind in order)}, {counts['skipped']} skipped."
        f"\nOutputs compared: {counts['outputs compared']}. Programs compiled and run:"
        f" {counts['programs compiled and run']}. Texts parsed: {counts['texts parsed']}."
        f" Inputs of later commands: {counts['inputs']}."
        f"\n{faults} faults; {processor_seconds():.0f} s of processor time"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
