#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Thirty programs, each looked at a hundred times: what inspect adds up is what the kernel counts.

Live, free and metadata together have to be the Rss of the heap's mappings, within a page for each
thread. The program is stopped for each look, for the kernel's figure and ours are read one after
the other.

    test_reconcile_long.py [MOMENTS]

Environment: BRIMFUL_BUILD, the folder of the build.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BRIMFUL_BUILD", ROOT / "build/release")).resolve()
SKIP = 77
PAGE = 4096
CONFIGURATIONS = ["", "front_end:thread", "tier:hardened", "prof:64K", "background_thread:1"]
LOOP = "import random, json\nwhile True:\n    {}"
SCRIPTS = {
    "lists": "x = [[n] * random.randrange(200) for n in range(3000)]",
    "dicts": "x = {str(n): {n: str(n)} for n in range(random.randrange(9000))}",
    "blocks": "x = [bytearray(random.randrange(900000)) for n in range(30)]",
    "huge": "x = [bytearray(random.randrange(40 << 20)) for n in range(3)]",
    "json": "x = json.loads(json.dumps([{'a': n, 'b': str(n)} for n in range(4000)]))",
}


def programs(folder: Path) -> dict[str, list[str]]:
    """Six programs that allocate until they are killed."""
    held = folder / "held"
    source = ROOT / "tests/inspect/held.c"
    subprocess.run(["gcc", "-O1", "-pthread", str(source), "-o", str(held)], check=True)
    python = {
        name: ["/usr/bin/python3", "-c", LOOP.format(script)] for name, script in SCRIPTS.items()
    }
    return python | {"churn": [str(held), "churn"]}


def look(pid: int) -> tuple[int, int]:
    """The difference in bytes, and how much may be."""
    os.kill(pid, signal.SIGSTOP)
    while Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
        time.sleep(0.0005)
    try:
        command = [str(BUILD / "brimful-observer"), "inspect", "--check", str(pid)]
        seen = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        return seen["check"]["difference"], PAGE * len(os.listdir(f"/proc/{pid}/task"))
    finally:
        os.kill(pid, signal.SIGCONT)


def watch(command: list[str], conf: str, moments: int) -> list[tuple[int, int]]:
    environment = os.environ | {
        "LD_PRELOAD": str(BUILD / "libbrimful.so"),
        "BRIMFUL_CONF": conf,
        "PYTHONMALLOC": "malloc",
    }
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        try:
            time.sleep(0.3)
            seen = []
            for _ in range(moments):
                seen.append(look(process.pid))
                time.sleep(0.02)
            return seen
        finally:
            process.kill()


def main() -> int:
    if not (BUILD / "brimful-observer").exists() or shutil.which("gcc") is None:
        print("needs brimful-observer (nlohmann-json3-dev, libdw-dev, libiberty-dev) and gcc")
        return SKIP
    moments = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    faults = 0
    with tempfile.TemporaryDirectory(prefix="brimful-reconcile-") as folder:
        for name, command in programs(Path(folder)).items():
            for conf in CONFIGURATIONS:
                seen = watch(command, conf, moments)
                off = [difference for difference, most in seen if abs(difference) > most]
                worst = max(abs(difference) for difference, _ in seen)
                print(f"{name:8} {conf:20} {len(seen)} moments, worst {worst} bytes", flush=True)
                if off:
                    print(f"  {len(off)} moments off: {off[:5]}")
                    faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
