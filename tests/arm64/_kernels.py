# SPDX-License-Identifier: MIT
"""Debian's kernels for 64-bit ARM, fetched without changing what this machine has installed.

apt is asked with a configuration of its own: another architecture, its lists and its cache in a
folder of the build tree, and the archive that this machine's apt uses. Nothing is installed: the
image is taken out of the package.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

CONFIGURATION = """\
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
Acquire::Languages "none";
APT::Sandbox::User "root";
Dir::State "FOLDER";
Dir::State::status "FOLDER/status";
Dir::Cache "FOLDER/cache";
Dir::Etc::sourcelist "FOLDER/sources.list";
Dir::Etc::sourceparts "FOLDER/none";
"""
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True)
class Kernel:
    """A kernel that is asked for: what it is called here, and the package's name (an expression)."""

    name: str
    suite: str
    package: str


# The clouds' images are a third of the size, and have the drivers of the emulated machine.
KERNELS = (
    Kernel("6.1", "bookworm", r"linux-image-6\.1\.0-[0-9]+-cloud-arm64"),
    Kernel("6.12", "bookworm-backports", r"linux-image-6\.12[.0-9]*\+deb12-cloud-arm64"),
    Kernel("6.12-16k", "trixie", r"linux-image-6\.12[.0-9]*\+deb13-arm64-16k"),
)


class Archive:
    """The packages for 64-bit ARM of the archive that this machine's apt uses."""

    def __init__(self, folder: Path) -> None:
        """Writes the configuration into the folder, and brings the lists up to date."""
        self.folder = folder
        for part in ("lists/partial", "cache/archives/partial", "none"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        suites = sorted({kernel.suite for kernel in KERNELS})
        lines = [f"deb [signed-by={KEYS}] {self._address()} {suite} main\n" for suite in suites]
        (folder / "sources.list").write_text("".join(lines))
        (folder / "apt.conf").write_text(CONFIGURATION.replace("FOLDER", str(folder.resolve())))
        self._apt("apt-get", "-q", "update")

    @staticmethod
    def _address() -> str:
        """Where this machine's apt gets Debian from."""
        targets = subprocess.run(
            ["apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)", "Created-By: Packages"],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        for line in targets.splitlines():
            address, _, label = line.partition(" ")
            if label == "Debian":
                return address
        raise RuntimeError("this machine's apt knows no Debian archive")

    def _apt(self, *command: str, folder: Path | None = None) -> str:
        done = subprocess.run(
            [command[0], "-c", str((self.folder / "apt.conf").resolve()), *command[1:]],
            check=True,
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout

    def newest(self, package: str) -> str | None:
        """The package with the greatest version in its name, or None."""
        names = self._apt("apt-cache", "--generate", "pkgnames").split()
        found = [name for name in names if re.fullmatch(package, name)]
        return max(found, key=lambda name: [int(n) for n in re.findall(r"\d+", name)], default=None)

    def image(self, package: str) -> Path:
        """The kernel's image, fetched if it is not there yet."""
        folder = self.folder / package
        images = list(folder.glob("vmlinuz-*"))
        if images:
            return images[0]
        folder.mkdir(exist_ok=True)
        self._apt("apt-get", "-q", "download", package, folder=folder)
        [deb] = folder.glob("*.deb")
        data = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE)
        subprocess.run(
            ["tar", "-x", "--wildcards", "--strip-components=2", "./boot/vmlinuz-*"],
            check=True,
            cwd=folder,
            stdin=data.stdout,
        )
        if data.wait() != 0:
            raise RuntimeError(f"{deb.name} can't be read")
        deb.unlink()
        return next(folder.glob("vmlinuz-*"))
