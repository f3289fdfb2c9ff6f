#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What it costs to watch a large heap: `brimful top` once a second beside a program that is always at work.

    test_watched_long.py [GIB] [TURNS]      as a measurement: prints its figures (4 GiB, 12 turns)

In turns the program is watched and left alone. Goals: the first picture within a second of processor
time, a twentieth of a processor for the looks, and no slowing of the program by more than 1 % shown.

Environment: BRIMFUL_BUILD, the folder of the build.
"""

from __future__ import annotations

import json
import os
import random
import resource
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BRIMFUL_BUILD", ROOT / "build/release")).resolve()
LIBRARY = BUILD / "libbrimful.so"
OBSERVER = BUILD / "brimful-observer"
SKIP = 77
TURN_S = 4.0
GOAL_SLOWER = 1.01
GOAL_FIRST_S = 1.0
# Of a processor: the looks at the whole heap, and those at the counters in between.
GOAL_SHARE = 0.06

# Fills GIB with small objects, then replaces them at random and prints, each 300,000 times, the
# processor time that this took, ns.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
int main(int count, char** words) {
  (void)count;
  size_t objects = ((size_t)atol(words[1]) << 20) / 280;
  char** kept = malloc(objects * sizeof *kept);
  unsigned long random = 1;
  for (size_t i = 0; i < objects; i++) {
    random = random * 6364136223846793005UL + 1442695040888963407UL;
    size_t bytes = 16 + (random >> 33) % 512;
    kept[i] = memset(malloc(bytes), 1, bytes);
  }
  for (;;) {
    struct timespec from, to;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (int i = 0; i < 300000; i++) {
      random = random * 6364136223846793005UL + 1442695040888963407UL;
      size_t at = (random >> 20) % objects;
      free(kept[at]);
      kept[at] = malloc(16 + (random >> 33) % 512);
      kept[at][0] = 1;
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    printf("%ld\n", (to.tv_sec - from.tv_sec) * 1000000000L + to.tv_nsec - from.tv_nsec);
    fflush(stdout);
  }
}
"""


def processor_seconds() -> float:
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def first_picture(pid: int) -> tuple[float, float]:
    """Seconds by the clock and of processors until `brimful top --once --json` has ended."""
    before, began = processor_seconds(), time.monotonic()
    command = [str(OBSERVER), "stats", str(pid)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, timeout=120)
    return time.monotonic() - began, processor_seconds() - before


def rounds_of(program: subprocess.Popen[bytes], seconds: float) -> list[int]:
    """What the program's rounds cost for so long, and for five rounds at least."""
    assert program.stdout is not None
    pipe = program.stdout.fileno()
    while select.select([pipe], [], [], 0)[0]:  # rounds before this
        os.read(pipe, 1 << 16)
    end = time.monotonic() + seconds
    text = b""
    # The first line is of a round that had begun before, or the rest of one.
    while time.monotonic() < end or text.count(b"\n") < 6:
        text += os.read(pipe, 1 << 16)
    return [int(line) for line in text.split(b"\n")[1:-1]]


def interval(watched: list[float], alone: list[float]) -> tuple[float, float, float]:
    """Ratio of the medians, with a 95 % interval (bootstrap over the turns)."""
    rng = random.Random(1)
    ratios = sorted(
        statistics.median(rng.choices(watched, k=len(watched)))
        / statistics.median(rng.choices(alone, k=len(alone)))
        for _ in range(4000)
    )
    ratio = statistics.median(watched) / statistics.median(alone)
    return ratio, ratios[100], ratios[-101]


def measure(gib: float, turns: int, program: Path) -> bool:
    """Prints the figures; false: a goal is missed."""
    environment = os.environ | {"LD_PRELOAD": str(LIBRARY)}
    command = [str(program), str(round(gib * 1024))]
    costs: dict[bool, list[float]] = {True: [], False: []}
    top = [str(ROOT / "brimful"), "top", "--json"]
    with subprocess.Popen(command, stdout=-1, env=environment) as running:
        try:
            assert running.stdout is not None
            running.stdout.read(1)
            looks = [first_picture(running.pid) for _ in range(3)]
            heap, watch_cpu, watch_s = {}, 0.0, 0.0
            for turn in range(2 * turns):
                is_watched = (turn + turn // 2) % 2 == 0
                if not is_watched:
                    costs[False].append(statistics.median(rounds_of(running, TURN_S)))
                    continue
                before, began = processor_seconds(), time.monotonic()
                observer = subprocess.Popen(
                    [str(OBSERVER), "stats", "--every", "1", str(running.pid)], stdout=-1, text=True
                )
                assert observer.stdout is not None
                heap = json.loads(observer.stdout.readline())["processes"][0]["heap"]
                costs[True].append(statistics.median(rounds_of(running, TURN_S)))
                observer.terminate()
                observer.communicate()
                watch_cpu += processor_seconds() - before - heap["processor_seconds"]
                watch_s += time.monotonic() - began
            before, began = processor_seconds(), time.monotonic()
            subprocess.run(
                [*top, "--once", str(running.pid)], stdout=subprocess.DEVNULL, check=True
            )
            whole_command = time.monotonic() - began
        finally:
            running.kill()
    ratio, low, high = interval(costs[True], costs[False])
    wall, cpu = min(looks)
    share = watch_cpu / watch_s
    print(f"heap: {heap['resident'] / 2**30:.1f} GiB resident, {heap['live_objects']:,} objects")
    print(f"first picture: {wall:.2f} s, {cpu:.2f} s of processor")
    print(f"`brimful top --once`, which takes two looks: {whole_command:.2f} s")
    print(f"watching once a second, behind the first look: {share:.1%} of a processor")
    print(f"the program's rounds, watched / alone, {turns} turns each:")
    print(f"  {ratio:.4f} (95 %: {low:.4f} to {high:.4f})")
    faults = []
    if cpu > GOAL_FIRST_S:
        faults.append(f"the first picture took {cpu:.2f} s of processor")
    if share > GOAL_SHARE:
        faults.append(f"watching took {share:.1%} of a processor")
    if low > GOAL_SLOWER:
        faults.append(f"the program is slowed by {ratio - 1:.1%}")
    for fault in faults:
        print(f"FAULT: {fault}")
    return not faults


def main(words: list[str]) -> int:
    """Exit code of the measurement."""
    if not OBSERVER.exists() or shutil.which("gcc") is None:
        print("brimful-observer is not built, or there is no gcc")
        return SKIP
    gib = float(words[0]) if words else 4.0
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(lines["MemAvailable"].split()[0]) / 2**20
    if free < 1.3 * gib:
        print(f"{gib} GiB are wanted and {free:.1f} are free")
        return SKIP
    with tempfile.TemporaryDirectory(prefix="brimful-watched-") as folder:
        source, program = Path(folder) / "program.c", Path(folder) / "program"
        source.write_text(PROGRAM)
        command = ["gcc", "-O1", "-fno-builtin", str(source), "-o", str(program)]
        subprocess.run(command, check=True)
        return 0 if measure(gib, int(words[1]) if len(words) > 1 else 12, program) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
