#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The C library's own malloc tests, under the library, in both front ends.

Nothing of them is in this tree: they are unpacked from Debian's package glibc-source, installed or fetched by
apt. Each test is compiled by itself, with the helpers of that source (support/) in an archive. One that does
not pass under the system's malloc says nothing about another and is left out. Of the rest all must pass but
those of EXPECTED, each with its reason; one of those that passes is an error, too.

Environment: BRIMFUL_LIB, the library.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("BRIMFUL_LIB", ROOT / "build/release/libbrimful.so")).resolve()
INSTALLED = Path("/usr/src/glibc")
SECONDS = 120
FRONT_ENDS = ["percpu", "thread"]
LEAST_TESTS = 30
SKIP = 77  # glibc's own number for "unsupported", and CTest's for us

# Tests that can't be programs of their own.
LEFT_OUT = {
    "tst-alloc_buffer": "of a part that the C library does not export",
    "tst-compathooks-off": "hooks of glibc before 2.24, by symbol versions that no new program can link",
    "tst-compathooks-on": "as tst-compathooks-off",
    "tst-dynarray": "of a part that the C library does not export",
    "tst-dynarray-at-fail": "as tst-dynarray",
    "tst-dynarray-fail": "as tst-dynarray",
    "tst-mallocstate": "malloc_set_state, by a symbol version that no new program can link",
    "tst-mtrace": "writes a trace for a Perl script of glibc's build",
    "tst-scratch_buffer": "of a part that the C library does not export",
    "tst-interpose-aux": "no test: part of the tst-interpose ones",
    "tst-interpose-aux-nothread": "as tst-interpose-aux",
    "tst-interpose-aux-thread": "as tst-interpose-aux",
    "tst-interpose-skeleton": "as tst-interpose-aux",
    "tst-interpose-nothread": "the program brings a malloc of its own, which a preloaded one can't replace",
    "tst-interpose-thread": "as tst-interpose-nothread",
    "tst-interpose-static-nothread": "as tst-interpose-nothread",
    "tst-interpose-static-thread": "as tst-interpose-nothread",
}

# Tests that fail under the library, and why they may.
EXPECTED = {
    "tst-malloc-backtrace": "damages glibc's own chunk and expects glibc to notice",
    "tst-safe-linking": "damages glibc's own lists and expects glibc to notice",
    "tst-malloc-stats-cancellation": "looks for glibc's own text in the output of malloc_stats()",
}

# The tests, their helpers, and what those include. What of support/ does not compile outside of glibc's own
# build is not used by these tests.
WANTED = re.compile(
    r"[^/]+/(support/[^/]+\.[ch]|malloc/(tst-[^/]+\.[ch]|mallocbug\.c)|test-skeleton\.c"
    r"|malloc/scratch_buffer_[a-z_]+\.c|include/(libc-diag|array_length|scratch_buffer)\.h"
    r"|sysdeps/generic/malloc-(size|alignment)\.h)$"
)
FLAGS = [
    "-w",
    "-O1",
    "-std=gnu11",
    "-fno-builtin",
    "-D_GNU_SOURCE",
    "-DTEST_NO_MALLOPT",
    "-pthread",
]
INCLUDES = [".", "include", "support", "sysdeps/generic"]
PATHS = [
    "BINDIR",
    "COMPLOCALEDIR",
    "INSTDIR",
    "LIBDIR",
    "OBJDIR",
    "OBJDIR_ELF_LDSO",
    "ROOTSBINDIR",
    "SBINDIR",
]
PATHS += ["SLIBDIR", "SRCDIR", "SYSCONFDIR"]
# What glibc's own build defines for its helpers.
AS_IN_ITS_BUILD = [
    *[f'-D{folder}_PATH="."' for folder in PATHS],
    *[
        f"-D{macro}="
        for macro in ("libc_hidden_proto(x)", "libc_hidden_def(x)", "attribute_hidden")
    ],
    *["-D__set_errno(value)=(errno = (value))", "-DTIMEOUTFACTOR=5", "-include", "limits.h"],
]


@dataclass
class Test:
    name: str
    source: Path
    program: Path


def skip(reason: str) -> None:
    print(f"skip: {reason}")
    sys.exit(SKIP)


def find_archive(work: Path) -> Path:
    """The source's archive: the installed one, or that of the package, fetched for this run."""
    found = sorted(INSTALLED.glob("glibc-*.tar.xz"))
    if found:
        return found[-1]
    fetched = subprocess.run(
        ["apt-get", "download", "glibc-source"], cwd=work, capture_output=True, text=True
    )
    packages = sorted(work.glob("glibc-source*.deb"))
    if fetched.returncode != 0 or not packages:
        last = (fetched.stderr.strip().splitlines() or ["no reason given"])[-1]
        skip(f"no {INSTALLED}/glibc-*.tar.xz, and apt-get download glibc-source fails: {last}")
    subprocess.run(["dpkg-deb", "-x", packages[-1], work / "package"], check=True)
    return sorted((work / "package").rglob("glibc-*.tar.xz"))[-1]


def unpack(archive: Path, work: Path) -> Path:
    """Unpacks what the tests need, without headers that would hide the system's. Returns the folder."""
    with tarfile.open(archive) as tar:
        members = [member for member in tar.getmembers() if WANTED.match(member.name)]
        tar.extractall(work / "source", members)
    return next((work / "source").iterdir())


