#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Ten real programs, sampled from start to end: the estimated total of their bytes against the exact one.

A library of ours stands before brimful and counts each block (`_exact_totals.cpp`), in the same run. Each
program runs RUNS times in each front end; in each run the estimate differs from the total by some standard
errors, which the exact sizes give (Horvitz and Thompson). Over the runs these differences must average to
0 within 2 standard errors of their mean in four of five rows (one in twenty lies outside by chance) and
within 4 in all, and they must scatter as the arithmetic says.

    prof_totals_long.py [RUNS [FILE]]    FILE: every run, as JSON

Environment: BRIMFUL_LIB, the library.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("BRIMFUL_LIB", ROOT / "build/release/libbrimful.so")).resolve()
SKIP = 77
INTERVAL = 16384
CONTROL = struct.Struct("<QII14Q")  # meta::SampleControl
CONTROL_AT = 32 + 16
ALLOCATED_BYTES, LOST = 13, 11
NUMBERS = "\n".join(str(n * 7919 % 100003) for n in range(60000))
JSON = "[" + ",".join(f'{{"a":{n},"b":"{n:08}"}}' for n in range(6000)) + "]"
SQL = (
    "create table t(a,b); with recursive c(n) as (select 1 union all select n+1 from c where n<30000) "
    "insert into t select n, hex(n) from c; create index i on t(b); select count(*), max(b) from t;"
)
PYTHON = "import json; x = [json.loads(json.dumps({str(n): [n] * 9})) for n in range(9000)]"
PERL = "my %h; $h{$_ % 5000} .= 'x' x ($_ % 50) for 1..90000; print scalar keys %h;"
AWK = "BEGIN { for (n = 0; n < 60000; n++) a[n % 3000] = a[n % 3000] n; print length(a[7]) }"
BASH = "for n in {1..6000}; do a[n % 700]+=x$n; done; echo ${#a[@]}"
SOURCE = (
    '#include <map>\n#include <string>\nstd::map<std::string, int> m; int f() { return m["a"]; }\n'
)


@dataclass(frozen=True)
class Program:
    """What is run, and what it reads."""

    command: list[str]
    text: str = ""


def programs(folder: Path) -> dict[str, Program]:
    """Programs of one process each, of many libraries and languages."""
    (folder / "source.cpp").write_text(SOURCE)
    compiler = subprocess.run(
        ["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True
    ).stdout.strip()
    listed = {
        "python3": Program(["/usr/bin/python3", "-c", PYTHON]),
        "perl": Program(["perl", "-e", PERL]),
        "bash": Program(["bash", "-c", BASH]),
        "mawk": Program(["mawk", AWK]),
        "sqlite3": Program(["sqlite3", ":memory:", SQL]),
        "sort": Program(["sort", "-n", "--parallel=1"], NUMBERS),
        "jq": Program(["jq", "-c", "map(.b)|length"], JSON),
        "git": Program(["git", "-C", str(ROOT), "diff", "--no-index", "/dev/null", "README.md"]),
        "bc": Program(["bc"], "2^9000 % 7^900; for (i = 0; i < 3000; ++i) x += i * i; x\n"),
        "cc1plus": Program([compiler, "-quiet", str(folder / "source.cpp"), "-o", "/dev/null"]),
        "objdump": Program(["objdump", "-d", "/bin/true"]),
        "openssl": Program(["openssl", "speed", "-seconds", "1", "-bytes", "64", "sha256"]),
    }
    return {name: p for name, p in listed.items() if shutil.which(p.command[0])}


def run(program: Program, front_end: str, folder: Path, shim: Path) -> tuple[float, float, int]:
    """The exact bytes, the standard error of their estimate, and the estimate."""
    for old in [*folder.glob("*.samples"), *folder.glob("totals")]:
        old.unlink()
    environment = os.environ | {
        "LD_PRELOAD": f"{shim}:{LIBRARY}",
        "BRIMFUL_CONF": f"prof:{INTERVAL},front_end:{front_end},prof_file:{folder}/%p.samples",
        "EXACT_TOTALS": str(folder / "totals"),
        "EXACT_INTERVAL": str(INTERVAL),
        "PYTHONMALLOC": "malloc",
    }
    subprocess.run(
        program.command, env=environment, input=program.text.encode(), capture_output=True
    )
    (samples,) = folder.glob("*.samples")
    control = CONTROL.unpack_from(samples.read_bytes(), CONTROL_AT)
    if control[LOST] != 0:
        raise SystemExit(f"{program.command[0]}: {control[LOST]} samples were lost")
    _, total, variance = map(float, (folder / "totals").read_text().split())
    return total, math.sqrt(variance), control[ALLOCATED_BYTES]


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    if not shutil.which("g++"):
        print("g++ is not installed")
        return SKIP
    means, scatter, rows = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shim = folder / "exact_totals.so"
        source = ROOT / "tests/preload/_exact_totals.cpp"
        subprocess.run(["g++", "-O2", "-shared", "-fPIC", source, "-o", shim], check=True)
        listed = programs(folder)
        if len(listed) < 10:
            print(f"only {len(listed)} of the programs are installed: {', '.join(listed)}")
            return SKIP
        print(
            f"{'program':10} {'front end':9} {'exact bytes':>14} {'estimate':>14} {'mean, s.e.':>10} {'within 2':>8}"
        )
        for title, program in listed.items():
            for front_end in ("percpu", "thread"):
                seen = [run(program, front_end, folder, shim) for _ in range(runs)]
                away = [(estimate - total) / error for total, error, estimate in seen]
                means.append(statistics.mean(away) * math.sqrt(runs))
                scatter += away
                total, estimate = (statistics.mean(row[n] for row in seen) for n in (0, 2))
                rows.append({"program": title, "front_end": front_end, "runs": seen})
                within = sum(abs(value) <= 2 for value in away)
                print(
                    f"{title:10} {front_end:9} {total:14,.0f} {estimate:14,.0f} {means[-1]:10.2f} {within:4}/{runs}",
                    flush=True,
                )
    if len(sys.argv) > 2:
        columns = ["exact_bytes", "standard_error_bytes", "estimated_bytes"]
        content = {
            "study": "prof-totals",
            "interval_bytes": INTERVAL,
            "columns": columns,
            "rows": rows,
        }
        Path(sys.argv[2]).write_text(json.dumps(content) + "\n")
    spread = math.sqrt(statistics.mean(value * value for value in scatter))
    outside = sum(abs(value) > 2 for value in means)
    print(
        f"{outside} of {len(means)} rows beyond 2 standard errors, the farthest {max(map(abs, means)):.2f}"
    )
    print(f"single runs scatter by {spread:.3f} standard errors, {len(scatter)} runs")
    is_right = max(map(abs, means)) < 4 and outside <= len(means) // 5 and 0.8 < spread < 1.2
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
