# SPDX-License-Identifier: MIT
"""What can be compared here: the system's malloc, this checkout's brimful, the rivals, --lib.

The rivals are what `make rivals` has put into build/rivals/manifest.json, each with its origin, its
version and, where it has several ways of working, the one that a probe saw at work. What could not
be had is in the list too, with the reason: a rival that is silently absent makes every table a lie.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .. import __version__, locate
from . import proof
from .model import Allocator, BenchError

SYSTEM = "glibc"  # what every program has by itself; the default baseline
OURS = "brimful"
PROBE_TIMEOUT_S = 20
NO_RIVALS = "rivals"  # stands for all of them until they are built
# One of each family that leads today: for a first answer.
FEW = (SYSTEM, OURS, "jemalloc", "mimalloc3", "snmalloc", "gperftools", NO_RIVALS)
# Left out unless asked for: older versions of the same, the other mode of the same library, and what
# buys safety with time (several times slower, they would take most of the budget).
NOT_MAIN = {
    *("jemalloc-deb", "mimalloc2-deb", "tcmalloc-perthread"),
    *("hardened", "hardened-light", "isoalloc", "hoard", "mimalloc3-secure", "snmalloc-checks"),
}
# Of each family the newest, and what was wanted but cannot be had.
LEAGUE = (
    *(SYSTEM, OURS, "mimalloc2", "mimalloc3", "snmalloc", "rpmalloc", "jemalloc", "gperftools"),
    *("tcmalloc-percpu", "tbb", "rpmalloc2", "mesh"),
)
# Builds of brimful that exist to be compared with it, and nothing else: name → what is different,
# folder of the build. They take part only where they are named.
STUDIES = {
    f"{OURS}-class-mutex": ("a mutex per size class", "study-class"),
    f"{OURS}-global-lock": ("one lock for all", "study-global"),
}
FRONT_ENDS = {f"{OURS}-percpu": "percpu", f"{OURS}-thread": "thread"}
# Settings of brimful that a question is about, memory's or safety's: name → what is different, its options.
BACKGROUND = f"{OURS}-background"
VARIANTS = {
    BACKGROUND: ("with its background thread", "background_thread:1"),
    f"{OURS}-guards-1000": ("one object in 1000 guarded", "guards:1000"),
    f"{OURS}-guards-all": ("every small object guarded", "guards:1"),
    f"{OURS}-canary": ("canaries", "canary:1"),
    f"{OURS}-zero": ("freed memory cleared", "zero:1"),
    f"{OURS}-quarantine": ("freed objects that wait", "quarantine:4"),
    f"{OURS}-random": ("random choice", "random:1"),
    f"{OURS}-guard": ("a guard page behind each slab", "guard:1"),
    f"{OURS}-hardened": ("tier hardened", "tier:hardened"),
    f"{OURS}-hardened-all": (
        "tier hardened with every feature",
        "tier:hardened,canary:1,zero:1,random:1,quarantine:4,guard:1",
    ),
}
ONLY_NAMED = {f"{OURS}-percpu", *STUDIES, *VARIANTS}


class AllocatorError(BenchError):
    """An allocator was asked for that does not exist; the message names those that do."""


def build_folder() -> Path:
    """Where everything the bench builds lies."""
    return Path(locate.project_root()) / "build"


def manifest_path() -> Path:
    """What `make rivals` writes."""
    return build_folder() / "rivals" / "manifest.json"


def known(libraries: Sequence[str] = ()) -> list[Allocator]:
    """Every allocator of this machine; `libraries` are further ones as NAME=PATH.

    Raises AllocatorError for a malformed or repeated name, or an unreadable manifest.
    """
    found = [_system(), *_ours(), *_rivals(), *(_named(item) for item in libraries)]
    names = [allocator.name for allocator in found]
    for name in names:
        if names.count(name) > 1:
            raise AllocatorError(f"--lib {name}=…: there is an allocator {name} already")
    return [_checked(allocator) for allocator in found]


def pair(library: str = "", conf: str = "") -> tuple[Allocator, Allocator]:
    """The system's malloc and brimful alone, whatever rivals there are."""
    ours = _ours()[0]
    settings = {"BRIMFUL_CONF": conf} if conf else {}
    ours = replace(ours, library=os.path.abspath(library or ours.library), settings=settings)
    return _system(), _checked(ours)


