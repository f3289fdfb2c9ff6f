# SPDX-License-Identifier: MIT
"""The table of rivals: one line for each allocator in each configuration that is measured.

What is not in Debian comes as source text inside Rust crates or Python packages, because these
registries are reachable wherever the project can be built, and pin a version and a checksum. The
sources are compiled here, each with the options its authors use for a release, so that no rival
loses for having been built by a stranger's choice of flags. One that cannot be had stays in the
table with the reason: a comparison that silently omits a rival claims more than it knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rivals import recipes
from rivals.recipes import Shell


@dataclass(frozen=True)
class Debian:
    """A library that a Debian package holds ready; the newest that matches is taken."""

    package: str  # what to install if nothing matches
    pattern: str  # below /usr/lib; {machine} is the architecture as uname calls it

    def __str__(self) -> str:
        return f"Debian package {self.package}"


@dataclass(frozen=True)
class Crate:
    """Sources inside a Rust crate. No Rust is compiled."""

    package: str
    version: str
    sha256: str  # of the .crate file, as the registry's index has it

    def __str__(self) -> str:
        return f"crate {self.package} {self.version}"


@dataclass(frozen=True)
class Sdist:
    """Sources inside a Python source distribution."""

    package: str
    version: str
    sha256: str  # of the .tar.gz file

    def __str__(self) -> str:
        return f"Python package {self.package} {self.version}"


@dataclass(frozen=True)
class Upstream:
    """The authors' archive as Debian's source package carries it, without Debian's patches."""

    package: str  # a binary package that is made from it: apt knows where that one lies
    archive: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.archive} of Debian's source package"


@dataclass(frozen=True)
class Nowhere:
    """An allocator that none of the sources above carries."""

    reason: str

    def __str__(self) -> str:
        return "not to be had"


Sources = Crate | Sdist | Upstream
Origin = Debian | Crate | Sdist | Nowhere
# recipe(sources, the .so to make, a shell that logs): builds, or raises recipes.BuildError
Recipe = Callable[[Path, Path, Shell], None]


@dataclass(frozen=True)
class Rival:
    """One allocator in one configuration."""

    name: str  # short and stable: results and command lines name it
    title: str  # for charts and tables
    origin: Origin
    version: str = ""  # of the allocator itself; Debian's is asked from dpkg
    recipe: Recipe | None = None
    library: str = ""  # rivals with the same one share a build; the name if empty
    settings: dict[str, str] = field(default_factory=dict)
    mode: str = ""  # what the probe must find running; anything goes if empty
    flaw: str = ""  # why this version is known to fail the probe; then that is no surprise

    def build_name(self) -> str:
        return self.library or self.name


MIMALLOC3 = Sdist(
    "cmeel-mimalloc", "3.4.3", "8d355a77cc0f4133cdeb9156c9098bbb4e88924326d38343cf73ff9caa95ece3"
)
MIMALLOC2 = Crate(
    "libmimalloc-sys", "0.1.49", "6a45a52f43e1c16f667ccfe4dd8c85b7f7c204fd5e3bf46c5b0db9a5c3c0b8e9"
)
SNMALLOC = Crate(
    "snmalloc-sys", "0.7.6", "f09c93c55f9a2b8dab75738a83c771231c5f408af65b8657433fe5bc93cc76cb"
)
JEMALLOC = Crate(
    "tikv-jemalloc-sys", "0.7.1", "1a2825c78386b4ae0314074867860ba9577875de945f05992c38815cbec327f0"
)
RPMALLOC = Crate(
    "rpmalloc-sys", "0.2.3", "8d4b7d5e225a53887ee57fcec492eaf114b8e290f7072d035adc6ddd6810b67b"
)
TCMALLOC = Crate(
    "libtcmalloc-sys", "0.1.14", "33e204268a3b09862788a2894346c768b95b2cb29cba42c5e2bb9ea7f48fa317"
)
HARDENED = Crate(
    "hardened-malloc-sys",
    "16.0.2026060603",
    "7636afbd2ac08dbeb7d8297231223cd1876d7743e18c6f8d9ac76749f31c6dbc",
)
ISOALLOC = Crate(
    "libisoalloc-sys", "0.3.0", "302710fa08543d86963149c7386a114e43a2da2a33cc75e2ada3faa169d69ba6"
)
HOARD = Crate(
    "alloc_hoard", "0.3.0", "93ad637b1ce0e556e0bbd6f246fd6248c482401f841525099049663d6b43bf23"
)

