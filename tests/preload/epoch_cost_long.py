#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What it costs to ask for the heap's numbers by name: a look by the heap's size, and who asks all the time.

For heaps of objects of 16 to 2,016 bytes: the processor time of the first look, that of a number, and,
asked again and again for two seconds, the share of the processor that goes into looks. The share is to
stay below 2 % and a little, whatever the size, where looks take more than half a millisecond.

    epoch_cost_long.py [FILE]    FILE: the figures, as JSON

Environment: BRIMFUL_LIB, the library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("BRIMFUL_LIB", ROOT / "build/release/libbrimful.so")).resolve()
SIZES_MIB = (10, 100, 1000, 3000)
RUNS = 5
MOST_SHARE = 0.03
PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "brimful/brimful.h"
static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
static double used(void) { return seconds(CLOCK_THREAD_CPUTIME_ID); }
int main(int count, char** arguments) {
  const size_t whole = strtoull(arguments[count - 1], NULL, 10) << 20;
  uint32_t random = 1;
  for (size_t held = 0; held < whole;) {
    random = random * 1664525 + 1013904223;
    const size_t bytes = 16 + (random >> 16) % 2000;
    memset(malloc(bytes), 1, bytes);
    held += bytes;
  }
  uint64_t epoch = 1;
  size_t size = sizeof epoch;
  double begun = used();
  if (brimful_set("epoch", &epoch, sizeof epoch) != 0) return 1;
  const double first = used() - begun;
  begun = used();
  for (int i = 0; i < 100000; i++) brimful_get("stats.resident", &epoch, &size);
  const double number = (used() - begun) / 100000;
  double looks = 0;
  const double until = seconds(CLOCK_MONOTONIC) + 2;
  const double from = seconds(CLOCK_MONOTONIC);
  struct timespec pause = {0, 100000};
  while (seconds(CLOCK_MONOTONIC) < until) {
    begun = used();
    brimful_set("epoch", &epoch, sizeof epoch);
    looks += used() - begun;
    nanosleep(&pause, NULL);
  }
  brimful_get("epoch", &epoch, &size);
  const double share = looks / (seconds(CLOCK_MONOTONIC) - from);
  printf("%.9f %.9f %.9f %lu\n", first, number, share, (unsigned long)epoch);
}
"""


def main() -> int:
    rows, faults = [], 0
    with tempfile.TemporaryDirectory(prefix="brimful-epoch-") as folder:
        source, program = Path(folder, "epoch.c"), Path(folder, "epoch")
        source.write_text(PROGRAM)
        options = ["-O2", "-fno-builtin", "-I", str(ROOT / "include"), str(source)]
        link = ["-o", str(program), str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"]
        subprocess.run(["gcc", *options, *link], check=True)
        for mib in SIZES_MIB:
            for _ in range(RUNS):
                done = subprocess.run(
                    [program, str(mib)], capture_output=True, text=True, check=True, timeout=120
                )
                first, number, share, looks = map(float, done.stdout.split())
                rows.append([mib, first, number, share, int(looks)])
                is_dear = first > 0.0005
                faults += is_dear and share > MOST_SHARE
                print(
                    f"{mib:5} MiB: first look {first * 1e3:6.3f} ms, a number {number * 1e9:4.0f} ns, "
                    f"asked all the time {share:6.2%} of a processor, {looks:.0f} looks",
                    flush=True,
                )
    if len(sys.argv) > 1:
        columns = ["heap_mib", "first_look_s", "number_s", "share_of_processor", "looks"]
        content = {"study": "epoch-cost", "columns": columns, "rows": rows}
        Path(sys.argv[1]).write_text(json.dumps(content) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
