#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Golden test of the fast paths: how many instructions a hit costs, and of which kinds.

Reads the disassembly of the library that ships and walks each entry point along its hit path: from
the symbol, straight on through conditional jumps (they lead to slow paths), except those to another
entry point (a sized delete whose size is right goes on as a free), along unconditional jumps inside
the library, to the first `ret`. Budgets, `ret` included: malloc 20, free 30 (the thirtieth keeps
the pointer for the slow paths: docs/design/0012); operator new and delete the same. A free of
another context's object, which goes into a magazine: 75; free(NULL), which takes two jumps. The
same for large blocks that wait in a stack (docs/design/0026). On the path there may be no call, but
to malloc, whose own path is counted then, and calloc()'s to memset(), which is not; no lock prefix,
but one in a large block's free, and no exchange with memory (which locks without saying so).

Second, every restartable section that the library registers is checked for the invariant that
the design rests on: the last instruction of the section, and no other, writes to memory (the
commit). Sections are found by their descriptors in the data (struct rseq_cs), so a section that
somebody adds is checked too; the few that write before they commit are listed by name. And nothing
jumps into the middle of a section: a thread that leaves one for a few instructions and comes back
may have been moved to another CPU meanwhile, and is not aborted any more.

Why a walk through the text and not a count of executed instructions: under a single-stepping
tracer the kernel aborts every restartable section, so the hit path never completes there, and
valgrind has no rseq at all; both would count the slow path.

Environment: BRIMFUL_LIB (default build/release/libbrimful.so). Prints the listing on failure.
"""

from __future__ import annotations

import itertools
import os
import re
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parents[2]))
LIBRARY = Path(os.environ.get("BRIMFUL_LIB", ROOT / "build/release/libbrimful.so"))

# Entry point -> most instructions of a hit, ret included.
BUDGETS = {
    "malloc": 20,
    "free": 30,
    "_Znwm": 20,  # operator new(size_t)
    "_Znam": 20,  # operator new[](size_t)
    "_ZdlPv": 30,  # operator delete(void*)
    "_ZdaPv": 30,
    "_ZdlPvm": 39,  # sized delete compares the size with the object's, then it is a free
    "_ZdaPvm": 39,
    "malloc_usable_size": 12,
    "realloc": 25,  # that stays where it is
    "calloc": 34,  # to the jump that leads to memset()
    "aligned_alloc": 27,
    "memalign": 27,
    "posix_memalign": 38,
    "_ZnwmSt11align_val_t": 27,  # operator new(size_t, align_val_t)
    "_ZnamSt11align_val_t": 27,
}
# free(NULL): no object starts there; the slow path looks at it first.
FREE_NULL_BUDGET = 16
# malloc's other hits: jumps taken from its beginning on, and instructions.
# Two of each count down to the next sample (docs/design/0031).
BIG_BUDGETS = {"malloc of 5 to 32 KiB": (2, 37), "malloc of a large block": (3, 36)}
# The pair of a large block has one locked instruction, the one that makes its end exact.
LARGE_FREE = "free of a large block"
LARGE_FREE_BUDGET = 53
# Functions with a section that prepares before it commits (writes more than once). An abort between
# two of the writes must leave a state that every other path can go on from; that is proven where the
# section is written, and a new one has to be entered here by hand.
PREPARING = {
    "brimful_malloc",
    "brimful_new",
    "brimful_free",
    "brimful_take_run",
    "brimful_seq_take_freed",
    "brimful_seq_install",
    "brimful_seq_magazine_push",
    "brimful_seq_magazine_take",
    "brimful_seq_magazine_forget",
    "brimful_seq_runs_take",
}
# Most instructions of a free of another context's object, by the longest way through its section.
FOREIGN_BUDGET = 75
RSEQ_SIGNATURE = 0x53053053
SECTION_LIMIT = 512  # bytes; a longer "section" is no descriptor of ours
ENTRY_LIMIT = 16  # bytes: what stores the descriptor, in front of a section
LONGEST_WALK = 200
# Instructions whose last operand is read, not written.
READ_ONLY = re.compile(r"^(cmp|test|bt$|bt[wlq]$|push|jmp|call|nop|prefetch|ud1)")


@dataclass(frozen=True)
class Instruction:
    """One line of the disassembly."""

    address: int
    mnemonic: str
    operands: str
    text: str

    def target(self) -> int | None:
        """Where a direct jump goes."""
        found = re.match(r"([0-9a-f]+)(?:\s|$)", self.operands)
        return int(found[1], 16) if found else None

    def is_call(self) -> bool:
        """True for a call, whatever it leads to."""
        return self.mnemonic.startswith("call")

    def leaves_for_memset(self) -> bool:
        """True for the jump that ends calloc()."""
        return self.mnemonic == "jmp" and "<memset" in self.operands

    def writes_memory(self) -> bool:
        """True when the destination (AT&T: the last operand) is memory."""
        if READ_ONLY.match(self.mnemonic) or self.mnemonic.startswith(("lea", "j")):
            return self.mnemonic.startswith(("push", "call"))
        operands = re.sub(r"\s*[<#].*", "", self.operands)
        depth, last = 0, ""
        for character in operands:
            depth += {"(": 1, ")": -1}.get(character, 0)
            last = "" if character == "," and depth == 0 else last + character
        return last.endswith(")") or bool(re.search(r"%[fg]s:", last))


def tool(*command: str) -> str:
    """The output of a binutils program."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def disassemble() -> dict[int, Instruction]:
    """Every instruction of the library by address."""
    listing: dict[int, Instruction] = {}
    pattern = re.compile(r"^\s*([0-9a-f]+):\t(?:[0-9a-f]{2} )*\s*\t?(.*)$")
    for line in tool("objdump", "-d", "--no-show-raw-insn", "-w", str(LIBRARY)).splitlines():
        found = pattern.match(line)
        if not found:
            continue
        words = found[2].strip()
        prefix = re.match(r"((?:lock|rep|repz|repnz|bnd|notrack|data16|cs) )*", words)
        mnemonic, _, operands = words[prefix.end() if prefix else 0 :].partition(" ")
        address = int(found[1], 16)
        listing[address] = Instruction(address, mnemonic, operands.strip(), words)
    return listing


