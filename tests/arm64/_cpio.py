# SPDX-License-Identifier: MIT
"""An archive that Linux unpacks as its first file system: cpio, format "newc".

Source: Documentation/driver-api/early-userspace/buffer-format.rst of Linux. Debian's cpio would do
as well; this is shorter than asking for it.
"""

from __future__ import annotations

import stat
from pathlib import Path

FOLDER = stat.S_IFDIR | 0o755
PROGRAM = stat.S_IFREG | 0o755


def _entry(number: int, name: str, mode: int, content: bytes) -> bytes:
    named = name.encode() + b"\0"
    # number, mode, user, group, links, time, size, four device numbers, length of the name, checksum
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(named), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + named
    return head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4)


def archive(files: dict[str, bytes]) -> bytes:
    """The files by their names from the root on, without a leading slash; all may be executed."""
    folders = {str(parent) for name in files for parent in Path(name).parents if parent != Path()}
    parts = [
        _entry(number, name, FOLDER, b"") for number, name in enumerate(sorted(folders), start=1)
    ]
    parts += [
        _entry(number, name, PROGRAM, content)
        for number, (name, content) in enumerate(files.items(), start=len(parts) + 1)
    ]
    return b"".join([*parts, _entry(0, "TRAILER!!!", 0, b"")])