def includes(tree: Path) -> list[str]:
    return [f"-I{tree / folder}" for folder in INCLUDES]


def compile_helpers(tree: Path) -> Path:
    """The objects of support/ that compile here, in an archive."""

    def build(source: Path) -> Path | None:
        made = source.with_suffix(".o")
        command = [
            "gcc",
            *FLAGS,
            *AS_IN_ITS_BUILD,
            *includes(tree),
            "-c",
            str(source),
            "-o",
            str(made),
        ]
        return made if subprocess.run(command, capture_output=True).returncode == 0 else None

    (tree / "include/libc-config.h").touch()
    # Programs of their own, and a second main().
    sources = [
        s
        for s in (tree / "support").glob("*.c")
        if not re.match(r"(tst|test|links|shell|echo|true)-|.*_main", s.name)
    ]
    sources += [tree / "support/support_test_main.c", *(tree / "malloc").glob("scratch_buffer_*.c")]
    with ThreadPoolExecutor(2) as pool:
        objects = [made for made in pool.map(build, sources) if made is not None]
    archive = tree / "libsupport.a"
    subprocess.run(["ar", "rc", archive, *objects], check=True)
    return archive


def compile_test(tree: Path, helpers: Path, test: Test) -> str:
    """An empty text, or why the test does not compile."""
    command = [
        "gcc",
        *FLAGS,
        *includes(tree),
        str(test.source),
        "-o",
        str(test.program),
        str(helpers),
        "-ldl",
    ]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode == 0:
        return ""
    errors: list[str] = [
        line for line in made.stderr.splitlines() if "error" in line or "undefined" in line
    ]
    return (errors or [made.stderr.strip()])[0].replace(f"{tree}/", "")


def run(test: Test, extra: dict[str, str]) -> tuple[int, str]:
    """Exit code and the last lines of what it printed."""
    command = [str(test.program)]
    environment = {**os.environ, **extra}
    try:
        done = subprocess.run(
            command,
            env=environment,
            cwd=test.program.parent,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return 124, f"still running after {SECONDS} s"
    lines = (done.stdout + done.stderr).strip().splitlines()
    return done.returncode, " | ".join(lines[-3:])


def verdict(code: int) -> str:
    return "pass" if code == 0 else "skip" if code == SKIP else f"FAIL {code}"


@dataclass
class Outcome:
    """What a test came to: a line of the table, the faults in it, and whether it passed, by front end."""

    line: str
    faults: list[str]
    passed: dict[str, bool]


def judge(tree: Path, helpers: Path, test: Test) -> Outcome:
    """Compiles the test and runs it under the system's malloc and, if it passes there, under the library."""
    if test.name in LEFT_OUT:
        return Outcome(f"left out: {LEFT_OUT[test.name]}", [], {})
    reason = compile_test(tree, helpers, test)
    if reason:
        return Outcome(f"does not compile: {reason}", [f"{test.name} does not compile"], {})
    code, output = run(test, {})
    if code != 0:
        return Outcome(f"left out, {verdict(code)} under the system's malloc: {output}", [], {})
    faults = []
    codes = {}
    for front_end in FRONT_ENDS:
        options = {"LD_PRELOAD": str(LIBRARY), "BRIMFUL_CONF": f"verbose:0,front_end:{front_end}"}
        codes[front_end], output = run(test, options)
        is_bad = codes[front_end] != 0
        if is_bad != (test.name in EXPECTED):
            what = f"fails: {output}" if is_bad else "passes, though it is expected to fail"
            faults.append(f"{test.name} ({front_end}) {what}")
    columns = "".join(f"{verdict(code):10}" for code in codes.values())
    note = EXPECTED.get(test.name, "")
    return Outcome(
        f"pass    {columns}{note}".rstrip(), faults, {f: code == 0 for f, code in codes.items()}
    )


def main() -> int:
    if not LIBRARY.exists():
        print(f"FAIL: no library at {LIBRARY}")
        return 1
    with tempfile.TemporaryDirectory(prefix="brimful-glibc-tests-") as folder:
        work = Path(folder)
        tree = unpack(find_archive(work), work)
        helpers = compile_helpers(tree)
        print(
            f"malloc tests of {tree.name}\n{'test':30}system  "
            + "".join(f"{f:10}" for f in FRONT_ENDS)
        )
        faults: list[str] = []
        passed: list[dict[str, bool]] = []
        for source in sorted([*(tree / "malloc").glob("tst-*.c"), tree / "malloc/mallocbug.c"]):
            outcome = judge(tree, helpers, Test(source.stem, source, tree / source.stem))
            print(f"{source.stem:30}{outcome.line}", flush=True)
            faults += outcome.faults
            if outcome.passed:
                passed.append(outcome.passed)
        sums = ", ".join(f"{sum(p[f] for p in passed)} in {f}" for f in FRONT_ENDS)
        print(
            f"{len(passed)} tests pass under the system's malloc; of them under the library {sums}"
        )
        if len(passed) < LEAST_TESTS:
            faults.append(f"only {len(passed)} tests could be run")
        for fault in faults:
            print(f"FAIL: {fault}")
        return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