def symbols() -> dict[str, int]:
    """Dynamic symbols by name, without their versions."""
    table: dict[str, int] = {}
    for line in tool("nm", "-D", "--defined-only", str(LIBRARY)).splitlines():
        address, _, name = line.split()[:3]
        table[name.split("@")[0]] = int(address, 16)
    return table


def hit_path(
    listing: dict[int, Instruction], start: int, entry_points: set[int], takes: int = 0
) -> list[Instruction]:
    """The instructions from an entry point to the last ret.

    The first `takes` conditional jumps are taken, whatever they lead to.
    """
    order = sorted(listing)
    following = dict(itertools.pairwise(order))
    path: list[Instruction] = []
    returns: list[int | None] = []
    address: int | None = start
    while address is not None and address in listing and len(path) < LONGEST_WALK:
        instruction = listing[address]
        path.append(instruction)
        target, behind = instruction.target(), following.get(address)
        if instruction.mnemonic.startswith("ret"):
            if not returns:
                return path
            address = returns.pop()
        elif instruction.is_call() and target in entry_points:
            returns.append(behind)
            address = target
        elif instruction.leaves_for_memset():
            return path
        elif instruction.mnemonic == "jmp":
            address = target
        elif instruction.mnemonic.startswith("j"):
            is_taken = target in entry_points or takes > 0
            takes -= 1
            address = target if is_taken else behind
        else:
            address = behind
    return path


def foreign_path(
    listing: dict[int, Instruction], own_path: list[Instruction], starts: set[int]
) -> list[Instruction]:
    """The instructions of a free of another context's object, from the path of one's own.

    It is left by the first jump that leads to another section.
    """
    for i, instruction in enumerate(own_path):
        target = instruction.target() if instruction.mnemonic.startswith("j") else None
        if target is not None and any(target < start <= target + ENTRY_LIMIT for start in starts):
            return own_path[: i + 1] + hit_path(listing, target, set())
    return []


def large_path(
    listing: dict[int, Instruction], own_path: list[Instruction], foreign: list[Instruction]
) -> list[Instruction]:
    """The instructions of a free of a large block, which leaves the foreign one's at its first `jae`."""
    for i, instruction in enumerate(foreign):
        if instruction not in own_path and instruction.mnemonic == "jae":
            return foreign[: i + 1] + hit_path(listing, instruction.target() or 0, set())
    return []


def path_faults(
    path: list[Instruction], budget: int, entry_points: set[int], locks: int = 0
) -> list[str]:
    """What is wrong with a hit path, which may have so many instructions with a lock prefix."""
    faults = []
    if not path or not (path[-1].mnemonic.startswith("ret") or path[-1].leaves_for_memset()):
        return ["no such path, or it does not end with ret (a loop, or a jump out of the library)"]
    if len(path) > budget:
        faults.append(f"{len(path)} instructions, the budget is {budget}")
    for instruction in path:
        if instruction.text.startswith("lock "):
            locks -= 1
        if instruction.text.startswith("lock ") and locks < 0:
            faults.append(f"lock prefix: {instruction.text}")
        if instruction.mnemonic.startswith("xchg") and "(" in instruction.operands:
            faults.append(f"exchange with memory: {instruction.text}")
        is_unknown = instruction.is_call() and instruction.target() not in entry_points
        if is_unknown or instruction.mnemonic.startswith(("syscall", "mfence")):
            faults.append(f"{instruction.mnemonic}: {instruction.text}")
    return faults


