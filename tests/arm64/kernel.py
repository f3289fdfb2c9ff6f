#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Boots Debian's kernels for 64-bit ARM in an emulated machine and runs the stress programs there.

User-mode emulation has no restartable sequences; a kernel has. So here both front ends run on a
real one, on two processors: the oracle, threads that are moved from processor to processor, aborts
forced at every instruction of every section, programs of tests/abi with the library preloaded, and
the unit tests. With 6.1 a context is a CPU's (cpu_id),
with 6.12 a number that is dense in the process (mm_cid); one 6.12 has pages of 16 KiB.

The emulator runs what one processor does in the order of the program: that nothing fails here is no
proof of the order of memory accesses (docs/design/0041).

The first file system is an archive in memory, of the programs, the cross compiler's C library and
tests/arm64/init.c. Needs qemu-system-aarch64, the cross compiler, build/arm64-release and -debug.

    tests/arm64/kernel.py [--quick] [--kernel 6.1,6.12,6.12-16k] [--only EXPRESSION] [--processors N]

Exit code: 0, 1 when a program failed, 77 when something that is needed is missing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import _cpio
import _kernels

HERE = Path(__file__).resolve().parent
ROOT = Path(os.environ.get("BRIMFUL_ROOT", HERE.parents[1]))
BUILD = ROOT / "build/arm64-release"
DEBUG = ROOT / "build/arm64-debug"
FOLDER = ROOT / "build/arm64"
SYSTEM = Path("/usr/aarch64-linux-gnu/lib")
LIBRARIES = ("ld-linux-aarch64.so.1", "libc.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libm.so.6")
EMULATOR = "qemu-system-aarch64"
COMPILER = "aarch64-linux-gnu-gcc"
FRONT_ENDS = ("percpu", "thread")
SECONDS_A_PROGRAM = 1200
SECONDS_TO_START = 240
# Programs of tests/abi that say something about the kernel or the page size: --quick leaves the others out.
ABI = (
    *("alignment", "errno_preserved", "huge_beside_large", "introspection", "large_reuse"),
    *("realloc_contents", "resident", "statistics", "thread_exit", "usable_size"),
)
# Their children are started by a shell, which this machine has not.
NEEDS_A_SHELL = ("fork_beside_libc", "spawn")
# They give a machine seconds for what takes an emulated one ten times as long.
TIMED = ("purge", "purge_burst", "purge_lightly", "signal_storm")


def all_abi() -> list[str]:
    """The names of the programs of tests/abi."""
    sources = [*(ROOT / "tests/abi").glob("*.c"), *(ROOT / "tests/abi").glob("*.cpp")]
    left_out = (*NEEDS_A_SHELL, *TIMED)
    return sorted(source.stem for source in sources if source.stem not in left_out)


def programs(is_quick: bool) -> dict[str, tuple[dict[str, str], list[str]]]:
    """By name: the environment and the command."""
    few = ["--ops", "20000" if is_quick else "1000000"]
    table: dict[str, tuple[dict[str, str], list[str]]] = {}
    if not is_quick:
        table["unit"] = ({}, ["/tests/unit_tests"])
    for front_end in FRONT_ENDS:
        conf = {"BRIMFUL_CONF": f"front_end:{front_end},verbose:1"}
        hard = {"BRIMFUL_CONF": f"front_end:{front_end},tier:hardened"}
        oracle = ["/tests/oracle_stress", "--threads", "6", "--no-self-test", *few]
        table[f"oracle.{front_end}"] = (conf, oracle)
        table[f"oracle.{front_end}.hardened"] = (hard, oracle)
        table[f"affinity.{front_end}"] = (conf, ["/tests/affinity_storm_stress", *few])
        # Five minutes, with a busy host. A program under a stepping parent is left out: 42 calls took as long.
        if not is_quick or front_end == "percpu":
            table[f"injection.{front_end}"] = (conf, ["/tests/rseq_injection_stress"])
        for name in ABI if is_quick else all_abi():
            preload = {"LD_PRELOAD": "/lib/libbrimful.so", "BRIMFUL_EXPECT": "1"}
            plain = {"BRIMFUL_CONF": f"front_end:{front_end}"}
            table[f"abi.{name}.{front_end}"] = ({**plain, **preload}, [f"/tests/abi_{name}"])
    return table


def stripped(file: Path) -> bytes:
    """The file without what only debuggers read."""
    with tempfile.NamedTemporaryFile() as copy:
        tool = "aarch64-linux-gnu-strip"
        subprocess.run([tool, "-g", "-o", copy.name, str(file)], check=True)
        return Path(copy.name).read_bytes()


