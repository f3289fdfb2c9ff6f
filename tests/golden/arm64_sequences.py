#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Golden test of the sequences for 64-bit ARM: what a hit costs, and what every section must hold.

Assembles src/arch/aarch64/sequences.S by clang, which can do so for any processor, so this runs
where there is no ARM and no cross compiler. As instruction_counts.py does for x86-64, it walks each
entry point straight on to the first `ret` and counts; a load, a store and an address of ours are
instructions of their own here, so the numbers are greater (docs/design/0041). On a hit there may be
no call, no barrier and no atomic instruction.

Of each restartable section, found by its descriptor: the last instruction is its commit, a store;
no other stores, but where the section is listed; nothing jumps in from outside; the signature that
the kernel asks for stands before the abort handler. And what takes the place of x86-64's order of
memory: the commits that publish an object's last use are store-releases, and the loads that are
listed below are load-acquires.

Needs clang and llvm-objdump. Prints the listing on failure.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parents[2]))
SOURCE = ROOT / "src/arch/aarch64/sequences.S"
SIGNATURE = 0xD428BC00  # RSEQ_SIG of the C library's bits/rseq.h
LONGEST_WALK = 200

# Entry point -> most instructions of a hit, the landing pad and `ret` included.
BUDGETS = {
    "brimful_malloc": 26,
    "brimful_new": 27,  # its section is not the first: one addition
    "brimful_free": 35,
    "brimful_free_sized": 42,
    "brimful_usable_size": 13,
    "brimful_realloc": 30,
    "brimful_calloc": 44,
    "brimful_aligned_alloc": 37,
    "brimful_memalign": 37,
    "brimful_posix_memalign": 50,
    "brimful_new_aligned": 38,
}
# Sections that store before they commit; see instruction_counts.py.
PREPARING = (
    *("advance_", "coarse_", "run_", "free_foreign", "free_run"),
    *("install", "magazine_", "runs_take", "take_freed"),
)
# Commits that publish: whoever sees the bit, or the owner, must see what was done before.
RELEASING = ("free", "free_marked", "seq_free", "or", "store32")
# Section -> load-acquires and store-releases in it, at least.
ORDERED = {
    "advance_": (2, 2),  # active_id, lock; offered word, freed word
    "coarse_": (2, 0),
    "take_freed": (2, 0),  # as coarse_
    "run_": (1, 0),
    "free_foreign": (3, 0),  # owner, freed word, active_id
    "free_run": (1, 0),
    "free_marked": (1, 1),
    "seq_free": (1, 1),
    "install": (1, 2),
    "magazine_": (1, 0),
}
FORBIDDEN = re.compile(r"^(dmb|dsb|isb|ld(a)?xr|st(l)?xr|cas|swp|ld(add|set|clr|eor)|svc)")
STORE = re.compile(r"^(str|stur|stp|stlr)[bh]?$")


@dataclass(frozen=True)
class Instruction:
    """One line of the disassembly."""

    address: int
    mnemonic: str
    operands: str

    def target(self) -> int | None:
        """Where a branch inside of the file goes; None for other instructions, and out of it."""
        if not re.match(r"^(b|bl|b\.\w+|cbn?z|tbn?z)$", self.mnemonic):
            return None
        found = re.search(r"0x([0-9a-f]+) <", self.operands)
        return int(found[1], 16) if found else None

    def text(self) -> str:
        """As it is printed."""
        return f"{self.address:6x}  {self.mnemonic} {self.operands}"


@dataclass(frozen=True)
class Section:
    """A restartable section."""

    name: str
    start: int
    length: int
    abort: int


