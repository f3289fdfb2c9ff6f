#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The misuse suite (bench/studies/misuse/suite) under the library: what its tiers promise, they keep.

Each case commits one fault in a process of its own, under several settings. Which faults a setting
promises to stop, when, and with which line, is in promises(). Of all other faults nothing is
promised, but whatever happens: a call of the library ends in a report of this kind of fault or
returns (it never crashes), only an access may end in SIGSEGV, and malloc goes where it should,
however free memory was written to. A right program is never stopped.

Environment: BRIMFUL_LIB (default build/release/libbrimful.so).

    tests/misuse/suite.py [--settings X,Y] [WORD…]    only cases that contain each WORD
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(ROOT / "bench"))

from studies.misuse import runs  # noqa: E402
from studies.misuse.runs import AT, CONTROL, HARMLESS, LATER, SILENT, Case, Ending  # noqa: E402

LIBRARY = Path(os.environ.get("BRIMFUL_LIB", ROOT / "build/release/libbrimful.so")).resolve()
# Guards are drawn at random; where they are not the subject, they are off.
SETTINGS = {
    "as shipped": "",  # no variable at all
    "default": "guards:0",
    "default, per thread": "guards:0,front_end:thread",
    "hardened": "guards:0,tier:hardened",
    "everything": "guards:0,tier:hardened,canary:1,zero:1,random:1,quarantine:4",
    "guards": "guards:1",
    "canary": "guards:0,canary:1",
    "zero": "guards:0,zero:1",
    "quarantine": "guards:0,quarantine:4,random:1",
    "guard": "guards:0,guard:1",
}
# What a setting has no part in needs no run under it: expressions that are looked for in a case.
CONCERNED = {
    "as shipped": "^zero-size|^no-fault",
    "default, per thread": "two$",
    "hardened": "^double-free|^realloc|^invalid|^type|^metadata|^no-fault",
    "canary": "^overflow|^underflow|^metadata|^no-fault",
    "zero": "^use-after-free-write|^uninitialised|^metadata|^no-fault",
    "quarantine": "^double-free|^use-after-free|^no-fault",
    "guard": "^overflow-(page|mib)|^zero-size|^no-fault",
}
TELLS_AT_ONCE = ("hardened", "everything")  # a free that is pending elsewhere is known, too
CANARIED_MOST = 4096  # bytes of the largest object of the suite that has a canary
FENCED_MOST = 512  # of the largest whose slab has room for a page without access behind it
GUARDED_MOST = 4096  # and of the largest that is guarded
TIME_LIMIT_S = 120  # nothing here may hang, however loaded the machine is
P = r"\({pointer}[,)]"
OBJECT = r"the \d+-byte object 0x[0-9a-f]+ to 0x[0-9a-f]+"
ANY_FREE = "(?:free|free_sized|operator delete|realloc)"
# How reports of each kind may begin, whatever the setting.
REPORTS = {
    "double-free": "(?:double free|use after free)",
    "double-free-used-again": "double free",
    "use-after-free-read": "use after free",
    "use-after-free-write": "use after free",
    "overflow-.*": "buffer overflow",
    "underflow": "buffer (?:underflow|overflow)",  # behind the one that lies before
    "zero-size": "buffer (?:under|over)flow",
    "uninitialised-read": "none",
    "invalid-free": "(?:foreign|interior|misaligned) pointer|double free",
    "realloc-misuse": "(?:foreign|interior|misaligned) pointer|(?:double|use after) free",
    "type-confusion-by-size": "wrong size|use after free|buffer overflow",
    "size-overflow": "none",
    "metadata": "double free|use after free|buffer (?:under|over)flow",
    CONTROL: "none",
}


@dataclass(frozen=True)
class Promise:
    """How a case has to end, and the line if it is stopped, with {pointer} for the faulty one; "": any."""

    outcomes: tuple[str, ...]
    line: str = ""


def freed_twice(case: Case, calls: str = ANY_FREE) -> Promise:
    fault = "(?:double free|use after free)" if "realloc" in calls else "double free"
    return Promise((AT,), rf"{fault}: {calls}{P}.* already ")


