#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compiles and runs the programs of tests/abi by themselves, without CMake.

The build system registers the same programs one by one; this script is for the person who
changes one of them, and answers two questions in one go. Is the test right? (`glibc`: the
same program under the system's allocator.) Does the library pass? (`preload`, `static`,
`static-pie`, each with both front ends.) Every run has a time limit; a failed run's output
is printed whole.

    tests/abi/run.py [--how glibc,preload,static,static-pie] [--front-end percpu,thread]
                     [--conf CONF] [NAME…]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIBRARY = Path(os.environ.get("BRIMFUL_LIB", ROOT / "build/release/libbrimful.so"))
ARCHIVE = LIBRARY.parent / "libbrimful.a"
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
TIME_LIMIT_S = 150


def compile_program(source: Path, how: str, folder: Path) -> Path:
    """Compiles one test for a way of linking; glibc and preload share the dynamic program."""
    kind = how if how.startswith("static") else "dynamic"
    program = folder / f"{source.stem}.{kind}"
    if program.exists():
        return program
    is_cxx = source.suffix == ".cpp"
    command = ["g++", "-std=c++20"] if is_cxx else ["gcc", "-std=gnu11"]
    command += ["-O2", "-g", "-pthread", *WARNINGS, "-I", str(ROOT / "include")]
    command += {"dynamic": ["-fPIE", "-pie"], "static": ["-static"]}.get(
        kind, ["-fPIE", "-static-pie"]
    )
    command += ["-o", str(program), str(source)]
    if kind != "dynamic":
        command += [str(ARCHIVE)]
    command += ["-lm", "-ldl"]
    subprocess.run(command, check=True)
    return program


def run_program(program: Path, how: str, front_end: str, conf: str) -> tuple[int, str, float]:
    """Runs one program and returns its exit code (124 after the time limit), output and seconds."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BRIMFUL_")}
    environment["BRIMFUL_LIB"] = str(LIBRARY)
    if how != "glibc":
        environment["BRIMFUL_CONF"] = f"front_end:{front_end},{conf}"
        if "brimful" in LIBRARY.name:
            environment["BRIMFUL_EXPECT"] = "1"
    if how == "preload":
        environment["LD_PRELOAD"] = str(LIBRARY)
    started = time.monotonic()
    try:
        done = subprocess.run(
            [str(program)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIME_LIMIT_S,
            check=False,
        )
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        code, output = 124, late.stdout or b""
    return code, output.decode(errors="replace"), time.monotonic() - started


def main() -> int:
    """Runs what the command line asks for; exit code 0 when everything passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="programs (without suffix); all when empty")
    parser.add_argument("--how", default="glibc,preload,static,static-pie")
    parser.add_argument("--front-end", default="percpu,thread")
    parser.add_argument("--conf", default="", help="more of BRIMFUL_CONF, such as tier:hardened")
    parser.add_argument(
        "--verbose", action="store_true", help="print the output of passing runs too"
    )
    options = parser.parse_args()
    sources = sorted([*HERE.glob("*.c"), *HERE.glob("*.cpp")])
    if options.names:
        sources = [source for source in sources if source.stem in options.names]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="brimful-abi-") as folder:
        for source in sources:
            for how in options.how.split(","):
                program = compile_program(source, how, Path(folder))
                for front_end in ["-"] if how == "glibc" else options.front_end.split(","):
                    code, output, seconds = run_program(program, how, front_end, options.conf)
                    verdict = "ok  " if code == 0 else "FAIL"
                    passed, failed = passed + (code == 0), failed + (code != 0)
                    print(
                        f"{verdict} {source.stem:24} {how:10} {front_end:7} {seconds:6.1f} s",
                        end="",
                    )
                    print("" if code == 0 else f"  exit {code}", flush=True)
                    if code != 0 or options.verbose:
                        print("".join(f"      {line}\n" for line in output.splitlines()), end="")
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
