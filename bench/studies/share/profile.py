# SPDX-License-Identifier: MIT
"""A profile that `perf record` wrote, counted: where the samples of a program lie.

A sample belongs to exactly one of these, the first that fits:

- `fault`: the kernel is giving the program a page (of which `clear`: it is filling it with zeros),
  whether the program touched it or a system call populated it;
- `mapping`: the kernel maps, unmaps or gives back memory because it was asked to, or the process ends;
- `kernel`: everything else in the kernel;
- `allocator`: code of the allocator itself;
- `program`: all other code, memset and memcpy of the C library included, whoever calls them.

A preloaded allocator is a file. The C library's lies inside libc.so: from the first of its exported
names to the last, the static functions between them included, which have no names in a stripped file.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

EVENT = "cpu-clock"  # a timer: hardware counters are closed in most virtual machines
PARTS = ("allocator", "fault", "clear", "mapping", "kernel", "program")
LAUNCHER = "measure"  # looks at the program now and then, and is not the program
FRAME = re.compile(r"^\s+([0-9a-f]+) (.+) \((.*)\)$")
FAULT = re.compile(r"asm_exc_page_fault|do_user_addr_fault|do_page_fault|el0_da|handle_mm_fault")
CLEAR = re.compile(
    r"clear_page|clear_huge_page|clear_folio|folio_zero|clear_user_highpage|__pi_clear"
)
MAPPING = re.compile(
    r"__(x64|arm64)_sys_(mmap|munmap|madvise|process_madvise|brk|mremap|mprotect)\b|exit_mmap"
)
# Begin and end of malloc.o in libc.so. The first of a pair that is there counts.
FIRST, LAST = ("__default_morecore", "malloc"), ("malloc_info",)
LARGEST_FILE = 1 << 40  # what is above is an address in memory


class ProfileError(Exception):
    """There is no profile, and why."""


@dataclass(frozen=True)
class Code:
    """Where an allocator's code lies: a file, or a part of one, in addresses of the file."""

    file: str
    begin: int = 0
    end: int = LARGEST_FILE

    def holds(self, address: int, file: str) -> bool:
        return file == self.file and self.begin <= address < self.end


def objection() -> str:
    """Why nothing can be profiled here, or ""."""
    if shutil.which("perf") is None:
        return "perf is not installed (Debian package linux-perf)"
    line = [*recorder("/dev/null", 99), "true"]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        return f"perf: {error}"
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return "" if done.returncode == 0 else f"perf may not record here: {(said or ['?'])[0]}"


def recorder(output: str, hertz: int) -> list[str]:
    """The command in front of another one that profiles it and its descendants, and prints nothing."""
    return ["perf", "record", "-q", "-g", "-e", EVENT, "-F", str(hertz), "-o", output, "--"]


def code_of(library: str, c_library: str) -> Code:
    """Where the code of a preloaded library lies, or of the C library's malloc. Raises ProfileError."""
    if library:
        return Code(str(Path(library).resolve()))
    file = str(Path(c_library).resolve())
    try:
        line = ["nm", "-D", "-S", "--defined-only", file]
        said = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ProfileError(f"the C library's names cannot be read: {error}") from None
    return Code(file, *span(said))


def span(names: str) -> tuple[int, int]:
    """Begin and end of malloc.o by what nm prints of libc.so. Raises ProfileError."""
    found = {}
    for line in names.splitlines():
        words = line.split()
        if len(words) == 4:
            found[words[3].partition("@")[0]] = int(words[0], 16), int(words[1], 16)
    first = next((found[name] for name in FIRST if name in found), None)
    last = next((found[name] for name in LAST if name in found), None)
    if first is None or last is None:
        raise ProfileError("the C library does not export malloc and malloc_info")
    return first[0], last[0] + last[1]


def read(recorded: Path, code: Code) -> Counter[str]:
    """Samples of each of PARTS, `clear` also counted as `fault`. Raises ProfileError."""
    line = ["perf", "script", "-i", str(recorded), "-F", "comm,pid,ip,sym,dso", "--no-inline"]
    try:
        done = subprocess.run(line, capture_output=True, text=True, errors="replace", timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        raise ProfileError(f"perf script: {error}") from None
    if done.returncode != 0:
        raise ProfileError(f"perf script: {done.stderr.strip()[:200]}")
    return counted(done.stdout.splitlines(), code)


def counted(lines: Iterable[str], code: Code) -> Counter[str]:
    """The same of what perf script printed."""
    counts: Counter[str] = Counter()
    for command, stack in _samples(lines):
        if command == LAUNCHER or not stack:
            continue
        for part in parts_of(stack, code):
            counts[part] += 1
    return counts


def _samples(lines: Iterable[str]) -> Iterator[tuple[str, list[tuple[int, str, str]]]]:
    """Of each sample the command and its stack, innermost first: address, function, file."""
    command, stack = "", []
    for line in lines:
        frame = FRAME.match(line)
        if frame:
            stack.append((int(frame[1], 16), frame[2], frame[3]))
        elif line.strip():
            command = line.rsplit(maxsplit=1)[0].strip()
        else:
            yield command, stack
            command, stack = "", []
    yield command, stack


def parts_of(stack: Sequence[tuple[int, str, str]], code: Code) -> list[str]:
    """What a sample counts as. Raises ProfileError."""
    address, function, file = stack[0]
    if not file.startswith("[kernel"):
        if file == code.file and address >= LARGEST_FILE:
            raise ProfileError("this perf prints addresses of memory, not of files")
        return ["allocator" if code.holds(address, file) else "program"]
    inside = [name for _, name, where in stack if where.startswith("[kernel")]
    if any(FAULT.search(name) for name in inside):
        return ["fault", "clear"] if CLEAR.search(function) else ["fault"]
    return ["mapping" if any(MAPPING.search(name) for name in inside) else "kernel"]
