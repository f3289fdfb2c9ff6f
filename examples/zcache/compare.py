#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""zcache on the handle pool and on every malloc at hand, one fresh process after the other.

    compare.py [--rounds N] [--settle SECONDS] [--json FILE] [--only NAME,…] [-- FOLDER…]

Runs build/release/examples/zcache/zcache for each workload and each allocator, in turns, and prints
tables for each workload: resident bytes per live byte in each state (the median of the rounds), and
the handle pool's as a share of the best malloc's. The mallocs are glibc's, the rivals of
build/rivals/manifest.json and our own. That the right one was measured is what zcache says of
itself (the file that `malloc` comes from).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["/usr/include", "/usr/share/doc", "/usr/lib"]
RIVALS = ["jemalloc", "mimalloc2", "mimalloc3", "tcmalloc-percpu", "snmalloc"]
WORKLOADS = {
    "pages-zstd": ["--codec", "zstd"],
    "pages-lz4": ["--codec", "lz4"],
    "pages-lru": ["--codec", "lz4", "--limit", "64M", "--erase", "0"],
    "objects-64k": ["--codec", "lz4", "--piece", "64K"],
}
STATES = ["loaded", "churned", "thinned"]


@dataclass(frozen=True)
class Subject:
    name: str
    store: str
    library: str = ""  # to be preloaded
    settings: dict[str, str] = field(default_factory=dict)


def subjects(rivals: Path, brimful: Path) -> list[Subject]:
    found = [Subject("handle pool", "handles"), Subject("glibc", "malloc")]
    if brimful.exists():
        found.append(Subject("brimful", "malloc", str(brimful)))
    else:
        print(f"left out: brimful: no {brimful}", file=sys.stderr)
    manifest = rivals / "manifest.json"
    entries = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else []
    libraries = {entry["name"]: entry for entry in entries if entry["library"]}
    for name in RIVALS:
        if name in libraries:
            entry = libraries[name]
            found.append(Subject(name, "malloc", entry["library"], entry["settings"]))
        else:
            print(f"left out: {name}: not in {manifest}", file=sys.stderr)
    return found


def measure(program: Path, subject: Subject, arguments: list[str]) -> dict[str, Any]:
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | subject.settings
    if subject.library:
        environment["LD_PRELOAD"] = subject.library
    command = [str(program), "--store", subject.store, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{subject.name}: exit code {done.returncode}\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    meant = Path(subject.library).name if subject.library else "libc.so.6"
    if result["malloc"] != meant:
        raise SystemExit(f"{subject.name}: malloc came from {result['malloc']}, not {meant}")
    return result | {"subject": subject.name}


def table(results: list[dict[str, Any]], which: str) -> list[str]:
    """Markdown: a row for each subject; `which` is resident_per_live or settled_per_live."""
    names = list(dict.fromkeys(result["subject"] for result in results))
    medians: dict[str, list[float]] = {}
    for name in names:
        own = [result["states"] for result in results if result["subject"] == name]
        medians[name] = [
            statistics.median(states[i][which] for states in own) for i in range(len(STATES))
        ]
    lines = [f"| | {' | '.join(STATES)} | put, µs | get, µs |", "|---|---|---|---|---|---|"]
    for name in names:
        own = [result for result in results if result["subject"] == name]
        times = [
            statistics.median(r[call]["median"] for r in own) / 1000
            for call in ("put_ns", "get_ns")
        ]
        figures = [f"{value:.3f}" for value in medians[name]] + [f"{value:.1f}" for value in times]
        lines.append(f"| {name} | {' | '.join(figures)} |")
    mallocs = [name for name in names if name != "handle pool"]
    if "handle pool" in names and mallocs:
        best = [min(medians[name][i] for name in mallocs) for i in range(len(STATES))]
        shares = [f"{medians['handle pool'][i] / best[i]:.3f}" for i in range(len(STATES))]
        lines.append(f"| handle pool ÷ best malloc | {' | '.join(shares)} | | |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="zcache on the handle pool and on every malloc.")
    build = ROOT / "build/release"
    parser.add_argument("--program", type=Path, default=build / "examples/zcache/zcache")
    parser.add_argument("--brimful", type=Path, default=build / "libbrimful.so")
    parser.add_argument("--rivals", type=Path, default=ROOT / "build/rivals", metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bytes", default="256M", help="of files, as zcache's option")
    parser.add_argument("--settle", type=float, default=0, help="as zcache's option")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--only", default="", help="subjects, separated by commas")
    parser.add_argument("--json", type=Path, help="where the raw data goes")
    parser.add_argument("folders", metavar="FOLDER", nargs="*", default=FOLDERS)
    options = parser.parse_args()
    for name in options.workloads.split(","):
        if name not in WORKLOADS:
            parser.error(f"no workload {name!r}; there are: {', '.join(WORKLOADS)}")
    if not options.program.exists():
        print(
            f"{options.program} is not built: it needs libzstd-dev and liblz4-dev", file=sys.stderr
        )
        return 1

    wanted = [name for name in options.only.split(",") if name]
    chosen = [
        s for s in subjects(options.rivals, options.brimful) if not wanted or s.name in wanted
    ]
    raw: dict[str, list[dict[str, Any]]] = {}
    for workload in options.workloads.split(","):
        arguments = [*WORKLOADS[workload], "--bytes", options.bytes]
        arguments += ["--settle", str(options.settle), *options.folders]
        raw[workload] = []
        for round_number in range(options.rounds):
            for subject in chosen:
                print(f"{workload}: round {round_number + 1}: {subject.name}", file=sys.stderr)
                raw[workload].append(measure(options.program, subject, arguments))
        for which in ["resident_per_live"] + ["settled_per_live"] * (options.settle > 0):
            print(
                "\n".join(["", f"{workload}, {which}", "", *table(raw[workload], which)]),
                flush=True,
            )
    if options.json:
        about = {"machine": os.uname().machine, "kernel": os.uname().release}
        about |= {"cpus": str(os.cpu_count()), "folders": " ".join(options.folders)}
        options.json.write_text(json.dumps({"about": about, "results": raw}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
