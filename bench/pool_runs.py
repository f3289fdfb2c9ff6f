# SPDX-License-Identifier: MIT
"""Who takes part in the pools' bench, and how one sample of it is taken.

A sample is one fresh process of a program in bench/pools/ with one contender: a pool (brimful's, or
a Rust crate's behind the same C functions) or a malloc that is preloaded. What the process prints is
one line of JSON, which says whose malloc it ran with; another than the one that was meant is a
failure, and a failure is never a figure.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import benchlib
from benchlib import Allocator, BenchError
from brimful.bench import allocators as league
from brimful.bench import building
from rivals import pools as peers
from rivals.recipes import BuildError

Data = dict[str, Any]
SOURCES = benchlib.ROOT / "bench" / "pools"
PROGRAMS = ("loop", "sweep", "latency", "fill", "bands", "compaction")
# Programs that others wrote for their own tests: they print their figures, but not whose malloc ran.
ELSEWHERE = {
    "heap_destroy": SOURCES.parent / "micro" / "heap_destroy.cpp",
    "tlsf_steps": benchlib.ROOT / "tests" / "golden" / "tlsf_steps.cpp",
}
BUILT = benchlib.ROOT / "build" / "pools"
POOLS_LIBRARY = benchlib.ROOT / "build" / "release" / "libbrimful-pools.a"
MALLOCS = ("glibc", "jemalloc", "mimalloc2", "mimalloc3", "brimful")
TIMEOUT_S = 300
SYSTEM = Allocator("glibc")


@dataclass(frozen=True)
class Contender:
    """One column: what the programs are told, and the malloc they run with."""

    name: str
    arguments: tuple[str, ...]
    allocator: Allocator = SYSTEM
    missing: str = ""

    def growable(self) -> Contender:
        return Contender(
            f"{self.name}, growable",
            (*self.arguments, "--growable", "1"),
            self.allocator,
            self.missing,
        )


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- who ------------------------------------------------------------------------------------------


def tlsf_contenders() -> list[Contender]:
    """brimful's TLSF and the two crates."""
    found = [Contender("brimful", ("--pool", "tlsf"))]
    for peer in peers.PEERS:
        try:
            library = peers.build(peer, BUILT)
        except (BuildError, OSError) as error:
            found.append(Contender(peer.name, (), missing=str(error)))
            continue
        found.append(Contender(peer.name, ("--pool", str(library))))
    return found


def malloc_contenders(names: Iterable[str] = MALLOCS) -> list[Contender]:
    """General allocators, each preloaded into a process of its own. Ours is called brimful malloc."""
    known = {one.name: one for one in league.known()}
    found = []
    for name in names:
        title = "brimful malloc" if name == league.OURS else name
        one = known.get(name)
        if one is None:
            found.append(Contender(title, (), missing="not built (make rivals)"))
            continue
        library = Path(one.library) if one.library else None
        allocator = Allocator(name, library, dict(one.settings))
        found.append(Contender(title, ("--pool", "malloc"), allocator, one.missing))
    return found


def page_contenders() -> list[Contender]:
    """The page pool and the handle pool, with pages from the kernel and from a list."""
    return [
        Contender(f"{pool} pool, pages from {where}", ("--pool", pool, "--pages", pages))
        for pool in ("page", "handle")
        for pages, where in (("list", "a list"), ("kernel", "the kernel"))
    ]


def described(contenders: Iterable[Contender]) -> Data:
    """Versions and checksums, for the record."""
    pinned = {peer.name: peer for peer in peers.PEERS}
    versions = {one.name: one.version for one in league.known()}
    about: Data = {}
    for one in contenders:
        if one.missing:
            about[one.name] = {"missing": one.missing}
        elif one.name in pinned:
            peer = pinned[one.name]
            library = BUILT / f"libpool-{peer.name}.so"
            digest = hashlib.sha256(library.read_bytes()).hexdigest()
            about[one.name] = {"version": peer.crate.version, "crate": str(peer.crate)}
            about[one.name] |= {"crate_sha256": peer.crate.sha256, "sha256": digest}
        elif one.allocator.library is not None:
            version = versions.get(one.allocator.name, "")
            told = {"version": version, "library": one.allocator.library.name}
            about[one.name] = one.allocator.describe() | told
        elif one.arguments[:2] == ("--pool", "malloc"):
            about[one.name] = one.allocator.describe()
        else:
            digest = hashlib.sha256(POOLS_LIBRARY.read_bytes()).hexdigest()
            about[one.name] = {"library": "libbrimful-pools.a", "sha256": digest}
    return about


