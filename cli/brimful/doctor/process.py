# SPDX-License-Identifier: MIT
"""What /proc, /sys and the control group say about a process and its machine.

All paths begin at folders that a test may replace. What can't be read counts as absent: a process may
end meanwhile, and a container hides what it likes.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

_AT_SECURE = 23
_WORD = 8
_NAME_OF_LIBRARY = re.compile(r"libbrimful[^/]*\.so[.\d]*(?: \(deleted\))?$")
UNLIMITED = -1


@dataclass(frozen=True)
class System:
    """The machine, by the files it shows."""

    proc: Path = field(default_factory=lambda: Path("/proc"))
    sys: Path = field(default_factory=lambda: Path("/sys"))

    def number(self, path: Path) -> int | None:
        """A file's number; UNLIMITED for `max`."""
        text = read(path).strip()
        return UNLIMITED if text == "max" else int(text) if text.isdigit() else None

    def hugepages(self) -> str:
        """The word in brackets of transparent_hugepage/enabled."""
        chosen = re.search(r"\[(\w+)\]", read(self.sys / "kernel/mm/transparent_hugepage/enabled"))
        return chosen[1] if chosen else ""

    def overcommit(self) -> int | None:
        return self.number(self.proc / "sys/vm/overcommit_memory")

    def most_mappings(self) -> int | None:
        return self.number(self.proc / "sys/vm/max_map_count")

    def committed(self) -> tuple[int, int]:
        """Bytes promised to all processes, and those that may be."""
        found = dict(re.findall(r"^(\w+):\s+(\d+) kB", read(self.proc / "meminfo"), re.MULTILINE))
        return int(found.get("Committed_AS", 0)) << 10, int(found.get("CommitLimit", 0)) << 10

    def processes(self) -> list[int]:
        return [int(name) for name in os.listdir(self.proc) if name.isdigit()]


@dataclass(frozen=True)
class Process:
    """A running process."""

    system: System
    pid: int

    @property
    def _folder(self) -> Path:
        return self.system.proc / str(self.pid)

    def exists(self) -> bool:
        return self._folder.is_dir()

    def may_be_read(self) -> bool:
        """Whether its maps may be: the right to ptrace it, which being its user gives."""
        try:
            with open(self._folder / "maps", "rb") as file:
                file.read(1)
            return True
        except OSError:
            return False

    def name(self) -> str:
        return read(self._folder / "comm").strip() or "?"

    def program(self) -> str:
        """A path by which the program's file can be read, also from outside its container."""
        return str(self._folder / "exe")

    def variables(self) -> dict[str, str]:
        """The environment that it was started with."""
        entries = read(self._folder / "environ").split("\0")
        return dict(entry.split("=", 1) for entry in entries if "=" in entry)

    def preloads(self) -> list[str]:
        """The names in its LD_PRELOAD."""
        return self.variables().get("LD_PRELOAD", "").replace(":", " ").split()

    def wants_brimful(self) -> bool:
        return any(_NAME_OF_LIBRARY.search(name) for name in self.preloads())

    def files(self) -> list[str]:
        """The files that it has mapped, in the order of their addresses, once each."""
        lines = read(self._folder / "maps").splitlines()
        named = (line.split(None, 5) for line in lines)
        return list(
            dict.fromkeys(words[5] for words in named if len(words) == 6 and words[5][0] == "/")
        )

    def has_loaded_brimful(self) -> bool:
        return any(_NAME_OF_LIBRARY.search(file) for file in self.files())

    def sees(self, path: str) -> bool:
        """Whether there is such a file where the process lives."""
        return (self._folder / "root" / path.lstrip("/")).exists()

    def is_secure(self) -> bool:
        """AT_SECURE: it gained privileges as it started, so the loader ignored the environment."""
        try:
            data = (self._folder / "auxv").read_bytes()
        except OSError:
            return False
        words = [
            int.from_bytes(data[at : at + _WORD], "little") for at in range(0, len(data), _WORD)
        ]
        return dict(zip(words[::2], words[1::2], strict=False)).get(_AT_SECURE, 0) != 0

    def status(self, name: str) -> int:
        """A number of its status: bytes where the kernel says kB. 0 where there is none."""
        found = re.search(rf"^{name}:\s+(\d+)( kB)?$", read(self._folder / "status"), re.MULTILINE)
        return int(found[1]) << (10 if found[2] else 0) if found else 0

    def has_hugepages_forbidden(self) -> bool:
        """By prctl(PR_SET_THP_DISABLE), its own or a parent's."""
        return (
            re.search(r"^THP_enabled:\s+0$", read(self._folder / "status"), re.MULTILINE)
            is not None
        )

    def mappings(self) -> int:
        return read(self._folder / "maps").count("\n")

    def address_space_limit(self) -> int:
        """`ulimit -v` in bytes, or UNLIMITED."""
        found = re.search(
            r"^Max address space\s+(\d+)", read(self._folder / "limits"), re.MULTILINE
        )
        return int(found[1]) if found else UNLIMITED

    def group_memory(self) -> tuple[Path, int, int] | None:
        """The closest control group with a memory limit: its folder, bytes in use, bytes allowed."""
        for line in read(self._folder / "cgroup").splitlines():
            number, controllers, path = line.split(":", 2)
            is_second = number == "0" and controllers == ""
            if not is_second and "memory" not in controllers.split(","):
                continue
            top = self.system.sys / "fs/cgroup" / ("" if is_second else "memory")
            names = ("memory.current", "memory.max")
            if not is_second:
                names = ("memory.usage_in_bytes", "memory.limit_in_bytes")
            folder = top / path.lstrip("/")
            while folder == top or top in folder.parents:
                used, most = (self.system.number(folder / name) for name in names)
                if used is not None and most is not None and most != UNLIMITED and most < 1 << 60:
                    return folder, used, most
                folder = folder.parent
        return None

    def parent(self) -> Process | None:
        """The process that started it, as long as that runs."""
        number = self.status("PPid")
        return Process(self.system, number) if number > 0 else None


def read(path: Path) -> str:
    """The text of a file, "" where it can't be read."""
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return ""