def promise(setting: str, case: Case) -> Promise | None:
    """What docs/guide/misuse.md and safety.md promise of this case."""
    kind, fault = case.kind, case.fault
    guarded = setting == "guards" and case.size <= GUARDED_MOST
    # A free of another context's object waits in books of its own; tier:hardened knows, and so do guards
    # and the tables of blocks that lie in no slab.
    knows = case.threads == "one" or setting in TELLS_AT_ONCE or guarded or case.size > 32768
    if kind == "double-free" and (knows or fault in ("second-by-other", "moved-by-realloc")):
        return freed_twice(case, "free")
    if kind == "metadata" and fault == "key-then-free" and not guarded:
        return freed_twice(case, "free")
    if kind == "realloc-misuse" and fault.startswith("freed") and knows:
        return freed_twice(case, "realloc")
    if kind == "realloc-misuse" and fault == "to-zero":
        return freed_twice(case, "free")
    if kind in ("invalid-free", "realloc-misuse") and not fault.startswith("freed"):
        return pointer_promise(case)
    if kind == "type-confusion-by-size" and fault.startswith("deleted"):
        return Promise((AT,), rf"wrong size: (?:free_sized|operator delete){P}")
    if guarded:
        return guard_promise(case)
    if setting in ("canary", "everything") and case.size <= CANARIED_MOST:
        found = canary_promise(case)
        if found is not None:
            return found
    if setting == "as shipped" and kind == "zero-size":
        return Promise((HARMLESS, SILENT))  # malloc(0) has memory
    if setting == "guard":
        return page_promise(case)
    return zero_promise(case) if setting in ("zero", "everything") else None


def canary_promise(case: Case) -> Promise | None:
    """A write beside an object meets a canary, or bytes that are nobody's."""
    stop = rf"buffer overflow: free\(0x[0-9a-f]+\): the byte at .* behind the end of {OBJECT}"
    if case.kind == "overflow-page":
        return Promise((LATER,), stop)
    if case.kind == "overflow-mib":
        return Promise((AT, LATER))  # or there is no memory any more
    is_beside = case.kind in ("overflow-1", "overflow-8", "overflow-16", "underflow")
    if is_beside and case.fault.startswith("write"):
        return Promise((LATER, HARMLESS), stop)
    return None


def zero_promise(case: Case) -> Promise | None:
    """No old contents, and what was written to free memory is seen before it serves again."""
    if case.kind == "uninitialised-read":
        return Promise((HARMLESS,))
    if case.kind == "metadata" and case.fault in ("first-word", "two-words", "whole-object"):
        stop = r"use after free: malloc\(.*: the byte at 0x[0-9a-f]+ was written to, .* while it was free"
        return Promise((LATER, HARMLESS), stop)
    return None


def page_promise(case: Case) -> Promise | None:
    """A page without access ends an overflow that runs on, and is all that an object of size 0 has."""
    is_ended = case.kind == "overflow-mib" and case.size <= FENCED_MOST
    return Promise((AT,)) if is_ended or case.kind == "zero-size" else None


def pointer_promise(case: Case) -> Promise:
    call = "free" if case.kind == "invalid-free" else "realloc"
    if case.fault in ("stack", "data", "mapped", "fake-header"):
        return Promise((AT,), rf"foreign pointer: {call}{P}")
    if case.fault in ("end", "before"):  # what lies there is the heap's choice
        return Promise(
            (AT,), rf"(?:(?:foreign|interior|misaligned) pointer|double free): {call}{P}"
        )
    return Promise((AT,), rf"(?:interior|misaligned) pointer: {call}{P}.* into ")


def guard_promise(case: Case) -> Promise | None:
    """Every small object is guarded: three in four lie at the end of a page, others at its start."""
    kind, fault = case.kind, case.fault
    if kind.startswith("use-after-free"):
        verb = "read from" if kind.endswith("read") else "write to"
        return Promise(
            (AT,), rf"use after free: {verb} {{pointer}}, .* into {OBJECT}, which is free"
        )
    if kind.startswith("overflow") and fault.startswith("write"):
        stop = rf"buffer overflow: (?:write to {{pointer}}|free\(0x[0-9a-f]+\).*), .* behind .*{OBJECT}"
        return (
            Promise((AT, LATER), stop)
            if kind in ("overflow-1", "overflow-8", "overflow-16")
            else None
        )
    if kind == "underflow" and fault in ("write-1", "write-8", "write-16"):
        return Promise((AT, LATER), rf"buffer underflow: .* before {OBJECT}")
    return None