def first_file_system(table: dict[str, tuple[dict[str, str], list[str]]]) -> bytes:
    """Everything that the machine has."""
    first = FOLDER / "init"
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [COMPILER, "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-o", first, HERE / "init.c"],
        check=True,
    )
    files = {"init": first.read_bytes()}
    for name in LIBRARIES:
        files[f"lib/{name}"] = (SYSTEM / name).resolve().read_bytes()
    files["lib/libbrimful.so"] = stripped(BUILD / "libbrimful.so")
    lines = []
    for name, (environment, command) in table.items():
        program = command[0].removeprefix("/")
        if program not in files:
            places = (BUILD / "tests", BUILD / "tests/abi", DEBUG / "tests/unit")
            built = [place / Path(program).name for place in places]
            files[program] = stripped(next(each for each in built if each.is_file()))
        variables = " ".join(f"{key}={value}" for key, value in environment.items())
        lines.append(f"{name}|{SECONDS_A_PROGRAM}|{variables}|{' '.join(command)}\n")
    files["tests/list"] = "".join(lines).encode()
    return _cpio.archive(files)


def boot(image: Path, system: Path, processors: int, log: Path, seconds: float) -> str:
    """Runs the machine until it turns itself off. Returns what it printed."""
    command = [EMULATOR, "-machine", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on"]
    command += ["-smp", str(processors), "-m", "6144", "-nographic", "-nodefaults", "-no-reboot"]
    command += ["-serial", "stdio", "-kernel", str(image), "-initrd", str(system)]
    command += ["-append", "console=ttyAMA0 panic=-1 quiet"]
    with log.open("wb") as output:
        try:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            pass
    return log.read_text(errors="replace").replace("\r", "")


def judge(kernel: str, names: list[str], text: str) -> tuple[int, int, int]:
    """Prints a line for each program; numbers of those passed, failed and skipped."""
    found = dict(re.findall(r"^result: (\S+): (.*)$", text, re.MULTILINE))
    machine = re.search(r"^machine: (.*pages of.*)$", text, re.MULTILINE)
    print(f"kernel {kernel}: {machine[1] if machine else 'it did not start'}")
    passed = failed = skipped = 0
    for name in names:
        result = found.get(name, "it did not run")
        is_good, is_skipped = result.startswith("exit 0 "), result.startswith("exit 77 ")
        passed, skipped = passed + is_good, skipped + is_skipped
        failed += not is_good and not is_skipped
        verdict = "ok  " if is_good else "skip" if is_skipped else "FAIL"
        print(f"{verdict} {kernel} {name}: {result}")
        part = re.search(
            rf"^begin: {re.escape(name)}\n(.*?)^result: ", text, re.MULTILINE | re.DOTALL
        )
        lines = part[1].strip().splitlines() if part else text.splitlines()[-20:]
        if verdict != "ok  ":
            print("\n".join(f"     {line}" for line in lines[-40:]))
    return passed, failed, skipped


def main() -> int:
    """Runs what is asked for on each kernel."""
    parser = argparse.ArgumentParser(description="Stress programs on ARM64 kernels in an emulator.")
    parser.add_argument("--quick", action="store_true", help="fewer operations: for a look")
    parser.add_argument("--kernel", help="some of " + ",".join(k.name for k in _kernels.KERNELS))
    parser.add_argument("--only", default="", help="programs whose names match the expression")
    parser.add_argument("--processors", type=int, default=2, help="of the machine (2)")
    options = parser.parse_args()
    for tool in (EMULATOR, COMPILER):
        if shutil.which(tool) is None:
            print(f"skip: {tool} is not installed")
            return 77
    for built in (BUILD / "libbrimful.so", DEBUG / "tests/unit/unit_tests"):
        if not built.exists():
            print(f"skip: {built.relative_to(ROOT)} is not built: make test-arm64")
            return 77
    wanted = options.kernel.split(",") if options.kernel else [k.name for k in _kernels.KERNELS]
    unknown = set(wanted) - {kernel.name for kernel in _kernels.KERNELS}
    if unknown:
        parser.error(f"no such kernel: {', '.join(sorted(unknown))}")
    table = {k: v for k, v in programs(options.quick).items() if re.search(options.only, k)}
    if not table:
        parser.error(f"no program matches {options.only}")
    archive = _kernels.Archive(FOLDER / "apt")
    system = FOLDER / "first.cpio"
    system.write_bytes(first_file_system(table))
    total = [0, 0, 0]
    for kernel in _kernels.KERNELS:
        if kernel.name not in wanted:
            continue
        package = archive.newest(kernel.package)
        if package is None:
            print(f"skip {kernel.name}: {kernel.suite} has no package {kernel.package}")
            total[2] += 1
            continue
        began = time.monotonic()
        log = FOLDER / f"{kernel.name}.log"
        seconds = SECONDS_TO_START + SECONDS_A_PROGRAM * len(table)
        text = boot(archive.image(package), system, options.processors, log, seconds)
        counts = judge(kernel.name, list(table), text)
        total = [a + b for a, b in zip(total, counts, strict=True)]
        print(f"{kernel.name}: {time.monotonic() - began:.0f} s; all it printed: {log}", flush=True)
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 0 if total[1] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
