# SPDX-License-Identifier: MIT
"""Which allocators take part in a study: some of those that `brimful bench` knows, and the user's own."""

from __future__ import annotations

from .. import allocators
from ..model import Allocator
from .model import Option, Run, StudyError

# The leading one of each family, and each front end of brimful.
USUAL = "glibc,jemalloc,mimalloc3,snmalloc,gperftools,brimful-percpu,brimful-thread"


def option(usual: str = USUAL, short: str | None = None) -> Option:
    """`--allocators`."""
    return Option("these, comma-separated; NAME=PATH is a further library", usual, short)


def chosen(run: Run) -> list[Allocator]:
    """Those of --allocators that can run here. All of them are in the record, missing ones with why.

    Raises StudyError if there is none, and AllocatorError.
    """
    words = [word.strip() for word in run.options.allocators.split(",") if word.strip()]
    available = allocators.known([word for word in words if "=" in word])
    names = [word.partition("=")[0] for word in words]
    if any(one.name == allocators.NO_RIVALS for one in available):
        there = {one.name for one in available}
        available += [
            Allocator(name, missing="not built yet: run `make rivals`")
            for name in names
            if name not in there
        ]
    found = allocators.choose(available, ",".join(names))
    run.record.allocators = found
    for one in found:
        if one.missing:
            run.record.fail(one.name, one.missing)
    usable = [one for one in found if not one.missing]
    if not usable:
        raise StudyError(f"none of the allocators can run here: {', '.join(names)}")
    return usable