def faults_of(setting: str, case: Case, ending: Ending) -> list[str]:
    """What is wrong with how a case ended."""
    if ending.outcome in (runs.HUNG, runs.BROKEN):
        return [f"{ending.outcome} {ending.verdict}"]
    wrong = []
    first = ending.said.partition("\n")[0]
    allowed = next(value for key, value in REPORTS.items() if re.fullmatch(key, case.kind))
    if ending.outcome in (AT, LATER):
        is_access = ending.outcome == AT and not first.startswith("brimful: ")
        if ending.signal == signal.SIGABRT or first:
            if not re.match(rf"brimful: (?:{allowed}): ", first):
                wrong.append(f"a report of another kind of fault than {allowed}")
        elif not (is_access and ending.signal == signal.SIGSEGV and may_fault(case)):
            wrong.append(f"signal {ending.signal} without a report")
    elif first:
        wrong.append("something was said, and the program went on")
    if case.kind == CONTROL and ending.outcome != HARMLESS:
        wrong.append("a right program was stopped")
    if case.kind == "size-overflow" and ending.outcome != HARMLESS:
        wrong.append("an impossible size was not refused")
    if case.kind == "metadata" and ending.outcome == SILENT and "live object" not in ending.verdict:
        wrong.append("malloc was led astray")
    promised = promise(setting, case)
    if promised is not None:
        if ending.outcome not in promised.outcomes:
            wrong.append(f"promised to end {' or '.join(promised.outcomes)}")
        expected = f"brimful: {promised.line}".replace("{pointer}", ending.pointer)
        if promised.line and ending.outcome != HARMLESS and re.match(expected, first) is None:
            wrong.append(f"the line does not match {expected}")
    return wrong


def may_fault(case: Case) -> bool:
    """Whether the fault is an access, which meets memory that isn't there."""
    accesses = (
        "use-after-free",
        "overflow",
        "underflow",
        "zero-size",
        "metadata",
        "type-confusion",
    )
    return case.kind.startswith(accesses)


def environment(setting: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("BRIMFUL_")}
    options = {"BRIMFUL_CONF": SETTINGS[setting]} if SETTINGS[setting] else {}
    return {**kept, "LD_PRELOAD": str(LIBRARY), **options}


def check(program: Path, cases: Iterable[Case], setting: str) -> tuple[int, int]:
    """Runs the cases under a setting; returns how many were right, and wrong."""
    chosen = environment(setting)
    concerned = re.compile(CONCERNED.get(setting, ""))
    counts: Counter[str] = Counter()
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [
            (case, pool.submit(runs.commit, program, case, chosen, TIME_LIMIT_S))
            for case in cases
            if concerned.search(str(case))
        ]
        for case, job in jobs:
            ending = job.result()
            counts[ending.outcome] += 1
            wrong = faults_of(setting, case, ending)
            if wrong:
                failed += 1
                print(f"FAIL {case} [{SETTINGS[setting]}]: {'; '.join(wrong)}")
                print(f"     {ending}", flush=True)
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    print(
        f"{setting} ({SETTINGS[setting]}): {len(jobs)} cases, {failed} failed; {told}", flush=True
    )
    return len(jobs) - failed, failed


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the misuse suite under the library.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only cases that contain each")
    parser.add_argument("--settings", default="", metavar="X,Y", help=f"of: {'; '.join(SETTINGS)}")
    given = parser.parse_args()
    wanted = given.settings.split(",") if given.settings else list(SETTINGS)
    runs.forbid_cores()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "suite"
        runs.compile_suite(program)
        cases = [
            case for case in runs.cases(program) if all(word in str(case) for word in given.words)
        ]
        counts = [check(program, cases, setting) for setting in wanted]
    passed, failed = (sum(column) for column in zip(*counts, strict=True))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