def of_preset(available: Sequence[Allocator], which: str) -> list[Allocator]:
    """What a preset compares: "few", "league", "main", "all", "threads", which is all with each front end of
    brimful, or "memory", which is the main ones and brimful with its background thread. What is
    missing for good stays declared."""
    if which in ("few", "league"):
        wanted = FEW if which == "few" else LEAGUE
        return [allocator for allocator in available if allocator.name in wanted]
    left_out = {
        "main": NOT_MAIN | ONLY_NAMED,
        "memory": NOT_MAIN | set(FRONT_ENDS) | ONLY_NAMED - {BACKGROUND},
        "threads": {*STUDIES, *VARIANTS},
    }.get(which, ONLY_NAMED)
    return [allocator for allocator in available if allocator.name not in left_out]


def choose(available: Sequence[Allocator], names: str) -> list[Allocator]:
    """Those whose names are in the comma-separated list `names`. Raises AllocatorError."""
    by_name = {allocator.name: allocator for allocator in available}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise AllocatorError("--allocators: the list is empty")
    for name in wanted:
        if name not in by_name:
            raise AllocatorError(f"no allocator {name!r}; there are: {', '.join(by_name)}")
    return [by_name[name] for name in dict.fromkeys(wanted)]


def _system() -> Allocator:
    """Preloaded nowhere, but its file is hashed, so that a patched C library shows."""
    path = proof.c_library()
    return Allocator(
        SYSTEM,
        title="GNU C library",
        version=platform.libc_ver()[1],
        origin="the system",
        sha256=hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else "",
    )


def _ours() -> list[Allocator]:
    """brimful as it decides by itself, each front end by order, further settings, builds for study."""
    auto = Allocator(
        OURS,
        title="brimful",
        version=__version__,
        origin="this checkout",
        library=locate.default_library(),
        ours=True,
    )
    front_ends = [
        replace(
            auto,
            name=name,
            title=f"brimful, front end {mode}",
            settings={"BRIMFUL_CONF": f"front_end:{mode}"},
        )
        for name, mode in FRONT_ENDS.items()
    ]
    studies = [
        replace(
            auto,
            name=name,
            title=f"brimful, for study: {what}",
            library=str(build_folder() / folder / "libbrimful.so"),
        )
        for name, (what, folder) in STUDIES.items()
    ]
    variants = [
        replace(auto, name=name, title=f"brimful, {what}", settings={"BRIMFUL_CONF": conf})
        for name, (what, conf) in VARIANTS.items()
    ]
    return [auto, *front_ends, *variants, *studies]


def _rivals() -> list[Allocator]:
    path = manifest_path()
    try:
        entries = json.loads(path.read_text())
    except FileNotFoundError:
        return [Allocator(NO_RIVALS, missing="not built yet: run `make rivals`")]
    except (OSError, ValueError) as error:
        raise AllocatorError(f"cannot read {path}: {error}") from None
    try:
        return [
            Allocator(
                name=entry["name"],
                title=entry["title"],
                version=entry["version"] or "",
                origin=entry["origin"] or "",
                library=entry["library"] or "",
                settings=entry["settings"] or {},
                mode=entry["mode"] or "",
                missing=entry["missing"] or "",
            )
            for entry in entries
        ]
    except (KeyError, TypeError) as error:
        raise AllocatorError(f"{path} is damaged ({error!r}): run `make rivals`") from None


def _named(item: str) -> Allocator:
    name, equals, path = item.partition("=")
    if not (name and equals and path):
        raise AllocatorError(f"--lib {item}: must be NAME=PATH")
    return Allocator(name, title=name, origin="--lib", library=os.path.abspath(path))


def _checked(allocator: Allocator) -> Allocator:
    """With its checksum, and its reason if it cannot be preloaded."""
    if allocator.missing or not allocator.library:
        return allocator
    try:
        locate.library(allocator.library)
    except locate.LibraryError as error:
        target = "lib-locked" if allocator.name in STUDIES else "lib"
        hint = f": build it with `make {target}`" if allocator.ours else ""
        return replace(allocator, missing=f"{error}{hint}")
    content = Path(allocator.library).read_bytes()  # also brings the file into the page cache
    allocator = replace(allocator, sha256=hashlib.sha256(content).hexdigest())
    return replace(allocator, mode=_front_end(allocator)) if allocator.ours else allocator


def _front_end(allocator: Allocator) -> str:
    """What brimful says of itself at start under these settings."""
    conf = ",".join(filter(None, [allocator.settings.get("BRIMFUL_CONF", ""), "verbose:1"]))
    environment = os.environ | {
        "LD_PRELOAD": locate.preloadable(allocator.library),
        "BRIMFUL_CONF": conf,
    }
    try:
        done = subprocess.run(
            ["ls", "/"], env=environment, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"does not start: {error}"
    return done.stderr.strip().removeprefix("brimful: ")
