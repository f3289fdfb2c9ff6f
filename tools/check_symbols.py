#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What libbrimful.so shows to the world and asks of it, against the lists in tools/allowlist.

    exports.txt         exactly the symbols that it defines for others
    undefined.txt       the most that it may ask others for; libc only, plus weak names
    not-interposed.txt  allocation functions of glibc that we leave alone, each with its reason

Three things go wrong without this: a helper that becomes visible by accident clashes with a
program's own symbol; a call that slips in (printf, pthread_mutex_lock, __cxa_guard_acquire)
allocates or needs the C++ run time; and a function of glibc's family that is *not* ours hands out
a pointer that our free rejects. The last list is therefore computed from the libc of this machine,
not written from memory.

    check_symbols.py [--lib FILE] [--allowlist FOLDER] [--libc FILE]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SONAME = "libbrimful.so.1"
NEEDED = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# What glibc calls its allocator. Names that only begin alike (freeaddrinfo) are not of it.
FAMILY = re.compile(
    r"^(__libc_|__posix_|__)?"
    r"(malloc(_\w+)?|calloc|realloc|reallocarray|free(_\w+)?|cfree|memalign(_\w+)?|aligned_alloc"
    r"|posix_memalign|valloc|pvalloc|realloc_\w+|mallinfo\d*|mallopt)$"
)


@dataclass(frozen=True)
class Symbol:
    name: str
    weak: bool


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(library: Path, which: str) -> set[Symbol]:
    """The dynamic symbols of a library; which is --defined-only or --undefined-only."""
    found = set()
    for line in run("nm", "-D", which, str(library)).splitlines():
        *_, kind, name = line.split()
        if kind != "A":  # version names
            found.add(Symbol(name.split("@")[0], kind in "wv"))
    return found


def read_list(path: Path) -> dict[str, str]:
    """Names and what follows them on the line; `#` begins a comment at the start of a line."""
    entries = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, rest = line.strip().partition(" ")
            entries[name] = rest.strip()
    return entries


def dynamic(library: Path, tag: str) -> set[str]:
    lines = run("readelf", "-dW", str(library)).splitlines()
    return {line.split("[")[1].rstrip("]") for line in lines if f"({tag})" in line}


def libc_of_this_machine() -> Path:
    """The libc that /usr/bin/env would load."""
    for line in run("ldd", "/usr/bin/env").splitlines():
        if line.strip().startswith("libc.so.6 =>"):
            return Path(line.split()[2])
    raise SystemExit("ldd shows no libc.so.6")


def faults_of(library: Path, allowlist: Path, libc: Path) -> list[str]:
    faults = []
    exports = {symbol.name for symbol in symbols(library, "--defined-only")}
    allowed = set(read_list(allowlist / "exports.txt"))
    faults += [f"exported, but not in exports.txt: {name}" for name in sorted(exports - allowed)]
    faults += [f"in exports.txt, but not exported: {name}" for name in sorted(allowed - exports)]

    may_ask = read_list(allowlist / "undefined.txt")
    for symbol in sorted(symbols(library, "--undefined-only"), key=lambda symbol: symbol.name):
        if symbol.name not in may_ask:
            faults.append(f"undefined, but not in undefined.txt: {symbol.name}")
        elif may_ask[symbol.name].startswith("weak") and not symbol.weak:
            faults.append(f"undefined.txt allows it as a weak reference only: {symbol.name}")

    left_out = read_list(allowlist / "not-interposed.txt")
    family = {s.name for s in symbols(libc, "--defined-only") if FAMILY.match(s.name)}
    for name in sorted(family - exports):
        if not left_out.get(name):
            faults.append(
                f"libc's {name} is not interposed, and not-interposed.txt gives no reason"
            )
    faults += [f"in not-interposed.txt, yet exported: {n}" for n in sorted(set(left_out) & exports)]
    if "malloc" not in family:
        faults.append(f"{libc} defines no malloc: nothing to compare with")

    faults += [f"needs {name}" for name in sorted(dynamic(library, "NEEDED") - NEEDED)]
    if dynamic(library, "SONAME") != {SONAME}:
        faults.append(f"SONAME is {dynamic(library, 'SONAME')}, not {SONAME}")
    segments = run("readelf", "-lW", str(library))
    if re.search(r"GNU_STACK.*RWE", segments):
        faults.append("asks for an executable stack")
    if "(TEXTREL)" in run("readelf", "-dW", str(library)):
        faults.append("has text relocations")
    return faults


def main() -> int:
    root = Path(os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parent.parent))
    default = os.environ.get("BRIMFUL_LIB", root / "build/release/libbrimful.so")
    parser = argparse.ArgumentParser(description="Exports, imports and dependencies as listed.")
    parser.add_argument("--lib", type=Path, default=Path(default))
    parser.add_argument("--allowlist", type=Path, default=root / "tools/allowlist")
    parser.add_argument("--libc", type=Path, default=None)
    options = parser.parse_args()
    faults = faults_of(options.lib, options.allowlist, options.libc or libc_of_this_machine())
    print("\n".join([*faults, f"symbols of {options.lib.name}: {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