# --- programs -------------------------------------------------------------------------------------


def build_programs() -> None:
    """Compiles what is run, against the pools' library. Raises BenchError."""
    if not POOLS_LIBRARY.exists():
        raise BenchError(f"{benchlib.path_for_record(POOLS_LIBRARY)} is missing (make bench-pools)")
    flags = ["-std=c++20", "-O2", "-Wall", "-Wextra", f"-I{benchlib.ROOT / 'include'}"]
    headers = [*SOURCES.glob("*.h"), *(SOURCES.parent / "workloads").glob("*.h"), POOLS_LIBRARY]
    newest = max(path.stat().st_mtime for path in headers)
    for name, source in {**{one: SOURCES / f"{one}.cpp" for one in PROGRAMS}, **ELSEWHERE}.items():
        binary = BUILT / name
        if binary.exists() and binary.stat().st_mtime < newest:
            binary.unlink()
        try:
            links = [str(POOLS_LIBRARY), "-ldl"]
            building.built(binary, source, ["g++", *flags], links)
        except building.BuildError as error:
            raise BenchError(str(error)) from None


@dataclass
class Bench:
    """Takes samples, keeps what failed, and says how far it is."""

    short: bool = False
    failures: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def progress(self, text: str) -> None:
        say(f"[{time.monotonic() - self.began:4.0f} s] {text}")

    def sample(self, program: str, who: Contender, *arguments: str | int) -> Data | None:
        """What `program` says of itself as JSON, or None; the failure is kept then."""
        printed = self.printed(program, who, *arguments)
        if printed is None:
            return None
        result: Data = json.loads(printed)
        served = str(result.get("malloc", ""))
        if program not in ELSEWHERE and (fault := wrong_malloc(who.allocator, served)):
            self.failures.append(f"{program} with {who.name}: {fault}")
            return None
        if served:
            result["malloc"] = Path(served).name  # no path of this machine in the record
        return result

    def printed(self, program: str, who: Contender, *arguments: str | int) -> str | None:
        """What `program` prints, or None."""
        command = [str(BUILT / program), *who.arguments, *map(str, arguments)]
        what = f"{program} {' '.join(map(str, arguments))} with {who.name}"
        if who.missing:
            absent = f"{who.name}: {who.missing}"
            if absent not in self.failures:
                self.failures.append(absent)
            return None
        try:
            done = subprocess.run(
                command,
                env=who.allocator.environment(),
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            self.failures.append(f"{what}: took longer than {TIMEOUT_S} s")
            return None
        if done.returncode != 0:
            reason = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            self.failures.append(f"{what}: {reason[0]}")
            return None
        return done.stdout

    def script(self, what: str, path: Path, *arguments: str) -> bool:
        """Runs another script of the project, whose progress is shown; false if it failed."""
        command = [sys.executable, str(path), *arguments]
        try:
            done = subprocess.run(
                command,
                env=SYSTEM.environment(),
                stdout=subprocess.DEVNULL,
                timeout=2 * TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            self.failures.append(f"{what}: took longer than {2 * TIMEOUT_S} s")
            return False
        if done.returncode != 0:
            self.failures.append(f"{what}: exit code {done.returncode}")
        return done.returncode == 0


def wrong_malloc(allocator: Allocator, served: str) -> str:
    """Why the malloc that served the process is not the one that was meant, or ""."""
    if allocator.library is None:
        return "" if "libc.so" in served else f"malloc was {served!r}, not the C library's"
    same = served and Path(served).exists() and Path(served).samefile(allocator.library)
    return "" if same else f"malloc was {served!r}, not {allocator.library.name}"
