#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the members of libbrimful-pools.a ask of the world and show to it.

The pools promise to run where there is no operating system, no C library and no start-up code, and
to sit in a program beside anything. Of every member but host_linux.cpp.o (the one that is for
Linux) that means:

    undefined   memcpy, memmove, memset, memcmp, and what other members define; not host_linux's
    defined     brimful_* and C++ names in namespace brimful: in an archive, hidden visibility
                keeps nothing from clashing with a program's own symbol
    no          thread-local variables (they need a thread pointer) and no code that runs before
                main (nobody would call it)

    check_pool_symbols.py [ARCHIVE…]    default: both archives of the release build
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

# What every freestanding compiler may call, by itself.
ALLOWED = {"memcpy", "memmove", "memset", "memcmp"}
HOSTED = "host_linux.cpp.o"
# brimful_…, or a mangled name whose outermost namespace is brimful: functions, constants, tables.
OURS = re.compile(r"^(brimful_\w+|_Z(T[VTIS])?(GV)?NK?7brimful\w+)$")
EARLY = re.compile(r"\.(init_array|ctors|preinit_array|init)\b")


@dataclass
class Member:
    name: str
    defined: dict[str, str] = field(default_factory=dict)  # global ones: name → type letter of nm
    undefined: set[str] = field(default_factory=set)


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def members_of(archive: Path) -> list[Member]:
    """The archive's members and their global symbols, by `nm --format=posix`."""
    members: list[Member] = []
    for line in run("nm", "--format=posix", "--extern-only", str(archive)).splitlines():
        header = re.match(r"^.*\[(.*)\]:$", line)
        if header:
            members.append(Member(header.group(1)))
            continue
        name, kind = line.split()[:2]
        if kind in "Uwv":
            members[-1].undefined.add(name)
        else:
            members[-1].defined[name] = kind
    return members


def sections_of(archive: Path) -> dict[str, set[str]]:
    """Names of each member's sections, by `objdump --section-headers`."""
    sections: dict[str, set[str]] = {}
    member = ""
    for line in run("objdump", "--section-headers", "--wide", str(archive)).splitlines():
        header = re.match(r"^(\S+):\s+file format", line)
        if header:
            member = header.group(1)
            sections[member] = set()
        elif re.match(r"^\s*\d+ \S", line):
            sections[member].add(line.split()[1])
    return sections


def faults_of(archive: Path) -> list[str]:
    members = members_of(archive)
    pure = [member for member in members if member.name != HOSTED]
    if not pure:
        return [f"{archive.name}: no member but {HOSTED}: nothing to check"]
    own = {name for member in pure for name in member.defined}
    sections = sections_of(archive)
    faults = []
    for member in pure:
        where = f"{archive.name}({member.name})"
        for name in sorted(member.undefined - own - ALLOWED):
            faults.append(f"{where}: asks for {name}")
        for name in sorted(member.defined):
            if not OURS.match(name):
                faults.append(f"{where}: defines {name}, which is not ours to name")
        for name in sorted(sections.get(member.name, set())):
            if EARLY.match(name):
                faults.append(f"{where}: has code that runs before main ({name})")
            if name.startswith((".tdata", ".tbss")):
                faults.append(f"{where}: has thread-local variables ({name})")
    return faults


def main() -> int:
    root = Path(os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parent.parent))
    build = Path(os.environ.get("BRIMFUL_BUILD", root / "build/release"))
    archives = [build / "libbrimful-pools.a", build / "libbrimful-pools-checked.a"]
    parser = argparse.ArgumentParser(
        description="The pools' archives stand alone and clash with nothing."
    )
    parser.add_argument("archives", metavar="ARCHIVE", type=Path, nargs="*", default=archives)
    options = parser.parse_args()
    faults = [fault for archive in options.archives for fault in faults_of(archive)]
    print(
        "\n".join([*faults, f"symbols of {len(options.archives)} archives: {len(faults)} faults"])
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
