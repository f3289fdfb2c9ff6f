# SPDX-License-Identifier: MIT
"""Commands of the pages that are not run as they stand, what runs instead, and why.

The first entry whose pattern is the whole command (without a comment behind it) counts. SHORTENED:
the same command does the same in little, and has to succeed. PARSED: only that its targets, options
and names exist is shown, by the program that it starts. An entry that no page needs any more is a
fault. Where a program is missing that the test packages do not promise, `instead` ends with 77 and
says what: the command is skipped, and counted so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SHORTENED = "shortened"
PARSED = "only parsed"

# Results that `compare` and `report` are tried on: a published run of few rows.
RESULT = "$(ls bench/results/real-*.json | tail -n 1)"
# An allocator that is not there because the rivals were not built, but would be.
NOT_BUILT = (
    "{ name=$(sed -n \"s/.*no allocator '\\([^']*\\)'.*/\\\\1/p\" output.txt); "
    '[ -n "$name" ] && [ ! -e build/rivals ] && grep -rqw "$name" bench/rivals; }'
)
# What of the bench needs the packages in build/venv.
VENV = "test -e build/venv/requirements.txt || { echo no build/venv; exit 77; }; "
QUIET = "> output.txt 2>&1 || { cat output.txt; false; }"


@dataclass(frozen=True)
class Substitute:
    """One line of the table."""

    pattern: str
    kind: str
    instead: str  # for the shell; \g<0> is the command, \1 … its groups
    reason: str


TABLE = (
    # --- make ------------------------------------------------------------------------------------
    Substitute(
        r"make run",
        PARSED,
        r"make -n run > /dev/null",
        "takes minutes, and is run by .ci/run, in a fresh clone",
    ),
    Substitute(
        r"make test TESTS=((release|debug|asan|tsan)\.\S+)",
        PARSED,
        r"test -e build/\2/CTestTestfile.cmake || { echo no build/\2; exit 77; }; make -n test > /dev/null"
        r" && ctest --test-dir build/\2 -N -R '\1' > found.txt && ! grep -q 'Total Tests: 0' found.txt",
        "is what runs this; that the expression finds tests is checked",
    ),
    Substitute(
        r"ctest --test-dir build/release (-L \w+)",
        PARSED,
        r"ctest --test-dir build/release -N \1 > found.txt && ! grep -q 'Total Tests: 0' found.txt",
        "is what runs this; that the label has tests is checked",
    ),
    Substitute(
        r"build/debug/tests/unit/unit_tests (\w+_test)",
        PARSED,
        r"test -e build/debug/CTestTestfile.cmake || { echo no build/debug; exit 77; }; "
        r"ctest --test-dir build/debug -N -R 'unit\.\1' > found.txt && ! grep -q 'Total Tests: 0' found.txt",
        "is what the tests of the label unit run; that the file has its test is checked",
    ),
    Substitute(
        r"build/debug/tests/unit/unit_tests (--alone) CentralTest.Name",
        PARSED,
        r"grep -rq -e \1 tests/support",
        "stands for the reader's own test; that the option exists is checked",
    ),
    Substitute(
        r"make install( PREFIX=\S+)?",
        SHORTENED,
        r"make install DESTDIR=$DESTDIR_FOR_PAGES\1 > /dev/null",
        "writes into the system; a DESTDIR keeps it in a folder",
    ),
    Substitute(
        r"make real-programs && (./brimful bench .*)",
        PARSED,
        VENV + r"make -n real-programs > /dev/null && \1 --list " + QUIET,
        "installs packages and takes an hour",
    ),
    Substitute(
        r"make (?:lib(?= PRESET)|lib lib-locked|lib-locked|test|test-long|quick|repeat|lint|format"
        r"|fuzz|fuzz-campaign|rivals|real-programs|league|bench|study|clean)"
        r"((?: [A-Z]+=(?:\"[^\"]*\"|\S+))*)",
        PARSED,
        r"\g<0> -n > /dev/null",
        "takes minutes to hours, changes the checkout, or is what runs this",
    ),
    Substitute(
        r"make lib && cmake --build build/release --target ([\w ]+)",
        PARSED,
        r"for target in \1; do ninja -C build/release -n $target > output.txt || exit; done",
        "compiles for half a minute",
    ),
    Substitute(
        r"build/release/tests/(\w+)( --.*)?",
        PARSED,
        r"ninja -C build/release -n \1 > output.txt || { cat output.txt; false; }",
        "runs for minutes; tests of the label topology run these programs",
    ),
    # --- the bench -------------------------------------------------------------------------------
    Substitute(
        r"(./brimful bench study \S+)(?: (--[a-z-]+).*)?",
        PARSED,
        VENV + r"\1 --list " + QUIET + r" && \1 --help | grep -qe '\2'",
        "a study takes minutes to an hour; that it and its option exist is checked",
    ),
    Substitute(
        r"./brimful bench( -- \./myprogram its arguments)",
        SHORTENED,
        VENV
        + r"./brimful bench --allocators glibc,brimful --rounds 2:2 --out out -- true its arguments "
        + QUIET,
        "two rounds of a program that does nothing, in place of all rivals",
    ),
    Substitute(
        r"./brimful bench --out after …",
        SHORTENED,
        VENV + r"mkdir -p after && cp before/results.json after",
        "the run before in place of another",
    ),
    Substitute(
        r"./brimful bench --out (before) …",
        SHORTENED,
        VENV
        + r"./brimful bench --workloads cold-start --allocators glibc,brimful --rounds 2:2 --out \1 "
        + QUIET,
        "one row, two rounds",
    ),
    Substitute(
        r"./brimful bench compare before/results.json after/results.json --fail-over 3%",
        SHORTENED,
        VENV
        + r"./brimful bench compare before/results.json after/results.json --fail-over 3% > output.txt 2>&1;"
        r" test $? -eq 3",
        "two rounds are too few to say, which is exit code 3",
    ),
    Substitute(
        r"./brimful bench count --out (\S+)",
        SHORTENED,
        r"cp tests/golden/hot_rows.json \1",
        "the committed counts stand in for half a minute under valgrind; test_hot_rows.py runs it",
    ),
    Substitute(
        r"./brimful bench --lib mine=(\S+)",
        PARSED,
        VENV + r"./brimful bench --lib mine=build/release/libbrimful.so --list " + QUIET,
        "a run takes 45 minutes",
    ),
    Substitute(
        r"./brimful bench compare before.json after.json --fail-over 1%",
        PARSED,
        VENV + r"\g<0> " + QUIET,
        "needs the packages of the bench",
    ),
    Substitute(
        r"./brimful bench compare A.json B.json",
        SHORTENED,
        VENV
        + r"./brimful bench compare "
        + RESULT
        + " "
        + RESULT
        + " > output.txt 2>&1; test $? -eq 3",
        "a published result, twice, in place of two runs; it has too few rounds to say, which is exit code 3",
    ),
    Substitute(
        r"./brimful bench report LEAGUE.json --memory --also REAL.json",
        SHORTENED,
        VENV
        + r"./brimful bench report $(ls bench/results/league-*.json | tail -n 1) --memory --also "
        + RESULT
        + " "
        + QUIET,
        "published results stand in for one's own",
    ),
    Substitute(
        r"./brimful bench(?! (?:compare|report))(\s[^#]*)?",
        PARSED,
        VENV + r"\g<0> --list > output.txt 2>&1 || " + NOT_BUILT + " || { cat output.txt; false; }",
        "a run takes minutes to hours; --list reads all options and names first",
    ),
    Substitute(
        r"tools/install-deps.sh service",
        PARSED,
        r"grep -q '^  service)' tools/install-deps.sh",
        "installs packages",
    ),
    # --- programs that stand for the reader's own -------------------------------------------------
    Substitute(
        r"(./brimful run .*-- )\./myprogram",
        SHORTENED,
        r"\1 true",
        "stands for the reader's own program",
    ),
    Substitute(
        r"(brimful run .*-- )make -j4",
        SHORTENED,
        r"\1 make --version > /dev/null",
        "stands for the reader's own program",
    ),
    Substitute(
        r"(PYTHONMALLOC=malloc brimful run .*-- python3) app.py",
        SHORTENED,
        r"\1 -c pass",
        "stands for the reader's own program",
    ),
    Substitute(
        r"gdb .*",
        SHORTENED,
        r"""command -v gdb > /dev/null || { echo no gdb; exit 77; }; """
        r"""printf '#include <stdlib.h>\nint main(void) { free((void*)4096); }\n' > faulty.c && """
        r"""cc -g -w -o faulty faulty.c && """
        r"""gdb -batch -ex "set environment LD_PRELOAD $PWD/build/release/libbrimful.so" """
        r"""-ex run -ex bt --args ./faulty > output.txt 2>&1; grep -q 'foreign pointer' output.txt && """
        r"""grep -q ' main ' output.txt || { cat output.txt; false; }""",
        "a terminal and the reader's own program",
    ),
    # --- the example ------------------------------------------------------------------------------
    Substitute(
        r"cmake --preset release -S . && cmake --build build/release --target zcache",
        SHORTENED,
        r"test -e /usr/include/zstd.h && test -e /usr/include/lz4.h || { echo no zstd.h, lz4.h; exit 77; }; "
        r"cmake --build build/release --target zcache > /dev/null",
        "the build is configured already",
    ),
    Substitute(
        r"(LD_PRELOAD=)\S*libjemalloc.so (build/release/examples/zcache/zcache .*) /usr/include",
        SHORTENED,
        r"test -e build/release/examples/zcache/zcache || { echo no zcache; exit 77; }; "
        r"mkdir -p few && cp include/brimful/*.h few && "
        r"\1$PWD/build/release/libbrimful.so \2 few > /dev/null",
        "little data, and a malloc that is there",
    ),
    Substitute(
        r"(build/release/examples/zcache/zcache .*) /usr/include",
        SHORTENED,
        r"test -e build/release/examples/zcache/zcache || { echo no zcache; exit 77; }; "
        r"mkdir -p few && cp include/brimful/*.h few && \1 few > /dev/null",
        "little data in place of /usr/include",
    ),
    Substitute(
        r"(build/release/examples/zcache/zcache --help)",
        SHORTENED,
        r"test -e build/release/examples/zcache/zcache || { echo no zcache; exit 77; }; \1 > /dev/null",
        "is skipped where zcache could not be built",
    ),
    Substitute(
        r"(c\+\+ .*) \*\.cpp (\$\(pkg-config .*\) -o zcache)",
        SHORTENED,
        r"command -v pkg-config > /dev/null || { echo no pkg-config; exit 77; }; "
        r"make install DESTDIR=$DESTDIR_FOR_PAGES PREFIX=/opt/brimful > /dev/null && "
        r"export PKG_CONFIG_PATH=$(dirname $(find $DESTDIR_FOR_PAGES -name brimful-pools.pc)) && "
        r"c++ -std=c++20 -fsyntax-only examples/zcache/codec.cpp && "
        r"pkg-config --exists --print-errors brimful-pools libzstd liblz4",
        "compiling the whole takes a quarter of a minute; one file is compiled",
    ),
)


@dataclass(frozen=True)
class Chosen:
    """What runs for a command."""

    kind: str  # "" : the command as it stands
    script: str
    entry: Substitute | None


def without_comment(command: str) -> str:
    """The command without `  # what it does` behind it."""
    return re.sub(r"\s{2,}# .*$", "", command).strip() if "\n" not in command else command


def choose(command: str) -> Chosen:
    """What to run for `command`."""
    bare = without_comment(command)
    for entry in TABLE:
        found = re.fullmatch(entry.pattern, bare, re.DOTALL)
        if found:
            return Chosen(entry.kind, found.expand(entry.instead.replace("\\\n", "")), entry)
    return Chosen("", command, None)
