#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the misuse programs: one fault each, and the library has to say so before the call returns.

A program prints `pointer 0x…` right before the faulty call and `survived` after it. What has
to happen instead: SIGABRT, and on standard error exactly one line that begins with
`brimful: <fault>: <call>(<pointer>`. Every case runs with both front ends; cases of the hardened
tier (double frees whose first free may still be in another context's books, or that race) run only
there.
Faults with guarded objects (guards:1) end in more lines, with stacks, and those that a page without
access stops end with SIGSEGV at the instruction itself.
Besides: right programs with wrong options get one warning and go on.

Environment: BRIMFUL_LIB (default build/release/libbrimful.so). The programs are compiled here,
into a temporary folder, with the compiler's own opinion about such code switched off.

    tests/misuse/run.py [NAME…]      a NAME selects the programs that contain it
"""

from __future__ import annotations

import argparse
import enum
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = Path(os.environ.get("BRIMFUL_ROOT", HERE.parents[1]))
LIBRARY = Path(os.environ.get("BRIMFUL_LIB", ROOT / "build/release/libbrimful.so")).resolve()
ARCHIVE = LIBRARY.parent / "libbrimful.a"
FRONT_ENDS = ("percpu", "thread")
COMPILE = ["cc", "-std=gnu11", "-O1", "-g", "-fno-builtin", "-Wall", "-Wextra", "-Werror"]
COMPILE += ["-I", str(ROOT / "include")]
COMPILE += ["-Wno-use-after-free", "-Wno-free-nonheap-object", "-Wno-unused-result", "-pthread"]
TIME_LIMIT_S = 60

DOUBLE = "double free"
INTERIOR = "interior pointer"
FOREIGN = "foreign pointer"
WRONG_SIZE = "wrong size"
# A pointer that is neither multiple of 16 nor start of an object may be called either.
ODD = "(?:interior|misaligned) pointer"
ODD_FOREIGN = "(?:foreign|misaligned) pointer"
# Memory of the heap's own range that was never handed out.
NEVER = "(?:double free|foreign pointer)"
# Questions about, and resizing of, an object that was freed.
FREED = "(?:double free|use after free)"
OVERFLOW = "buffer overflow"
LATE_WRITE = "use after free"
# A block or a handle of a heap that was destroyed.
DESTROYED = "use after destroy"
NO_HEAP = "foreign heap"

# Sizes that take different ways: small classes, the last class, whole pages, runs, mapped blocks.
SIZES = (1, 16, 64, 100, 256, 1000, 4096, 32768, 32769, 65536, 100000, 1 << 20, 5 << 20, 1 << 30)
SOME = (64, 3000, 32768, 200000, 1 << 30)
SMALL = (16, 64, 3000, 32768)


class Link(enum.Enum):
    """How a program comes to the library."""

    PRELOADED = "preloaded"
    STATIC = "static"
    ARCHIVE = "archive"  # a dynamic program with the library in it


@dataclass(frozen=True)
class Case:
    """One run of one program: what it is given and what has to be said."""

    program: str
    arguments: tuple[int | str, ...]
    fault: str
    call: str = "free"
    conf: str = ""
    front_ends: tuple[str, ...] = FRONT_ENDS

    def title(self) -> str:
        """The command, with the options it needs."""
        words = " ".join([self.program, *map(str, self.arguments)])
        return f"{words} [{self.conf}]" if self.conf else words


def all_cases() -> list[Case]:
    """The table of faults."""
    cases = [Case("double_free", (size,), DOUBLE) for size in SIZES]
    cases += [Case("double_free_interleaved", (size,), DOUBLE) for size in SIZES[:-1]]
    for size in (16, 64, 1000, 32768, 200000, 1 << 20):
        cases += [Case("double_free_after_release", (size, trim), DOUBLE) for trim in (0, 1)]
    for size in SOME:
        cases += [
            Case("double_free_second_by_thread", (size,), DOUBLE),
            Case("double_free_thread_gone", (size,), DOUBLE),
            Case("double_free_remote_twice", (size,), DOUBLE),
            Case("double_free_calloc", (size,), DOUBLE),
            Case("double_free_reused", (size,), DOUBLE),
            Case("double_free_in_child", (size,), DOUBLE),
            Case("double_free_sized", (size,), DOUBLE),
            # A size that names the object's class goes on as a free, so the report may say so.
            Case("double_free_by_free_sized", (size,), DOUBLE, "(?:free_sized|free)"),
            Case("double_delete", (size,), DOUBLE, "(?:free|operator delete)"),
            Case("realloc_of_freed", (size, 128), FREED, "realloc"),
            Case("realloc_of_freed", (size, 300000), FREED, "realloc"),
            Case("realloc_to_zero_twice", (size,), FREED, "(?:realloc|free)"),
            Case("double_free_remote_then_owner", (size,), DOUBLE, conf="tier:hardened"),
            Case("double_free_remote_alive", (size,), DOUBLE, conf="tier:hardened"),
        ]
    # Two frees at one moment: of blocks without a slab always, of objects in the hardened tier.
    for size in SOME:
        conf = "tier:hardened" if size <= 32768 else ""
        cases.append(Case("double_free_race", (size,), DOUBLE, conf=conf))
    # The end of a thread flushes its books, so the default tier sees this one too, per thread.
    for size in SMALL:
        cases.append(Case("double_free_remote_then_owner", (size,), DOUBLE, front_ends=("thread",)))
    for alignment in (16, 64, 4096, 65536, 1 << 21, 1 << 30):
        cases += [Case("double_free_aligned", (alignment, size), DOUBLE) for size in (100, 100000)]
    for old, new in ((64, 5000), (3000, 200000), (32768, 1 << 20)):
        cases.append(Case("double_free_moved", (old, new), DOUBLE))

    cases.append(Case("free_stack", (), FOREIGN))
    cases.append(Case("free_text", (), FOREIGN))
    cases += [Case("free_data", (kind,), FOREIGN) for kind in ("data", "constant", "library")]
    for number in (
        "0xdeadbeef000",
        "0x10",
        "0x7fffffff0000",
        "0xdead000000000000",
        str(2**64 - 16),
    ):
        cases += [Case("free_garbage", (number, use), FOREIGN) for use in (0, 2)]
    cases += [Case("free_garbage", (number,), ODD_FOREIGN) for number in (1, 8, 2**64 - 1)]
    cases += [Case("free_unmapped", (unmapped,), FOREIGN) for unmapped in (0, 1)]
    for distance in (1 << 30, 1 << 28, 1 << 24, 1 << 20, 65536 * 5):
        cases.append(Case("free_window", (64, distance), NEVER))
    # A neighbour in the same slab that was never handed out, and one that can't be one.
    cases.append(Case("free_window", (64, 64 * 40), DOUBLE))
    cases.append(Case("free_window", (64, 64 * 40 + 16), INTERIOR))

    for offset, fault in ((8, ODD), (16, INTERIOR), (1, ODD), (48, INTERIOR), (63, ODD)):
        cases.append(Case("free_interior", (64, offset), fault))
    for size, offset in ((48, 16), (1000, 16), (1000, 512), (32768, 16), (32768, 4096)):
        cases.append(Case("free_interior", (size, offset), INTERIOR))
    for size in (40000, 200000, 5 << 20, 1 << 30):
        for offset in (16, 4096, 32768):
            cases.append(Case("free_interior", (size, offset), INTERIOR))
        cases.append(Case("free_interior", (size, 1), ODD))
    for size, offset in ((200000, 65536), (200000, 131072), (5 << 20, 1 << 20), (1 << 30, 1 << 21)):
        cases.append(Case("free_interior", (size, offset), INTERIOR))
    for alignment, size, offset in ((64, 200, 64), (4096, 8192, 4096), (1 << 21, 1 << 22, 1 << 21)):
        cases.append(Case("free_interior_aligned", (alignment, size, offset), INTERIOR))

    for size, claimed in (
        (64, 100),
        (64, 30),
        (1000, 64),
        (32768, 100),
        (64, 200000),
        (200000, 64),
    ):
        cases.append(Case("free_sized_wrong", (size, claimed), WRONG_SIZE, "free_sized"))
    cases.append(Case("free_sized_wrong", (1 << 20, 5 << 20), WRONG_SIZE, "free_sized"))
    for size, claimed in ((64, 4000), (4000, 64), (200000, 64)):
        cases.append(
            Case(
                "sized_delete_wrong", (size, claimed), WRONG_SIZE, "(?:free_sized|operator delete)"
            )
        )
    cases.append(
        Case(
            "free_aligned_sized_wrong",
            (64, 128, 1000),
            WRONG_SIZE,
            "(?:free_aligned_sized|free_sized)",
        )
    )

    for kind, fault in (("stack", FOREIGN), ("garbage", FOREIGN), ("interior", INTERIOR)):
        cases.append(Case("usable_size_bad", (kind,), fault, "malloc_usable_size"))
        cases.append(Case("realloc_bad", (kind,), fault, "realloc"))
    # The default tier answers for any object of a slab, live or not: docs/design/0025.
    cases.append(
        Case("usable_size_bad", ("freed",), FREED, "malloc_usable_size", conf="tier:hardened")
    )
    cases.append(Case("realloc_bad", ("data",), FOREIGN, "realloc"))
    return cases + heap_cases() + object_cases()


def object_cases() -> list[Case]:
    """Writes past the end and after free, which canary:1 and zero:1 find in the objects."""
    cases = []
    for number, size in enumerate((1, 24, 64, 1000, 4096, 28000)):
        for by_other in (0, 1):
            conf = ("canary:1", "canary:1,zero:1,random:1,quarantine:2", "tier:hardened,canary:1")[
                number % 3
            ]
            for behind in (0, 7):
                cases.append(Case("object_overflow", (size, behind, by_other), OVERFLOW, conf=conf))
            offset = (number * 7) % size
            conf = ("zero:1", "zero:1,canary:1")[number % 2]
            cases.append(
                Case("object_late_write", (size, offset, by_other), LATE_WRITE, "malloc", conf=conf)
            )
    return cases


def heap_cases() -> list[Case]:
    """Faults with heaps of the program (include/brimful/heap.h)."""
    cases = [
        Case("heap_double_free", (size, how), DOUBLE, conf=conf)
        for size in SOME
        for how in (range(4) if size <= 32768 else range(3))
        for conf in ("", "tier:hardened")
    ]
    calls = ("free", "realloc", "malloc_usable_size", "free", "free")
    for size in (16, 64, 3000, 32768, 40000, 200000, 5 << 20):
        cases += [
            Case("heap_use_after_destroy", (size, how), DESTROYED, call, conf="tier:hardened")
            for how, call in enumerate(calls)
        ]
        # Memory that nobody has taken since: the default tier finds it, too, under another name.
        cases.append(Case("heap_use_after_destroy", (size, 0), DOUBLE))
    # Handles are looked at in every tier.
    for call in ("malloc", "large", "realloc", "destroy", "set_current", "set_limit"):
        name = "brimful_heap_" + ("malloc" if call == "large" else call)
        for conf in ("", "tier:hardened"):
            for kind in ("destroyed", "replaced"):
                cases.append(Case("heap_handle_bad", (call, kind), DESTROYED, name, conf=conf))
        for kind in ("garbage", "address") + (
            () if call in ("destroy", "set_current") else ("null",)
        ):
            cases.append(Case("heap_handle_bad", (call, kind), NO_HEAP, name))
    for size, offset in ((64, 16), (1000, 512), (32768, 4096), (200000, 65536)):
        cases.append(Case("heap_interior", (size, offset), INTERIOR))
    return cases


class Runner:
    """Compiles programs on demand, runs them and counts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.passed = 0
        self.failed = 0
        self.skipped = 0

    def program(self, name: str, link: Link = Link.PRELOADED) -> Path:
        """The compiled program of this name."""
        path = self.folder / f"{name}.{link.value}"
        if not path.exists():
            command = [*COMPILE, "-o", str(path), str(HERE / f"{name}.c")]
            if link is not Link.PRELOADED:
                command.append(str(ARCHIVE))
            if link is Link.STATIC:
                # What glibc's ld says of dlopen() in static programs is not about the program.
                command += ["-static", "-Wl,--no-warnings"]
            subprocess.run(command, check=True)
        return path

    def run(
        self,
        command: list[str],
        conf: str | None,
        extra: dict[str, str] | None = None,
        preload: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command under the library in an environment with nothing else of brimful's."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BRIMFUL_")}
        if preload:
            environment["LD_PRELOAD"] = str(LIBRARY)
        if conf is not None:
            environment["BRIMFUL_CONF"] = conf
        environment.update(extra or {})

        def no_core() -> None:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        try:
            return subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIME_LIMIT_S,
                check=False,
                preexec_fn=no_core,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"no end after {TIME_LIMIT_S} s")

    def record(self, title: str, faults: list[str], done: subprocess.CompletedProcess[str]) -> None:
        """Counts one run and prints what was wrong with it."""
        if not faults:
            self.passed += 1
            return
        self.failed += 1
        print(f"FAIL {title}: " + "; ".join(faults))
        print(f"     exit {done.returncode}, stdout {done.stdout!r}, stderr {done.stderr[:600]!r}")
        sys.stdout.flush()


def check_case(runner: Runner, case: Case, front_end: str) -> None:
    """Runs one case with one front end."""
    # Of a guarded object, which one in many thousand is, more is said: check_guarded().
    conf = ",".join(filter(None, [f"front_end:{front_end}", "guards:0", case.conf]))
    command = [str(runner.program(case.program)), *map(str, case.arguments)]
    done = runner.run(command, conf)
    faults = []
    if done.returncode != -signal.SIGABRT:
        faults.append(f"ended with {done.returncode}, not SIGABRT")
    announced = re.fullmatch(r"pointer (0x[0-9a-f]+)\n", done.stdout)
    if announced is None:
        faults.append("did not stop at the faulty call")
    lines = done.stderr.splitlines()
    if len(lines) != 1:
        faults.append(f"{len(lines)} lines on standard error")
    elif announced is not None:
        expected = rf"brimful: {case.fault}: {case.call}\({announced[1]}[,)]"
        if re.match(expected, lines[0]) is None:
            faults.append(f"message does not match {expected}")
    runner.record(f"{case.title()} ({front_end})", faults, done)


def kind_of(line: str) -> str:
    """The fault that a report names."""
    return line.removeprefix("brimful: ").split(":")[0]


KINDS = (
    "double free",
    "interior pointer",
    "misaligned pointer",
    "foreign pointer",
    "wrong size",
    "use after free",
    "buffer overflow",
    "buffer underflow",
    "use after destroy",
    "foreign heap",
)


def check_survived(runner: Runner, case: Case, front_end: str, answer: str) -> None:
    """One case with misuse:warn, or misuse:hook and the hook's answer: the program goes on."""
    mode = "warn" if answer == "" else "hook"
    conf = f"front_end:{front_end},guards:0,misuse:{mode}"
    conf = ",".join(filter(None, [conf, case.conf]))
    command = [str(runner.program(case.program)), *map(str, case.arguments)]
    done = runner.run(command, conf, {"MISUSE_HOOK": answer} if answer else None)
    faults = []
    goes_on = 5 if case.program == "double_free_in_child" else 0  # its parent says so of the child
    if done.returncode != (-signal.SIGABRT if answer == "abort" else goes_on):
        faults.append(f"ended with {done.returncode}")
    hook = r"hook (?P<kind>\d+) .* 0x[0-9a-f]+: (?P<said>.*)\n" if answer else ""
    end = "" if answer == "abort" else r"survived\n"
    told = re.fullmatch(rf"pointer (?P<at>0x[0-9a-f]+)\n{hook}{end}", done.stdout)
    lines = done.stderr.splitlines()
    if told is None:
        faults.append("did not go on as it should")
    if len(lines) != (0 if answer == "ignore" else 1):
        faults.append(f"{len(lines)} lines on standard error")
    if told is not None and answer:
        lines.insert(0, "brimful: " + told["said"])
        if len(lines) > 1 and lines[0] != lines[1]:
            faults.append("the hook was told something else than was printed")
        if kind_of(lines[0]) != KINDS[int(told["kind"])]:
            faults.append("a kind that is not the one of its line")
    if told is not None and lines:
        expected = rf"brimful: {case.fault}: {case.call}\({told['at']}[,)]"
        if re.match(expected, lines[0]) is None:
            faults.append(f"message does not match {expected}")
    runner.record(f"{case.title()} ({front_end}, misuse:{mode} {answer})", faults, done)


# Programs that commit one fault many times in forked children and check by themselves: their names,
# arguments and options.
SELF_CHECKING = (
    ("double_free_all_sizes", (), ""),
    ("double_free_all_sizes", (), "tier:hardened"),
    ("double_free_race_often", (40000, 200000, 5 << 20, 1 << 30), ""),
    ("double_free_race_often", (16, 64, 3000, 32768, 40000, 200000), "tier:hardened"),
)


def check_by_itself(
    runner: Runner, program: str, arguments: tuple[int, ...], conf: str, front_end: str
) -> None:
    """A program that reports its own misses."""
    conf = ",".join(filter(None, [f"front_end:{front_end}", "guards:0", conf]))
    done = runner.run([str(runner.program(program)), *map(str, arguments)], conf)
    faults = [] if done.returncode == 0 else ["not every double free was reported"]
    runner.record(f"{program} [{conf}]", faults, done)


@dataclass(frozen=True)
class GuardedCase:
    """One fault with a guarded object: what has to be said, and which functions the stacks name."""

    program: str
    arguments: tuple[int | str, ...]
    fault: str  # what stands before the address
    place: str  # what stands behind it
    ends_by: signal.Signals
    calls: tuple[str, ...]  # one in each stack: of the access or call, the allocation, the free

    def title(self) -> str:
        """The command."""
        return " ".join([self.program, *map(str, self.arguments)])


def guarded_cases() -> list[GuardedCase]:
    """The table of faults with guarded objects."""
    end, start, segv = "guarded_at_end|main", "guarded_at_start|main", signal.SIGSEGV
    cases = []
    for distance in (0, 7, 15, 4095):
        count = f"{distance} bytes? behind the end of the 64-byte object 0x"
        for how, words in (("write", "write to "), ("read", "read from ")):
            given = ("overflow", how, 64, distance)
            calls: tuple[str, ...] = (f"{how}_at", end)
            cases.append(
                GuardedCase(
                    "guarded_access", given, "buffer overflow: " + words, count, segv, calls
                )
            )
    for distance in (1, 8, 16, 2000):
        count = f"{distance} bytes? before the 96-byte object 0x"
        given = ("underflow", "write", 96, distance)
        fault = "buffer underflow: write to "
        cases.append(GuardedCase("guarded_access", given, fault, count, segv, ("write_at", start)))
    inside = r"{} bytes? into the {}-byte object 0x[0-9a-f]+ to 0x[0-9a-f]+, which is free"
    for what, free in (("freed", "main"), ("freed_by_thread", "free_it")):
        for how, words in (("write", "write to "), ("read", "read from ")):
            for size, distance in ((16, 0), (1024, 1000), (4096, 4095)):
                given = (what, how, size, distance)
                place = inside.format(distance, size)
                fault = "use after free: " + words
                calls = (f"{how}_at", end, free)
                cases.append(GuardedCase("guarded_access", given, fault, place, segv, calls))
    for what in ("in_thread", "in_child"):
        given = (what, "write", 64, 0)
        place = "0 bytes behind the end of the 64-byte object 0x"
        fault = "buffer overflow: write to "
        cases.append(GuardedCase("guarded_access", given, fault, place, segv, ("write_at", end)))

    abort, call = signal.SIGABRT, "guarded_free"
    for size, distance in ((61, 0), (61, 2), (50, 13), (1, 14), (61, 100), (61, 3000)):
        place = f": the byte at 0x[0-9a-f]+ was written to, {distance} bytes? behind the end of "
        fault = r"buffer overflow: free\("
        cases.append(
            GuardedCase(call, ("behind", size, distance), fault, place, abort, ("main", end))
        )
    for distance in (1, 9, 500):
        place = f": the byte at 0x[0-9a-f]+ was written to, {distance} bytes? before "
        fault = r"buffer underflow: free\("
        cases.append(
            GuardedCase(call, ("before", 64, distance), fault, place, abort, ("main", end))
        )
    for what, fault, place, stacks in (
        ("twice", "double free: free", ": the 61-byte object .* is already free", 3),
        ("interior", "interior pointer: free", ": 16 bytes into the 61-byte object", 2),
        ("misaligned", "misaligned pointer: free", ": 8 bytes into the 61-byte object", 2),
        ("realloc", "use after free: realloc", ": the 61-byte object .* is already free", 3),
        ("usable", "use after free: malloc_usable_size", ": the 61-byte object .* is", 3),
    ):
        cases.append(GuardedCase(call, (what, 61), fault + r"\(", place, abort, ("main",) * stacks))
    return cases


def stacks_of(lines: list[str], program: Path) -> list[str]:
    """Of each stack of a report the functions of the program that it names, by addr2line."""
    stacks: list[list[str]] = []
    for line in lines:
        if line.endswith(":"):
            stacks.append([])
        place = re.fullmatch(r"brimful:     #\d+ (.*)\+(0x[0-9a-f]+)", line)
        if place is not None and stacks and Path(place[1]) == program:
            stacks[-1].append(place[2])
    named = []
    for addresses in stacks:
        command = ["addr2line", "-f", "-i", "-e", str(program), *addresses]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        named.append(" ".join(done.stdout.split("\n")[0::2]))
    return named


def check_guarded_case(
    runner: Runner, case: GuardedCase, front_end: str, static: bool, warns: bool = False
) -> None:
    """Runs one case: the line, how the process ends or goes on, and whom the stacks name."""
    program = runner.program(case.program, Link.STATIC if static else Link.PRELOADED)
    command = [str(program), *map(str, case.arguments)]
    conf = f"front_end:{front_end},guards:1" + (",misuse:warn" if warns else "")
    done = runner.run(command, conf, preload=not static)
    faults = []
    if done.returncode != (0 if warns else -case.ends_by):
        faults.append(f"ended with {done.returncode}, not {case.ends_by.name}")
    end = r"survived\n" if warns else ""
    announced = re.search(rf"pointer (0x[0-9a-f]+)\n{end}\Z", done.stdout)
    lines = done.stderr.splitlines()
    if announced is None:
        faults.append("did not go on" if warns else "did not stop at the faulty access")
    else:
        expected = rf"brimful: {case.fault}{announced[1]}[),]*[: ]+{case.place.lstrip(': ')}"
        if not lines or re.match(expected, lines[0]) is None:
            faults.append(f"message does not match {expected}")
    stacks = stacks_of(lines, program.resolve())
    if len(stacks) != len(case.calls):
        faults.append(f"{len(stacks)} stacks, not {len(case.calls)}")
    for functions, wanted in zip(stacks, case.calls, strict=False):
        if re.search(rf"\b(?:{wanted})\b", functions) is None:
            faults.append(f"a stack of [{functions}] without {wanted}")
    kind = "static" if static else "preloaded"
    runner.record(f"{case.title()} ({conf}, {kind})", faults, done)


def check_stacks(runner: Runner) -> None:
    """Reports say from where, and of samples who allocated and freed; so does a debugger."""
    # A program, what it is linked with, its arguments, options, and how many stacks have to name main.
    preloaded, static, archive = Link.PRELOADED, Link.STATIC, Link.ARCHIVE
    for program, link, arguments, conf, count in (
        ("double_free", preloaded, (64,), "report:stack", 1),
        ("double_free", preloaded, (1 << 20,), "report:stack", 1),
        ("free_interior", preloaded, (64, 16), "report:stack", 1),
        ("double_free", preloaded, (64,), "report:stack,tier:hardened", 1),
        ("double_free", static, (64,), "report:stack", 1),
        ("double_free", archive, (64,), "report:stack", 1),
        ("double_free", preloaded, (64,), "prof:1", 3),
        ("double_free", preloaded, (64,), "prof:1,tier:hardened", 3),
        ("double_free", archive, (3000,), "prof:1", 3),
        ("realloc_of_freed", preloaded, (64, 128), "prof:1", 3),
        ("free_interior", preloaded, (64, 16), "prof:1", 2),
        ("free_interior", preloaded, (200000, 65536), "prof:1", 2),
    ):
        if link is not preloaded and not ARCHIVE.exists():
            continue
        path = runner.program(program, link)
        command = [str(path), *map(str, arguments)]
        done = runner.run(command, f"guards:0,{conf}", preload=link is preloaded)
        stacks = stacks_of(done.stderr.splitlines(), path.resolve())
        faults = []
        if len(stacks) != count or any("main" not in stack.split() for stack in stacks):
            faults.append(f"stacks {stacks}")
        if done.returncode != -signal.SIGABRT:
            faults.append("no SIGABRT")
        runner.record(f"stacks of {program} {arguments} {conf} ({link.value})", faults, done)
    if shutil.which("gdb") is None:
        runner.skipped += 1
        print("skip frames at the abort: gdb is not installed")
        return
    for program, words, conf in (
        ("double_free", "64", "guards:0"),
        ("guarded_access", "freed write 64 8", "guards:1"),
    ):
        debugger = ["gdb", "-nx", "-batch", "-ex", f"set environment LD_PRELOAD {LIBRARY}"]
        debugger += ["-ex", f"set environment BRIMFUL_CONF {conf}", "-ex", "run", "-ex", "bt"]
        debugger += ["--args", str(runner.program(program)), *words.split()]
        done = runner.run(debugger, None, preload=False)
        if "ptrace" in done.stderr and "not permitted" in done.stderr:
            runner.skipped += 1
            print("skip frames at the abort: gdb may not trace")
            return
        faults = [] if re.search(r"^#\d+ .*\bmain \(", done.stdout, re.M) else ["no frame of main"]
        runner.record(f"gdb, {program} {conf}", faults, done)
    check_core(runner)
    for front_end in FRONT_ENDS:
        debugger = ["gdb", "-nx", "-batch", "-ex", f"set environment LD_PRELOAD {LIBRARY}"]
        debugger += ["-ex", f"set environment BRIMFUL_CONF guards:0,front_end:{front_end}"]
        debugger += ["-x", str(HERE / "frames_gdb.py"), "--args", str(runner.program("frames"))]
        done = runner.run(debugger, None, preload=False)
        told = re.search(r"^frames: (\d+) instructions in assembly, 0 lost$", done.stdout, re.M)
        faults = [] if told is not None and int(told[1]) >= LEAST_INSTRUCTIONS else ["not all seen"]
        runner.record(f"gdb, frames of the assembly ({front_end})", faults, done)


# Each step aborts a section: only beginnings are seen, and what lies before and behind, whole.
LEAST_INSTRUCTIONS = 30


def check_core(runner: Runner) -> None:
    """A core that was left by a report shows the program's frames right above the library's."""
    core = runner.folder / "core"
    path = str(runner.program("double_free_reused"))
    debugger = ["gdb", "-nx", "-batch", "-ex", f"set environment LD_PRELOAD {LIBRARY}"]
    # gdb asks the kernel about each page of the address space, so there is little of it.
    debugger += ["-ex", "set environment BRIMFUL_CONF guards:0,reserve:64M", "-ex", "run"]
    debugger += ["-ex", f"generate-core-file {core}", "--args", path, "64"]
    runner.run(debugger, None, preload=False)
    done = runner.run(["gdb", "-nx", "-batch", "-ex", "bt", path, str(core)], None, preload=False)
    frames = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?([\w:~<>() ]+?) \(", done.stdout, re.M)
    own = [n for n, name in enumerate(frames) if name.startswith("brimful")]
    faults = []
    if not own or frames[own[-1] + 1 :] != ["main"]:
        faults.append(f"frames {frames}")
    runner.record("gdb, a core", faults, done)


def check_sealed(runner: Runner) -> None:
    """What guard:N makes inaccessible ends the program at the access."""
    for front_end in FRONT_ENDS:
        for words in ("object_zero_size", *(f"object_behind_slab {size}" for size in SMALL)):
            program, *arguments = words.split()
            done = runner.run(
                [str(runner.program(program)), *arguments], f"front_end:{front_end},guard:1"
            )
            right = done.returncode == -signal.SIGSEGV and done.stdout == "reads\n"
            runner.record(f"{words} ({front_end})", [] if right else ["no SIGSEGV"], done)


# Objects of the check of the rate: how many are guarded is within 6 standard deviations.
RATE_OBJECTS = 20000


def check_guarded(runner: Runner, wants_all: bool) -> None:
    """Faults with guarded objects, the program's own handlers, and how many objects are guarded."""
    for number, case in enumerate(guarded_cases()):
        # Each case both ways over the two front ends.
        for front_end, static in zip(FRONT_ENDS, (number % 2 == 0, number % 2 == 1), strict=True):
            check_guarded_case(runner, case, front_end, static and ARCHIVE.exists())
            if wants_all and ARCHIVE.exists():
                check_guarded_case(runner, case, front_end, not static)
        check_guarded_case(runner, case, FRONT_ENDS[number % 2], False, warns=True)
    for front_end in FRONT_ENDS:
        done = runner.run(
            [str(runner.program("guarded_handlers"))], f"front_end:{front_end},guards:1"
        )
        faults = [] if done.returncode == 0 else ["a handler of the program is not what it was"]
        runner.record(f"guarded_handlers ({front_end})", faults, done)
        for one_in in (0, 1, 10, 100):
            command = [str(runner.program("guarded_rate")), str(RATE_OBJECTS)]
            done = runner.run(command, f"front_end:{front_end},guards:{one_in}")
            chance = 1 / one_in if one_in else 0
            mean = RATE_OBJECTS * chance
            spread = 6 * math.sqrt(mean * (1 - chance))
            got = int(done.stdout) if done.stdout.strip().isdigit() else -1
            faults = [] if abs(got - mean) <= spread else [f"{got} guarded, not {mean} ± {spread}"]
            runner.record(f"guarded_rate guards:{one_in} ({front_end})", faults, done)


# Options as the user may get them wrong: (conf, what the one warning must match).
WRONG_OPTIONS = (
    ("purge_delay:5", r'brimful: unknown option "purge_delay": did you mean "purge_delay_ms"\?'),
    ("front_ent:thread", r'brimful: unknown option "front_ent": did you mean "front_end"\?'),
    ("verbos:1", r'brimful: unknown option "verbos": did you mean "verbose"\?'),
    ("tire:hardened", r'brimful: unknown option "tire": did you mean "tier"\?'),
    ("front_end:banana", r"brimful: .*front_end.*banana.*"),
    ("purge_delay_ms:soon", r"brimful: .*purge_delay_ms.*soon.*"),
    ("purge_delay_ms:-2", r"brimful: .*purge_delay_ms.*-2.*"),
    ("purge_delay_ms:3600001", r"brimful: .*purge_delay_ms.*3600001.*"),
    ("purge_delay_ms:99999999999999999999", r"brimful: .*purge_delay_ms.*"),
    ("purge_delay_ms:", r"brimful: .*purge_delay_ms.*"),
    ("verbose:2", r"brimful: .*verbose.*2.*"),
    ("reserve:12Q", r"brimful: .*reserve.*12Q.*"),
    ("limit:some", r"brimful: .*limit.*some.*: it takes auto or 0 to .*"),
    ("reserve:auto", r"brimful: .*reserve.*auto.*"),
    ("tier:", r"brimful: .*tier.*"),
)
# Options that are right, and must cost no word.
RIGHT_OPTIONS = (
    "",
    "front_end:auto",
    "front_end:percpu,verbose:0",
    "front_end:thread,purge_delay_ms:0,tier:hardened",
    "purge_delay_ms:-1",
    "purge_delay_ms:3600000",
    "reserve:1G,on_exhaustion:grow",
    "reserve:67108864,on_exhaustion:null",
    "reserve:64M,on_exhaustion:hook",
    "reserve:64M,on_exhaustion:abort",
    "limit:2G,soft_limit:1G",
    "limit:auto,soft_limit:auto",
)


def check_options(runner: Runner) -> None:
    """Wrong options get one warning; the program goes on in every case."""
    probe = [str(runner.program("option_probe"))]

    def check(title: str, pattern: str | None, done: subprocess.CompletedProcess[str]) -> None:
        faults = []
        if done.returncode != 0 or done.stdout != "done\n":
            faults.append("the program did not go on")
        lines = done.stderr.splitlines()
        if pattern is None and lines:
            faults.append("speaks without need")
        if pattern is not None and (len(lines) != 1 or re.fullmatch(pattern, lines[0]) is None):
            faults.append(f"not one line that matches {pattern}")
        runner.record(f"options: {title}", faults, done)

    for conf, pattern in WRONG_OPTIONS:
        check(conf, pattern, runner.run(probe, conf))
    for conf in RIGHT_OPTIONS:
        check(conf, None, runner.run(probe, conf))
    check("no BRIMFUL_CONF", None, runner.run(probe, None))
    for name, value in (("PURGE_DELAY_MS", "50"), ("FRONT_END", "thread"), ("TIER", "hardened")):
        check(f"BRIMFUL_{name}={value}", None, runner.run(probe, None, {f"BRIMFUL_{name}": value}))
    check(
        "BRIMFUL_FRONT_END=banana",
        r"brimful: .*front_end.*banana.*",
        runner.run(probe, None, {"BRIMFUL_FRONT_END": "banana"}),
    )
    for front_end, words in (("percpu", "front end percpu"), ("thread", "front end thread")):
        check(
            f"verbose with {front_end}",
            rf"brimful: .*{words}.*",
            runner.run(probe, f"verbose:1,front_end:{front_end}"),
        )
    check(
        "BRIMFUL_FRONT_END wins over BRIMFUL_CONF",
        r"brimful: .*front end thread.*",
        runner.run(probe, "verbose:1,front_end:percpu", {"BRIMFUL_FRONT_END": "thread"}),
    )
    check(
        "without glibc's rseq registration",
        r"brimful: .*front end .*",
        runner.run(probe, "verbose:1", {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}),
    )
    # Nonsense of every shape: any number of warnings, but the program goes on.
    for conf in (",", ":", ":::", ",,,:,", "=", "a" * 10000, "verbose:" + "9" * 5000, "\n", "ä:ö"):
        done = runner.run(probe, conf)
        faults = []
        if done.returncode != 0 or done.stdout != "done\n":
            faults.append("the program did not go on")
        if any(not line.startswith("brimful: ") for line in done.stderr.splitlines() if line):
            faults.append("a line that does not say who speaks")
        runner.record(f"options: {conf[:30]!r}", faults if conf != "\n" else faults[:1], done)


def check_exhaustion(runner: Runner) -> None:
    """What happens when a reserve of 64 MiB is used up, as on_exhaustion says."""
    command = [str(runner.program("option_probe")), "exhaust"]

    def obtained(done: subprocess.CompletedProcess[str]) -> int:
        found = re.match(r"(\d+) MiB, errno (\d+)\ndone\n", done.stdout)
        return int(found[1]) if found is not None else -1

    done = runner.run(command, "reserve:64M,on_exhaustion:null")
    right = 16 <= obtained(done) <= 64 and "errno 12\n" in done.stdout and not done.stderr
    faults = [] if right else ["not NULL and ENOMEM within 64 MiB"]
    runner.record("on_exhaustion:null", faults, done)
    done = runner.run(command, "reserve:64M,on_exhaustion:grow")
    runner.record("on_exhaustion:grow", [] if obtained(done) == 256 else ["did not grow"], done)
    done = runner.run(command, "reserve:64M,on_exhaustion:abort")
    said = re.fullmatch(r"brimful: .*\n", done.stderr) is not None
    right = done.returncode == -signal.SIGABRT and said
    faults = [] if right else ["not one line and SIGABRT"]
    runner.record("on_exhaustion:abort", faults, done)


def check_secure_mode(runner: Runner) -> None:
    """A setuid program must not listen to its caller's options."""
    reason = ""
    if os.geteuid() != 0:
        reason = "needs root to make a program setuid"
    elif not ARCHIVE.exists():
        reason = f"needs {ARCHIVE.name}, because a setuid program ignores LD_PRELOAD"
    elif os.statvfs(runner.folder).f_flag & os.ST_NOSUID:
        reason = f"{runner.folder} is mounted nosuid"
    if reason:
        runner.skipped += 1
        print(f"skip options in secure mode: {reason}")
        return
    plain = runner.program("option_probe", Link.STATIC)
    secure = runner.folder / "option_probe.setuid"
    shutil.copy(plain, secure)
    os.chown(secure, 65534, 65534)
    secure.chmod(0o4755)
    runner.folder.chmod(0o755)
    conf = "verbose:1,purge_delay:5"
    done = runner.run([str(plain)], conf)
    faults = [] if len(done.stderr.splitlines()) == 2 else ["the options don't reach it at all"]
    runner.record("options of a static program", faults, done)
    done = runner.run([str(secure)], conf)
    faults = [] if done.stderr == "" and done.stdout == "done\n" else ["listens to its caller"]
    runner.record("options in secure mode are ignored", faults, done)


def main() -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only programs whose name contains one of these")
    names = parser.parse_args().names
    if not LIBRARY.exists():
        print(f"FAIL no library at {LIBRARY}")
        return 1

    def is_wanted(name: str) -> bool:
        return not names or any(part in name for part in names)

    with tempfile.TemporaryDirectory(prefix="brimful-misuse-") as folder:
        runner = Runner(Path(folder))
        for case in all_cases():
            for front_end in case.front_ends if is_wanted(case.program) else ():
                check_case(runner, case, front_end)
        for number, case in enumerate(all_cases() if is_wanted("survived") else ()):
            front_end = case.front_ends[number % len(case.front_ends)]
            check_survived(runner, case, front_end, "")
            if number % 4 == 0:
                answer = ("warn", "ignore", "abort")[number // 4 % 3]
                check_survived(runner, case, front_end, answer)
        for program, arguments, conf in SELF_CHECKING:
            for front_end in FRONT_ENDS if is_wanted(program) else ():
                check_by_itself(runner, program, arguments, conf, front_end)
        if is_wanted("guarded"):
            check_guarded(runner, "guarded" in names)
        if is_wanted("object"):
            check_sealed(runner)
        if is_wanted("stacks"):
            check_stacks(runner)
        if is_wanted("options"):
            check_options(runner)
            check_exhaustion(runner)
            check_secure_mode(runner)
    print(f"{runner.passed} passed, {runner.failed} failed, {runner.skipped} skipped")
    return 0 if runner.failed == 0 and runner.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
