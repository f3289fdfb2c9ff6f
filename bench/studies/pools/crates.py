# SPDX-License-Identifier: MIT
"""The pools that brimful's are compared with: two Rust crates, compiled behind the same few C functions.

They are no rivals of the malloc (nothing is preloaded and no probe runs), so they have a table of their
own. Sources come by `sources.fetch`, pinned by version and checksum as all others; the Rust text that
turns each into C functions is workloads/peers/NAME.rs.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from rivals import sources
from rivals.catalog import Crate
from rivals.recipes import BuildError, Shell

SOURCES = Path(__file__).parent / "workloads" / "peers"


@dataclass(frozen=True)
class Peer:
    """One pool in a crate of its own."""

    name: str
    crate: Crate

    @property
    def text(self) -> Path:
        return SOURCES / f"{self.name}.rs"


CRATES = (
    Peer(
        "rlsf",
        Crate("rlsf", "0.2.3", "07393724337be2ee43a9d86164df4505746874a3fa65913374bc6d6a92314362"),
    ),
    Peer(
        "talc",
        Crate("talc", "5.1.1", "53f8ad14fa1c1b8635114abf9721076fe1e869572a5f26a52690f407292c80dc"),
    ),
)

# Release settings that leave nothing on the table: whole-program optimisation, no unwinding.
MANIFEST = """[package]
name = "{name}_peer"
version = "0.0.0"
edition = "2021"

[lib]
path = "peer.rs"
crate-type = ["cdylib"]

[dependencies]
{package} = "={version}"

[profile.release]
opt-level = 3
lto = "fat"
codegen-units = 1
panic = "abort"
"""
OFFLINE = """[source.crates-io]
replace-with = "fetched"

[source.fetched]
directory = "{vendor}"
"""


def build(peer: Peer, folder: Path) -> Path:
    """The peer's library below `folder`; compiled unless it is there. Raises BuildError."""
    library = folder / f"libpool-{peer.name}.so"
    stamp = folder / "work" / f"pool-{peer.name}.json"
    wanted = hashlib.sha256(
        "\n".join([repr(peer), MANIFEST, peer.text.read_text()]).encode()
    ).hexdigest()
    if library.exists() and stamp.exists() and json.loads(stamp.read_text()) == wanted:
        return library
    work = folder / "work" / f"pool-{peer.name}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    shell = Shell(folder / "logs" / f"pool-{peer.name}.log", work)
    source = sources.fetch(peer.crate, folder / "sources", shell)
    shutil.copyfile(peer.text, work / "peer.rs")
    about = peer.crate
    (work / "Cargo.toml").write_text(
        MANIFEST.format(name=peer.name, package=about.package, version=about.version)
    )
    (work / ".cargo").mkdir()
    (work / ".cargo" / "config.toml").write_text(OFFLINE.format(vendor=source.parent))
    # No path of this machine in the library: its checksum is the same anywhere.
    places = [f"--remap-path-prefix={path}=." for path in (work, source.parent)]
    variables = {"RUSTFLAGS": " ".join(places), "CARGO_TARGET_DIR": str(work / "target")}
    shell.run(["cargo", "build", "--release", "--offline"], cwd=work, variables=variables)
    made = work / "target" / "release" / f"lib{peer.name}_peer.so"
    if not made.exists():
        raise BuildError(f"cargo made no {made.name}")
    shutil.copyfile(made, library)
    stamp.write_text(json.dumps(wanted))
    shutil.rmtree(work)
    return library
