#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every tracked file names its licence within its first five lines.

Left out are formats that have no comments or are written by programs (data, pictures). Without a
git repository (a source archive) every file outside build/ is looked at.

    check_spdx.py [--root FOLDER]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

LINES = 5
LINE = "SPDX-License-Identifier: MIT"
NO_COMMENTS = {".csv", ".gz", ".html", ".jpg", ".json", ".jsonl", ".pdf", ".png", ".svg", ".xz"}
# JSON has no comments, but these have a place for a licence and are written by hand.
ALWAYS = {"CMakePresets.json"}
GENERATED = ("bench/results/", "build/", "tests/fuzz/corpus/")


def tracked(root: Path) -> list[str]:
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z"], capture_output=True, check=False
    )
    if listing.returncode == 0:
        return [name for name in listing.stdout.decode().split("\0") if name]
    return [
        path.relative_to(root).as_posix()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    ]


def owes_line(name: str) -> bool:
    if Path(name).name in ALWAYS:
        return True
    if name.startswith(GENERATED) and not name.endswith(".md"):
        return False
    return Path(name).suffix not in NO_COMMENTS


def has_line(path: Path) -> bool:
    with path.open("rb") as file:
        return any(LINE.encode() in file.readline(4096) for _ in range(LINES))


def main() -> int:
    default_root = os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parent.parent)
    parser = argparse.ArgumentParser(description="Every file names its licence.")
    parser.add_argument("--root", type=Path, default=Path(default_root))
    root = parser.parse_args().root
    # A file that is tracked but deleted in the work tree, and links, have no first line to read.
    names = [
        name
        for name in tracked(root)
        if owes_line(name) and (root / name).is_file() and not (root / name).is_symlink()
    ]
    if not names:
        print(f"{root}: no files found, so nothing was checked")
        return 1
    faults = [
        f"{name}:1: no {LINE} in its first {LINES} lines"
        for name in names
        if not has_line(root / name)
    ]
    print("\n".join([*faults, f"licences: {len(names)} files, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
