#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""clang-tidy over src/ and observer/, every finding an error, with the checks of .clang-tidy.

It reads the compile commands of the build in BRIMFUL_BUILD. Most of what clang-tidy does for a
file it does for the headers, so files that are compiled alike are read a few at a time, as one
text that includes them. One with a finding, or with names that clash, is halved until it is a
single file, and only what a single file says counts as a fault. misc-unused-using-decls is silent
about included files, so one with such a declaration is read by itself.

As many run at a time as there are processors. A file whose text, headers and settings have not
changed since it was last found clean is not read again (build/tidy-cache), because most runs
change a file or two.

    lint_tidy.py [--all] [--apart]    --all ignores the cache, --apart reads each file by itself
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parent.parent))
BUILD = Path(os.environ.get("BRIMFUL_BUILD", ROOT / "build/release"))
CACHE = ROOT / "build/tidy-cache"
FOLDERS = ("src", "observer")
TOGETHER = 8
# Known to gcc and not to clang; the code they would warn about is compiled by clang in any case.
EXTRA = ["-Wno-unknown-warning-option", "-Wno-ignored-optimization-argument"]
# Options of gcc that name files of its own; each is followed by one.
OF_FILES = ("-o", "-c", "-MT", "-MF")


def flags_of(command: str) -> tuple[str, ...]:
    """The options of a compile command without the compiler and the files."""
    words = shlex.split(command)
    while words and not words[0].startswith("-"):
        words.pop(0)
    flags = []
    while words:
        word = words.pop(0)
        if word in OF_FILES:
            words.pop(0)
        elif word != "-MD":
            flags.append(word)
    return tuple(flags)


def sources() -> dict[Path, tuple[str, ...]]:
    """Each source of FOLDERS with the options of its first compile command."""
    found: dict[Path, tuple[str, ...]] = {}
    for command in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        file = Path(command["file"])
        if file.suffix == ".cpp" and any(ROOT / folder in file.parents for folder in FOLDERS):
            found.setdefault(file, flags_of(command["command"]))
    return dict(sorted(found.items()))


def has_using(file: Path) -> bool:
    """Whether the file has a using declaration."""
    text = file.read_text(encoding="utf-8")
    return re.search(r"^\s*using (?:\w*::)+\w+;", text, re.MULTILINE) is not None


def settings_digest(folders: tuple[str, ...]) -> bytes:
    """Any header of these may matter to any file; they are few and small, so all count for each."""
    digest = hashlib.sha256()
    headers = [file for folder in folders for file in sorted((ROOT / folder).rglob("*.h"))]
    for file in [ROOT / ".clang-tidy", Path(__file__), *headers]:
        digest.update(file.read_bytes())
    return digest.digest()


class Linter:
    """Checks files that are compiled alike, and remembers the clean ones."""

    def __init__(self, files: dict[Path, tuple[str, ...]]) -> None:
        self.flags = files
        library = ("src", "include")
        self.settings = {
            "src": settings_digest(library),
            "observer": settings_digest((*library, "observer")),
        }

    def mark(self, file: Path) -> Path:
        settings = self.settings[file.relative_to(ROOT).parts[0]]
        text = settings + "\n".join([str(file), *self.flags[file]]).encode()
        return CACHE / hashlib.sha256(text + file.read_bytes()).hexdigest()

    def run(self, file: Path, flags: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        command = ["clang-tidy", "--quiet", str(file), "--", *flags, *EXTRA]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def check(self, files: list[Path]) -> list[str]:
        """What clang-tidy says of those with faults."""
        flags = self.flags[files[0]]
        if len(files) == 1:
            done = self.run(files[0], flags)
            if done.returncode != 0:
                return [done.stdout + (done.stderr if not done.stdout else "")]
        else:
            lines = [
                f'#include "{file}"  // NOLINT(bugprone-suspicious-include)\n' for file in files
            ]
            text = "".join(lines)
            together = CACHE / (hashlib.sha256(text.encode()).hexdigest() + ".cpp")
            together.write_text(text, encoding="utf-8")
            done = self.run(together, flags)
            together.unlink()
            if done.returncode != 0:
                half = len(files) // 2
                return [*self.check(files[:half]), *self.check(files[half:])]
        for file in files:
            self.mark(file).touch()
        return []


def main() -> int:
    parser = argparse.ArgumentParser(description="clang-tidy over src/ and observer/.")
    parser.add_argument("--all", action="store_true", help="ignore what is cached")
    parser.add_argument("--apart", action="store_true", help="each file by itself")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    files = sources()
    if not files:
        print(f"{BUILD}/compile_commands.json names no source under {' or '.join(FOLDERS)}")
        return 1
    linter = Linter(files)
    alike: dict[tuple[str, ...], list[Path]] = defaultdict(list)
    for file, flags in files.items():
        if options.all or not linter.mark(file).exists():
            alike[flags].append(file)
    groups: list[list[Path]] = []
    for group in alike.values():
        apart = [file for file in group if options.apart or has_using(file)]
        groups += [[file] for file in apart]
        rest = [file for file in group if file not in apart]
        groups += [rest[i : i + TOGETHER] for i in range(0, len(rest), TOGETHER)]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        faults = [text for texts in pool.map(linter.check, groups) for text in texts]
    for text in faults:
        print(text)
    print(f"clang-tidy: {len(files)} files, {len(faults)} with faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