def tool(*command: str) -> str:
    """The output of a program."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


class Assembled:
    """The object file."""

    def __init__(self, file: Path) -> None:
        """Reads its code, its names and its descriptors."""
        self.file = file
        self.code = self._listing(".text")
        self.abort_code = self._listing(".text.brimful_abort")
        self.names: dict[str, int] = {}
        sections: dict[int, str] = {}
        for line in tool("llvm-objdump", "-t", str(file)).splitlines():
            found = re.match(r"([0-9a-f]+) .*?(\.\S+)\s+[0-9a-f]+ (?:\.hidden )?(\S+)$", line)
            if found and found[2] == ".text":
                self.names[found[3]] = int(found[1], 16)
            elif found and found[3].startswith("brimful_section_"):
                sections[int(found[1], 16)] = found[3].removeprefix("brimful_section_")
        self.sections = self._sections(sections)
        # Where free() and a sized free have found the header.
        sized = [self.names["brimful_free_sized"] + 4 * n for n in range(20)]
        branches = [self.code[at].target() for at in sized if self.code[at].mnemonic == "b.eq"]
        self.with_header = branches[0] if branches else None

    def _listing(self, section: str) -> dict[int, Instruction]:
        listing = {}
        options = ("-d", "--no-show-raw-insn", "--mattr=+v8.5a", "-j", section)
        for line in tool("llvm-objdump", *options, str(self.file)).splitlines():
            found = re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*(.*)$", line)
            if found:
                address = int(found[1], 16)
                listing[address] = Instruction(address, found[2], found[3])
        return listing

    def _bytes(self, section: str) -> bytes:
        with tempfile.NamedTemporaryFile() as copy:
            tool(
                "llvm-objcopy",
                "-O",
                "binary",
                f"--only-section={section}",
                f"--set-section-flags={section}=alloc",
                str(self.file),
                copy.name,
            )
            return Path(copy.name).read_bytes()

    def _sections(self, names: dict[int, str]) -> list[Section]:
        places: dict[int, int] = {}
        part = ""
        for line in tool("llvm-objdump", "-r", str(self.file)).splitlines():
            if line.startswith("RELOCATION RECORDS FOR"):
                part = line
            if ".data.rel.ro.brimful_rseq" not in part:
                continue
            found = re.match(r"([0-9a-f]+) R_AARCH64_ABS64\s+(\S+?)(?:\+0x([0-9a-f]+))?$", line)
            if found:
                places[int(found[1], 16)] = self.names.get(found[2], 0) + int(found[3] or "0", 16)
        data = self._bytes(".data.rel.ro.brimful_rseq")
        result = []
        for place, name in sorted(names.items()):
            version, flags, _, length, _ = struct.unpack_from("<IIQQQ", data, place)
            if version != 0 or flags != 0:
                raise ValueError(f"{name}: version {version}, flags {flags}")
            result.append(Section(name, places[place + 8], length, places[place + 24]))
        self.abort_words = self._bytes(".text.brimful_abort")
        return result


def hit_path(file: Assembled, name: str) -> list[Instruction]:
    """The instructions from an entry point to the last ret, or out of the file."""
    path: list[Instruction] = []
    returns: list[int] = []
    address = file.names[name]
    while address in file.code and len(path) < LONGEST_WALK:
        instruction = file.code[address]
        path.append(instruction)
        target = instruction.target()
        if instruction.mnemonic == "ret":
            if not returns:
                return path
            address = returns.pop()
        elif instruction.mnemonic == "bl":
            if target is None:
                return path
            returns.append(address + 4)
            address = target
        elif instruction.mnemonic == "b":
            if target is None or target == address:  # elsewhere: the linker says where
                return path
            address = target
        elif instruction.mnemonic == "b.eq" and target is not None and target == file.with_header:
            address = target  # a sized free whose size is right goes on as a free
        else:
            address += 4
    return path


def path_faults(path: list[Instruction], budget: int) -> list[str]:
    """What is wrong with a hit."""
    faults = []
    if len(path) > budget:
        faults.append(f"{len(path)} instructions, {budget} at most")
    if path[0].mnemonic != "bti":
        faults.append("no landing pad at its beginning")
    faults += [each.text() for each in path if FORBIDDEN.match(each.mnemonic)]
    return faults


def section_faults(file: Assembled, section: Section) -> list[str]:
    """What is wrong with a restartable section."""
    end = section.start + section.length
    body = [file.code[at] for at in range(section.start, end, 4)]
    stores = [each for each in body if STORE.match(each.mnemonic)]
    faults = []
    if not stores or stores[-1] != body[-1]:
        faults.append("the last instruction is no store")
    if len(stores) > 1 and not section.name.startswith(PREPARING):
        faults.append(f"{len(stores)} stores")
    if section.name in RELEASING and body[-1].mnemonic != "stlr":
        faults.append("the commit is no store-release")
    for prefix, (acquires, releases) in ORDERED.items():
        if not section.name.startswith(prefix):
            continue
        found = [each.mnemonic for each in body]
        if found.count("ldar") < acquires or found.count("stlr") < releases:
            faults.append(f"fewer than {acquires} load-acquires and {releases} store-releases")
    faults += [
        each.text() for each in body if each.mnemonic == "bl" or FORBIDDEN.match(each.mnemonic)
    ]
    for each in file.code.values():
        target = each.target()
        if (
            target is not None
            and section.start <= target < end
            and not section.start <= each.address < end
        ):
            faults.append(f"a way in from outside: {each.text()}")
    if struct.unpack_from("<I", file.abort_words, section.abort - 4)[0] != SIGNATURE:
        faults.append("no signature before the abort handler")
    if faults:
        faults += [f"    {each.text()}" for each in body]
    return faults


def main() -> int:
    """Checks the file; exit code 0 when every budget and every section holds."""
    for need in ("clang", "llvm-objdump", "llvm-objcopy"):
        if shutil.which(need) is None:
            print(f"skip: {need} is not installed")
            return 77
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "sequences.o"
        include = next(iter(Path("/usr/include").glob("*-linux-gnu/asm/errno.h"))).parents[1]
        command = ["clang", "--target=aarch64-linux-gnu", "-c", f"-I{ROOT / 'src'}", f"-I{include}"]
        subprocess.run(
            [*command, "-DBRIMFUL_INTERPOSE=1", str(SOURCE), "-o", str(built)], check=True
        )
        file = Assembled(built)
        passed = failed = 0
        for name, budget in BUDGETS.items():
            path = hit_path(file, name)
            faults = path_faults(path, budget)
            passed, failed = passed + (not faults), failed + bool(faults)
            print(
                f"{'FAIL' if faults else 'ok  '} {name}: {len(path)} of at most {budget} instructions"
            )
            for fault in faults:
                print(f"     {fault}")
            if faults:
                print(
                    "".join(f"     {i + 1:3} {each.text()}\n" for i, each in enumerate(path)),
                    end="",
                )
        for section in file.sections:
            faults = section_faults(file, section)
            passed, failed = passed + (not faults), failed + bool(faults)
            print(f"{'FAIL' if faults else 'ok  '} section {section.name}: the commit comes last")
            for fault in faults:
                print(f"     {fault}")
        if len(file.sections) < 2:
            print(f"FAIL only {len(file.sections)} restartable sections")
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