# Google's tcmalloc has no releases; the crate's version is all there is to name the text by.
# glibc registers its own rseq area for every thread. Google's tcmalloc needs that registration for
# itself, and where it is taken falls back to per-thread caches without a word.
NO_GLIBC_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}

RIVALS: tuple[Rival, ...] = (
    Rival(
        "jemalloc-deb",
        "jemalloc (Debian)",
        Debian("libjemalloc2", "{machine}-linux-gnu/libjemalloc.so.2"),
    ),
    Rival(
        "gperftools",
        "gperftools tcmalloc",
        Debian("libtcmalloc-minimal4", "{machine}-linux-gnu/libtcmalloc_minimal.so.4"),
    ),
    Rival(
        "mimalloc2-deb",
        "mimalloc 2 (Debian)",
        Debian("libmimalloc2.0", "{machine}-linux-gnu/libmimalloc.so.2.0"),
    ),
    Rival(
        "tbb",
        "oneTBB malloc",
        Debian("libtbbmalloc2", "{machine}-linux-gnu/libtbbmalloc_proxy.so.2"),
    ),
    Rival(
        "scudo",
        "Scudo",
        Debian(
            "libclang-rt-22-dev",
            "llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-{machine}.so",
        ),
    ),
    Rival("mimalloc2", "mimalloc 2", MIMALLOC2, "2.3.2", recipes.mimalloc2),
    Rival("mimalloc3", "mimalloc 3", MIMALLOC3, "3.4.3", recipes.mimalloc3),
    Rival(
        "mimalloc3-secure",
        "mimalloc 3 (secure)",
        MIMALLOC3,
        "3.4.3",
        recipes.mimalloc3_secure,
    ),
    Rival("snmalloc", "snmalloc", SNMALLOC, "0.7.6", recipes.snmalloc),
    Rival(
        "snmalloc-checks",
        "snmalloc (with checks)",
        SNMALLOC,
        "0.7.6",
        recipes.snmalloc_checks,
    ),
    Rival("jemalloc", "jemalloc", JEMALLOC, "5.3.1", recipes.jemalloc),
    Rival("rpmalloc", "rpmalloc 1", RPMALLOC, "1.4.3", recipes.rpmalloc),
    Rival("hardened", "hardened_malloc", HARDENED, "2026060603", recipes.hardened),
    Rival(
        "hardened-light",
        "hardened_malloc (light)",
        HARDENED,
        "2026060603",
        recipes.hardened_light,
    ),
    Rival(
        "isoalloc",
        "IsoAlloc",
        ISOALLOC,
        "0.3.0",
        recipes.isoalloc,
        flaw="its realloc aborts on blocks over 64 KiB",
    ),
    Rival("hoard", "Hoard", HOARD, "4.0.0", recipes.hoard),
    Rival(
        "tcmalloc-percpu",
        "tcmalloc (per CPU)",
        TCMALLOC,
        "crate 0.1.14",
        recipes.tcmalloc,
        library="tcmalloc",
        settings=NO_GLIBC_RSEQ,
        mode="per-CPU caches",
    ),
    Rival(
        "tcmalloc-perthread",
        "tcmalloc (per thread)",
        TCMALLOC,
        "crate 0.1.14",
        recipes.tcmalloc,
        library="tcmalloc",
        mode="per-thread caches",
    ),
    Rival(
        "rpmalloc2",
        "rpmalloc 2",
        Nowhere("the only crate with rpmalloc's sources has 1.4; Debian has no package of it"),
    ),
    Rival(
        "mesh",
        "Mesh",
        Nowhere("no Debian, Rust or Python package carries Mesh's sources"),
    ),
)