def sections() -> list[tuple[int, int, int]]:
    """(start, length, abort handler) of every restartable section in the library's data."""
    image = LIBRARY.read_bytes()
    loads: list[tuple[int, int, int]] = []  # file offset, address, length
    for line in tool("readelf", "-lW", str(LIBRARY)).splitlines():
        found = re.match(r"\s+LOAD\s+(0x\w+)\s+(0x\w+)\s+0x\w+\s+(0x\w+)\s", line)
        if found:
            loads.append((int(found[1], 16), int(found[2], 16), int(found[3], 16)))

    def at(address: int, size: int) -> bytes:
        for offset, virtual, length in loads:
            if virtual <= address and address + size <= virtual + length:
                return image[offset + address - virtual :][:size]
        return b""

    relocated = {}
    for line in tool("readelf", "-rW", str(LIBRARY)).splitlines():
        found = re.match(r"([0-9a-f]+)\s+\w+\s+R_X86_64_RELATIVE\s+([0-9a-f]+)", line)
        if found:
            relocated[int(found[1], 16)] = int(found[2], 16)
    result = []
    for place, start in relocated.items():
        descriptor, abort = place - 8, relocated.get(place + 16)
        if descriptor % 32 != 0 or abort is None or len(at(descriptor, 24)) != 24:
            continue
        version, flags, _, length = struct.unpack("<IIQQ", at(descriptor, 24))
        signature = at(abort - 4, 4)
        is_section = version == 0 and flags == 0 and 0 < length < SECTION_LIMIT
        if is_section and signature == struct.pack("<I", RSEQ_SIGNATURE):
            result.append((start, length, abort))
    return sorted(result)


def names_at(address: int) -> set[str]:
    """Every name of the function that an address lies in, internal ones included."""
    best = -1
    names: set[str] = set()
    for line in tool("nm", "--defined-only", str(LIBRARY)).splitlines():
        place, kind, name = line.split()[:3]
        if kind not in "tT" or int(place, 16) > address or int(place, 16) < best:
            continue
        if int(place, 16) > best:
            best, names = int(place, 16), set()
        names.add(name.split("@")[0])
    return names


def section_faults(listing: dict[int, Instruction], start: int, length: int) -> list[str]:
    """What is wrong with one restartable section."""
    body = [listing[address] for address in sorted(listing) if start <= address < start + length]
    if not body or body[0].address != start:
        return ["the section does not begin at an instruction"]
    faults = []
    writers = [instruction for instruction in body if instruction.writes_memory()]
    names = names_at(start)
    if not writers or writers[-1] != body[-1]:
        faults.append("the last instruction is no write to memory")
    if len(writers) > 1 and not names & PREPARING:
        faults.append(f"{len(writers)} writes to memory in {'/'.join(sorted(names))}")
    if start + length not in listing:
        faults.append("the section does not end at an instruction's end")
    for instruction in body:
        if instruction.mnemonic.startswith(("call", "syscall")):
            faults.append(f"{instruction.mnemonic} inside of a section")
    for instruction in listing.values():
        target = instruction.target() if instruction.mnemonic.startswith("j") else None
        is_inside = start <= instruction.address < start + length
        if target is not None and start <= target < start + length and not is_inside:
            faults.append(f"a way in from outside: {instruction.address:x}  {instruction.text}")
    if faults:
        faults += [f"    {each.address:8x}  {each.text}" for each in body]
    return faults


def main() -> int:
    """Checks the library; exit code 0 when every budget and every section holds."""
    if os.uname().machine != "x86_64":
        print("skip: the budgets are those of x86-64")
        return 77
    if not LIBRARY.exists():
        print(f"FAIL no library at {LIBRARY}")
        return 1
    listing, table = disassemble(), symbols()
    entry_points = set(table.values())
    found = sections()
    starts = {start for start, _, _ in found}
    paths = {
        name: (hit_path(listing, table[name], entry_points) if name in table else [], budget)
        for name, budget in BUDGETS.items()
    }
    foreign = foreign_path(listing, paths["free"][0], starts)
    paths["free of another context's object"] = (foreign, FOREIGN_BUDGET)
    paths["free(NULL)"] = (hit_path(listing, table["free"], set(), takes=2), FREE_NULL_BUDGET)
    for name, (takes, budget) in BIG_BUDGETS.items():
        paths[name] = (hit_path(listing, table["malloc"], set(), takes), budget)
    paths[LARGE_FREE] = (large_path(listing, paths["free"][0], foreign), LARGE_FREE_BUDGET)
    passed = failed = 0
    for name, (path, budget) in paths.items():
        faults = path_faults(path, budget, entry_points, locks=int(name == LARGE_FREE))
        passed, failed = passed + (not faults), failed + bool(faults)
        verdict = "FAIL" if faults else "ok  "
        print(f"{verdict} {name}: {len(path)} of at most {budget} instructions")
        for fault in faults:
            print(f"     {fault}")
        if faults:
            print("".join(f"     {i + 1:3} {each.text}\n" for i, each in enumerate(path)), end="")
    if len(found) < 2:
        print(
            f"FAIL only {len(found)} restartable sections: malloc and free have one each at least"
        )
        failed += 1
    for start, length, _ in found:
        faults = section_faults(listing, start, length)
        passed, failed = passed + (not faults), failed + bool(faults)
        verdict = "FAIL" if faults else "ok  "
        print(f"{verdict} section at {start:#x}, {length} bytes: the commit comes last")
        for fault in faults:
            print(f"     {fault}")
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
