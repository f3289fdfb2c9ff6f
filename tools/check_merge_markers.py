#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""No tracked file has the lines that an unfinished merge leaves behind.

A line that begins with seven `<`, `>` or `|` and a blank, or is seven `=` alone between such lines.
The last by itself is a heading's underline in some formats, so it counts only in a file that has
one of the others.

    check_merge_markers.py [--root FOLDER]
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from check_spdx import tracked

SIDES = re.compile(rb"^(<{7}|>{7}|\|{7})( |$)")
MIDDLE = b"=" * 7
# A character that text does not hold, in the first part of a file.
BINARY = b"\0"


def faults_of(name: str, content: bytes) -> list[str]:
    """The places, as texts."""
    if BINARY in content[:8192]:
        return []
    lines = content.split(b"\n")
    found = [number for number, line in enumerate(lines, 1) if SIDES.match(line.rstrip(b"\r"))]
    if found:
        found += [n for n, line in enumerate(lines, 1) if line.rstrip(b"\r") == MIDDLE]
    return [f"{name}:{number}: a merge marker" for number in sorted(found)]


def main() -> int:
    default_root = os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parent.parent)
    parser = argparse.ArgumentParser(description="No file has merge markers.")
    parser.add_argument("--root", type=Path, default=Path(default_root))
    root = parser.parse_args().root
    names = [n for n in tracked(root) if (root / n).is_file() and not (root / n).is_symlink()]
    if not names:
        print(f"{root}: no files found, so nothing was checked")
        return 1
    faults = [fault for name in names for fault in faults_of(name, (root / name).read_bytes())]
    print("\n".join([*faults, f"merge markers: {len(names)} files, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
