# SPDX-License-Identifier: MIT
"""Who takes part: brimful's pools, the crates behind the same C functions, and mallocs.

A malloc is preloaded into a process of its own; ours is called "brimful malloc" beside the pools.
Who is missing is in every record with the reason, as the rivals of the league are.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, replace

from brimful.bench import allocators
from brimful.bench.model import Allocator
from brimful.bench.study.model import ROOT
from rivals.recipes import BuildError
from studies.pools import crates

BUILT = ROOT / "build" / "pools"
POOLS_LIBRARY = ROOT / "build" / "release" / "libbrimful-pools.a"
GENERAL = ("glibc", "jemalloc", "mimalloc2", "mimalloc3")
UNDER_THE_CACHE = ("tcmalloc-percpu", "snmalloc")  # beside those, in zcache alone
SYSTEM = Allocator(allocators.SYSTEM)


@dataclass(frozen=True)
class Contender:
    """One column: who it is, what the programs are told, and the malloc they run with."""

    who: Allocator
    arguments: tuple[str, ...] = ()
    malloc: Allocator = SYSTEM

    @property
    def name(self) -> str:
        return self.who.name

    def called(self, suffix: str, *arguments: str) -> Contender:
        """The same with further arguments, in a column of its own."""
        who = replace(self.who, name=f"{self.name}, {suffix}")
        return Contender(who, (*self.arguments, *arguments), self.malloc)

    def growable(self) -> Contender:
        return self.called("growable", "--growable", "1")


OURS = Contender(Allocator("brimful", ours=True))  # in programs that know no other pool


@functools.cache
def tlsf() -> tuple[Contender, ...]:
    """brimful's TLSF and the two crates."""
    digest = hashlib.sha256(POOLS_LIBRARY.read_bytes()).hexdigest()
    library = str(POOLS_LIBRARY)
    ours = Allocator("brimful", origin="this checkout", library=library, sha256=digest, ours=True)
    found = [Contender(ours, ("--pool", "tlsf"))]
    for peer in crates.CRATES:
        who = Allocator(peer.name, version=peer.crate.version, origin=str(peer.crate))
        try:
            built = crates.build(peer, BUILT)
        except (BuildError, OSError) as error:
            found.append(Contender(replace(who, version="", missing=str(error))))
            continue
        digest = hashlib.sha256(built.read_bytes()).hexdigest()
        who = replace(who, library=str(built), sha256=digest)
        found.append(Contender(who, ("--pool", str(built))))
    return tuple(found)


@functools.cache
def _known() -> dict[str, Allocator]:
    return {one.name: one for one in allocators.known()}


def malloc(name: str, title: str = "", *arguments: str) -> Contender:
    """A general allocator, by the league's name and under this title."""
    one = _known().get(name) or Allocator(name, missing="not built yet: run `make rivals`")
    return Contender(replace(one, name=title or name), arguments, one)


def general() -> list[Contender]:
    return [malloc(name, name, "--pool", "malloc") for name in GENERAL]


def brimful_malloc() -> Contender:
    return malloc(allocators.OURS, "brimful malloc", "--pool", "malloc")


def everybody() -> list[Contender]:
    """All that a record names; the pools of pages are in the same library as TLSF."""
    return [*tlsf(), *general(), brimful_malloc(), *map(malloc, UNDER_THE_CACHE)]


def pages() -> list[Contender]:
    """The page pool and the handle pool, with pages from the kernel and from a list."""
    return [
        Contender(
            Allocator(f"{pool} pool, pages from {where}", ours=True),
            ("--pool", pool, "--pages", source),
        )
        for pool in ("page", "handle")
        for source, where in (("list", "a list"), ("kernel", "the kernel"))
    ]
