#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Golden test of the fast paths: cycles of a malloc and its free on five processors, by llvm-mca.

The hit path of malloc and then that of free, walked in the library that ships as
instruction_counts.py does, run as the body of a loop on the models that LLVM has of two processors
of AMD and three of Intel. It needs none of these processors, and the same text gives the same
figure each time, so the tolerance is small: it is there for an instruction that moved. Both ways: a
pair that became cheaper gets its new figure here.

Two loops: one frees another object than it made, so that only the processor's width limits how far
pairs overlap (throughput); one frees the object that it has just made, so that free waits for malloc,
and the window of the processor limits it. In both all loads hit the first-level cache, all jumps are
foreseen, and no load waits for an earlier store (llvm-mca knows no forwarding, so the chains through
the words of a group are not in it): docs/design/0027 compares with measured cycles.

LLVM's models change with its version, so another one than that of the figures prints its table and is
skipped. There is no ARM among the processors: its sequences are C++ (arch/generic), whose hit path is
no straight line that can be walked.

Environment: BRIMFUL_LIB (default build/release/libbrimful.so); any library that defines malloc and
free can be looked at, and `pair_cycles.py --show` prints the table without a verdict.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

from instruction_counts import LIBRARY, Instruction, disassemble, hit_path, symbols

LLVM = 14  # whose models the figures are of
ITERATIONS = 500
TOLERANCE = 0.02
SKIPPED = 77


@dataclass(frozen=True)
class Golden:
    """What a pair costs on one processor."""

    title: str
    cycles: float  # of a pair that frees another object
    waiting: float  # of a pair that frees its own
    micro_operations: float


GOLDEN = {
    "znver2": Golden("AMD Zen 2", 19.4, 29.1, 63),
    "znver3": Golden("AMD Zen 3", 12.4, 16.7, 55),
    "haswell": Golden("Intel Haswell", 16.1, 24.1, 62),
    "skylake": Golden("Intel Skylake", 15.4, 24.1, 62),
    "icelake-server": Golden("Intel Ice Lake", 15.4, 24.1, 62),
}


@dataclass(frozen=True)
class Found:
    """What llvm-mca says of the loop on one processor."""

    cycles: float
    micro_operations: float
    bottleneck: str


# What stands between malloc and free; each replaces what malloc answered by what free is given.
ANOTHER, ITS_OWN = "\tmovq\t(%rsp), %rdi", "\tmovq\t%rax, %rdi"


def as_source(path: list[Instruction]) -> list[str]:
    """A walked path as source for an assembler: jumps lead to one label, and are not taken."""
    lines = []
    for instruction in path:
        operands = re.sub(r"\s*[<#].*", "", instruction.operands)
        is_jump = instruction.mnemonic.startswith("j")
        lines.append(f"\t{instruction.mnemonic}\t{'1f' if is_jump else operands}")
    return lines


def pair(between: str) -> list[str]:
    """The body of the loop."""
    listing, table = disassemble(), symbols()
    entry_points = set(table.values())
    malloc, free = (
        as_source(hit_path(listing, table[name], entry_points)) for name in ("malloc", "free")
    )
    return ["\tmovl\t$64, %edi", *malloc, between, *free, "1:"]


def simulate(body: list[str], processor: str) -> Found:
    """Runs llvm-mca."""
    command = ["llvm-mca", "-mtriple=x86_64-linux-gnu", f"-mcpu={processor}"]
    command += [f"-iterations={ITERATIONS}", "-bottleneck-analysis", "-"]
    done = subprocess.run(
        command, input="\n".join(body) + "\n", capture_output=True, text=True, check=True
    )
    totals = dict(re.findall(r"^(Total \w+):\s+(\d+)$", done.stdout, re.MULTILINE))
    return Found(
        int(totals["Total Cycles"]) / ITERATIONS,
        int(totals["Total uOps"]) / ITERATIONS,
        bottleneck(done.stdout),
    )


def bottleneck(text: str) -> str:
    """The cause that delays most cycles, and of resources the one that is short most often."""
    shares = {
        name: float(share)
        for name, share in re.findall(
            r"^\s*-?\s*(\S[^\[\n]*?):?\s+\[ ([\d.]+)% \]$", text, re.MULTILINE
        )
    }
    kinds = ("Resource Pressure", "Register Dependencies", "Memory Dependencies")
    known = {name: shares.pop(name) for name in kinds if name in shares}
    if not known:
        return "none named"
    units = {name: share for name, share in shares.items() if " " not in name}
    said = [f"{name.lower()} {share:.0f} %" for name, share in known.items() if share >= 1]
    if units:
        most = max(units, key=lambda name: units[name])
        said.append(f"most wanted {most} {units[most]:.0f} %")
    return ", ".join(said)


def version() -> int:
    """The major version of llvm-mca."""
    said = subprocess.run(["llvm-mca", "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"LLVM version (\d+)", said.stdout)
    return int(found[1]) if found else 0


def fault(golden: Golden, found: Found, waiting: Found) -> str:
    """What is wrong with a figure, or ""."""
    was = (golden.cycles, golden.waiting, golden.micro_operations)
    now = (found.cycles, waiting.cycles, found.micro_operations)
    if all(abs(new / old - 1) <= TOLERANCE for old, new in zip(was, now, strict=True)):
        return ""
    old, new = (" · ".join(f"{figure:.1f}" for figure in side) for side in (was, now))
    return (
        f"cycles · of its own object · micro-operations were {old} and are {new}: if that is meant, it"
        " belongs into GOLDEN, and the commit says what it pays for"
    )


def main() -> int:
    """Prints the table; 1 if a figure is another than the golden one."""
    shows = "--show" in sys.argv[1:]
    if shutil.which("llvm-mca") is None:
        print("skip: llvm-mca (Debian's package llvm) is not installed")
        return SKIPPED
    if not LIBRARY.exists():
        print(f"FAIL no library at {LIBRARY}")
        return 1
    if (
        "x86-64"
        not in subprocess.run(["objdump", "-f", LIBRARY], capture_output=True, text=True).stdout
    ):
        print("skip: the figures are those of x86-64")
        return SKIPPED
    another, its_own = pair(ANOTHER), pair(ITS_OWN)
    print(
        f"{len(another) - 3} instructions in a pair; llvm-mca {version()}; cycles of a pair that frees"
    )
    print(f"{'':15} another   its own  micro-ops  what delays the first, share of cycles")
    faults = []
    for processor, golden in GOLDEN.items():
        found, waiting = simulate(another, processor), simulate(its_own, processor)
        columns = f"{golden.title:15} {found.cycles:7.1f} {waiting.cycles:9.1f}"
        print(f"{columns} {found.micro_operations:10.0f}  {found.bottleneck}")
        wrong = "" if shows else fault(golden, found, waiting)
        faults += [f"FAIL {golden.title}: {wrong}"] if wrong else []
    if shows:
        return 0
    if version() != LLVM:
        print(f"skip: the golden figures are of the models of LLVM {LLVM}, this is {version()}")
        return SKIPPED
    print("\n".join(faults) or f"ok   all within {TOLERANCE:.0%} of the golden figures")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
