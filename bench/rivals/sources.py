# SPDX-License-Identifier: MIT
"""Fetches the packages that carry sources, by the registries' own clients.

cargo, pip and apt are used rather than plain downloads because a machine that reaches the registries
only through mirrors has told these clients how. The checksum in the table is compared after the
fetch, so a mirror cannot slip in other sources. Nothing is compiled by these clients.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

from rivals.catalog import Crate, Sdist, Sources, Upstream
from rivals.recipes import BuildError, Shell

ROOT = Path(__file__).resolve().parents[2]
APT_HELPER = "/usr/lib/apt/apt-helper"


def fetch(origin: Sources, folder: Path, shell: Shell) -> Path:
    """The sources of `origin`, unpacked below `folder`; fetched only if they are not there yet."""
    if isinstance(origin, Crate):
        return fetch_crate(origin, folder / origin.package, shell)
    if isinstance(origin, Upstream):
        return fetch_upstream(origin, folder / origin.package, shell)
    return fetch_sdist(origin, folder / origin.package, shell)


def fetch_crate(crate: Crate, folder: Path, shell: Shell) -> Path:
    """cargo vendor of a project whose only dependency is the crate, at exactly this version."""
    found = unpacked_crate(crate, folder)
    if found is None:
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "src").mkdir(parents=True)
        (folder / "src" / "lib.rs").write_text("")
        (folder / "Cargo.toml").write_text(
            '[package]\nname = "rival"\nversion = "0.0.0"\nedition = "2021"\n\n'
            f'[dependencies]\n{crate.package} = "={crate.version}"\n'
        )
        shell.run(["cargo", "vendor", "--versioned-dirs", "vendor"], cwd=folder)
        found = unpacked_crate(crate, folder)
    if found is None:
        raise BuildError(f"cargo did not fetch {crate.package} {crate.version}")
    checksum = json.loads((found / ".cargo-checksum.json").read_text()).get("package")
    compare(crate.sha256, str(checksum), str(crate))
    return found


def unpacked_crate(crate: Crate, folder: Path) -> Path | None:
    """Where cargo put the crate: some versions carry build metadata after a plus sign."""
    base = f"{crate.package}-{crate.version}"
    found = [folder / "vendor" / base, *sorted(folder.glob(f"vendor/{base}+*"))]
    return next((path for path in found if path.is_dir()), None)


def fetch_sdist(sdist: Sdist, folder: Path, shell: Shell) -> Path:
    """pip download of the source distribution only."""
    stem = f"{sdist.package.replace('-', '_')}-{sdist.version}"
    archive = folder / f"{stem}.tar.gz"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        wanted = ["--no-deps", "--no-binary", sdist.package, "--dest", str(folder)]
        requirement = f"{sdist.package}=={sdist.version}"
        shell.run([*pip(), "download", *wanted, requirement], cwd=folder)
    compare(sdist.sha256, hashlib.sha256(archive.read_bytes()).hexdigest(), str(sdist))
    if not (folder / stem).is_dir():
        shell.run(["tar", "-xzf", archive], cwd=folder)
    return folder / stem


def fetch_upstream(upstream: Upstream, folder: Path, shell: Shell) -> Path:
    """The archive that lies beside a binary package, which apt knows without a list of sources."""
    archive = folder / upstream.archive
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        address = f"{pool(upstream.package)}/{upstream.archive}"
        fresh = archive.with_suffix(".part")
        shell.run([APT_HELPER, "download-file", address, fresh], cwd=folder)
        fresh.rename(archive)
    compare(upstream.sha256, hashlib.sha256(archive.read_bytes()).hexdigest(), str(upstream))
    unpacked = folder / "unpacked"
    if not unpacked.is_dir():
        fresh = folder / "unpacked.part"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        shell.run(["tar", "-xf", archive, "--strip-components=1"], cwd=fresh)
        fresh.rename(unpacked)
    return unpacked


def pool(package: str) -> str:
    """The address of the folder that a Debian package would be downloaded from."""
    line = ["apt-get", "download", "--print-uris", package]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        raise BuildError(f"apt does not know {package}: {said[-1]}") from None
    address = done.stdout.partition("'")[2].partition("'")[0]
    if "/" not in address:
        raise BuildError(f"apt does not say where {package} lies")
    return address.rpartition("/")[0]


def pip() -> list[str]:
    """The first pip that runs: this interpreter's, or one of the project's environments'."""
    environments = [ROOT / "build" / name / "bin" / "python" for name in ("venv-bench", "venv")]
    for python in [Path(sys.executable), *environments]:
        line = [str(python), "-m", "pip"]
        try:
            subprocess.run([*line, "--version"], check=True, capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError):
            continue
        return [*line, "--disable-pip-version-check"]
    raise BuildError("pip is not installed")


def compare(wanted: str, got: str, what: str) -> None:
    if wanted != got:
        raise BuildError(f"{what} has another checksum ({got[:12]}…) than the table says")
