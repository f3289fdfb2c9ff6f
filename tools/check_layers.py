#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Folder = layer: proves that includes only go down, and that `#if` stays where it belongs.

A file of src/LAYER may include files of its own layer and of the layers below it. Layers that
share a rank are siblings and don't know each other: `pools` beside `alloc`, `stats` beside
`debug`. `pools` is used without the rest, so it may include `base` and `arch` only. The public
headers (`brimful/…`) are a contract without code and may be included anywhere. Includes name a
file from src/ on, so that the layer can be read off the line.

Conditional compilation is allowed in base/compiler.h, config/build.h and arch/ only: everywhere
else CMake picks files and `if constexpr` picks code, so that every line is compiled in every
build.

    check_layers.py [--root FOLDER]
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

RANKS: list[tuple[str, ...]] = [
    ("base",),
    ("arch",),
    ("os",),
    ("config",),
    ("sync",),
    ("classes",),
    ("meta",),
    ("pages",),
    ("slots",),
    ("alloc", "pools"),
    ("stats", "debug"),
    ("control",),
    ("abi",),
]
RANK = {layer: rank for rank, layers in enumerate(RANKS) for layer in layers}
# Layers that may not include all of what is below them.
ONLY = {"pools": {"base", "arch"}}
SUFFIXES = {".h", ".cpp", ".c", ".S", ".inc"}
CONDITIONALS_ALLOWED = {"base/compiler.h", "config/build.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
CONDITIONAL = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else)\b")


def include_fault(layer: str, quote: str, target: str, src: Path) -> str | None:
    """What is wrong with including `target` from `layer`, or None."""
    head = target.split("/", 1)[0]
    ours = head in RANK and "/" in target and (quote == '"' or (src / target).exists())
    if quote == "<" and not ours:
        return None
    if ".." in target.split("/"):
        return f'"{target}": name the file from src/ on, without ..'
    if head == "brimful":
        return None
    if not ours:
        return f'"{target}": a layer\'s name must come first (system headers go in <>)'
    if head == layer:
        return None
    if RANK[head] == RANK[layer]:
        return f'"{target}": {head} and {layer} are siblings and must not know each other'
    if RANK[head] > RANK[layer]:
        return f'"{target}": {layer} is below {head}; includes only go down'
    if layer in ONLY and head not in ONLY[layer]:
        return f'"{target}": {layer} includes {" and ".join(sorted(ONLY[layer]))} only'
    return None


def check_file(path: Path, src: Path) -> list[str]:
    name = path.relative_to(src).as_posix()
    layer = name.split("/", 1)[0]
    if layer not in RANK:
        return [f"src/{name}:1: no layer has this name; the layers are {', '.join(RANK)}"]
    faults = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        include = INCLUDE.match(line)
        if include and (fault := include_fault(layer, include[1], include[2], src)):
            faults.append(f"src/{name}:{number}: {fault}")
        conditional = CONDITIONAL.match(line)
        if conditional and layer != "arch" and name not in CONDITIONALS_ALLOWED:
            faults.append(
                f"src/{name}:{number}: #{conditional[1]}: only base/compiler.h, config/build.h"
                " and arch/ compile conditionally"
            )
    return faults


def main() -> int:
    default_root = os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parent.parent)
    parser = argparse.ArgumentParser(description="Includes only go down the layers.")
    parser.add_argument("--root", type=Path, default=Path(default_root))
    src = parser.parse_args().root / "src"
    files = sorted(path for path in src.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    if not files:
        print(f"{src}: no sources found, so nothing was checked")
        return 1
    faults = [fault for path in files for fault in check_file(path, src)]
    print("\n".join([*faults, f"layers: {len(files)} files, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
