#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The C library's own malloc tests, under the library, in both front ends.

Nothing of them is in this tree: they are unpacked from Debian's package glibc-source, installed or fetched by apt. Each
test is compiled by itself, with the helpers of that source (support/) in an archive. A test that does not pass under
the system's malloc says nothing about another and is left out. Of the rest all must pass but those of EXPECTED, each
with its reason; one of those that passes is an error, too.

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
    "tst-interpose-nothread": "brings a malloc of its own, in the program, which a preloaded one can't replace",
    "tst-interpose-thread": "as tst-interpose-nothread",
    "tst-interpose-static-nothread": "as tst-interpose-nothread",
    "tst-interpose-static-thread": "as tst-interpose-nothread",
}

# Tests that fail under the library, and why they may.
EXPECTED: dict[str, str] = {}

# Where the tests' helpers are, and what else they include. Of support/, what does not compile outside of glibc's own
# build is what these tests do not use.
WANTED = re.compile(
    r"[^/]+/(support/[^/]+\.[ch]|malloc/(tst-[^/]+\.[ch]|mallocbug\.c)|test-skeleton\.c"
    r"|malloc/scratch_buffer_[a-z_]+\.c|include/(libc-diag|array_length|scratch_buffer)\.h"
    r"|sysdeps/generic/malloc-(size|alignment)\.h)$"
)
FLAGS = ["-w", "-O1", "-std=gnu11", "-fno-builtin", "-D_GNU_SOURCE", "-DTEST_NO_MALLOPT", "-pthread"]
INCLUDES = [".", "include", "support", "sysdeps/generic"]
# What glibc's own build defines for its helpers.
AS_IN_ITS_BUILD = [
    *[f'-D{folder}="."' for folder in ("OBJDIR_PATH", "SRCDIR_PATH", "INSTDIR_PATH")],
    *[f"-D{macro}=" for macro in ("libc_hidden_proto(x)", "libc_hidden_def(x)", "attribute_hidden")],
    *["-DTIMEOUTFACTOR=1", "-include", "limits.h"],
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
    fetched = subprocess.run(["apt-get", "download", "glibc-source"], cwd=work, capture_output=True, text=True)
    packages = sorted(work.glob("glibc-source*.deb"))
    if fetched.returncode != 0 or not packages:
        last = (fetched.stderr.strip().splitlines() or ["no reason given"])[-1]
        skip(f"no {INSTALLED}/glibc-*.tar.xz, and apt-get download glibc-source fails: {last}")
    subprocess.run(["dpkg-deb", "-x", packages[-1], work / "package"], check=True)
    return sorted((work / "package").rglob("glibc-*.tar.xz"))[-1]


def unpack(archive: Path, work: Path) -> Path:
    """Unpacks what the tests need; headers of the source that would hide the system's stay out. Returns the folder."""
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
        command = ["gcc", *FLAGS, *AS_IN_ITS_BUILD, *includes(tree), "-c", source, "-o", made]
        return made if subprocess.run(command, capture_output=True).returncode == 0 else None

    (tree / "include/libc-config.h").touch()
    # Programs of their own, and a second main().
    sources = [s for s in (tree / "support").glob("*.c") if not re.match(r"(tst|test|links|shell|echo|true)-|.*_main", s.name)]
    sources += [tree / "support/support_test_main.c", *(tree / "malloc").glob("scratch_buffer_*.c")]
    with ThreadPoolExecutor(2) as pool:
        objects = [made for made in pool.map(build, sources) if made is not None]
    archive = tree / "libsupport.a"
    subprocess.run(["ar", "rc", archive, *objects], check=True)
    return archive


def compile_test(tree: Path, helpers: Path, test: Test) -> str:
    """An empty text, or why the test does not compile."""
    command = ["gcc", *FLAGS, *includes(tree), test.source, "-o", test.program, helpers, "-ldl"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode == 0:
        return ""
    errors = [line for line in made.stderr.splitlines() if "error" in line or "undefined" in line]
    return (errors or [made.stderr.strip()])[0].replace(f"{tree}/", "")


def run(test: Test, extra: dict[str, str]) -> tuple[int, str]:
    """Exit code and the last lines of what it printed."""
    command = [test.program, "--direct"]
    environment = {**os.environ, **extra}
    try:
        done = subprocess.run(
            command, env=environment, cwd=test.program.parent, capture_output=True, text=True, errors="replace", timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return 124, f"still running after {SECONDS} s"
    lines = (done.stdout + done.stderr).strip().splitlines()
    return done.returncode, " | ".join(lines[-3:])


def verdict(code: int) -> str:
    return "pass" if code == 0 else "skip" if code == SKIP else f"FAIL {code}"


def main() -> int:
    if not LIBRARY.exists():
        print(f"FAIL: no library at {LIBRARY}")
        return 1
    with tempfile.TemporaryDirectory(prefix="brimful-glibc-tests-") as folder:
        work = Path(folder)
        tree = unpack(find_archive(work), work)
        helpers = compile_helpers(tree)
        faults: list[str] = []
        counts = {"percpu": 0, "thread": 0}
        ran = 0
        print(f"malloc tests of {tree.name}\n{'test':28} {'system':8} {'percpu':9} {'thread':9}")
        for source in sorted([*(tree / "malloc").glob("tst-*.c"), tree / "malloc/mallocbug.c"]):
            test = Test(source.stem, source, tree / source.stem)
            if test.name in LEFT_OUT:
                print(f"{test.name:28} left out: {LEFT_OUT[test.name]}")
                continue
            reason = compile_test(tree, helpers, test)
            if reason:
                faults.append(f"{test.name} does not compile: {reason}")
                print(f"{test.name:28} does not compile: {reason}")
                continue
            code, output = run(test, {})
            if code != 0:
                print(f"{test.name:28} {verdict(code):8} left out: it does not pass under the system's malloc: {output}")
                continue
            ran += 1
            codes = {}
            for front_end in counts:
                codes[front_end], output = run(
                    test, {"LD_PRELOAD": str(LIBRARY), "BRIMFUL_CONF": f"verbose:0,front_end:{front_end}"}
                )
                counts[front_end] += codes[front_end] == 0
                is_bad = codes[front_end] != 0
                if is_bad != (test.name in EXPECTED):
                    faults.append(f"{test.name} ({front_end}) {'fails: ' + output if is_bad else 'passes, though it is listed'}")
            note = EXPECTED.get(test.name, "")
            print(f"{test.name:28} pass     {verdict(codes['percpu']):9} {verdict(codes['thread']):9} {note}".rstrip(), flush=True)
        print(f"{ran} tests pass under the system's malloc; under the library " + ", ".join(f"{n} in {f}" for f, n in counts.items()))
        if ran < 30:
            faults.append(f"only {ran} tests could be run")
        for fault in faults:
            print(f"FAIL: {fault}")
        return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
