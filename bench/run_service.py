#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A Java service with inference under load: how much its resident memory grows, by allocator.

The question comes from a search service whose resident memory grew by 2.5 GB under load with glibc
and by 0.5 GB with others. bench/service/Service.java is such a service: a network that finds text in
images runs for each request, sixteen at a time, then it rests. Every allocator has a fresh process
in each round, in an order drawn anew, and gets the same requests. Resident memory is read four times
a second from /proc/PID/smaps_rollup; what is compared is its growth from before the load to the end
of the rest. Java's heap has a fixed size and is touched at the start, so it does not grow.

ONNX Runtime (Maven) and the network (a Python package) are fetched once, into build/service/, and
compared with the checksums below. Raw data go to bench/results/service-DATE.json; the table and the
chart of docs/guide/service.md are made from that and from nothing else.

Exit codes: 0 measured, 1 something failed or a goal is missed, 2 wrong usage, 130 interrupted (what
was measured is shown, not kept).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import benchlib
import pages
from benchlib import BenchError
from brimful.bench import allocators
from brimful.bench.model import Allocator
from rivals import sources
from rivals.recipes import BuildError

try:
    import altair as alt

    from brimful.bench.charts import look, parts
except ImportError:
    sys.exit("run_service: altair is missing: run it by tools/in_venv.sh bench/run_service.py")

PAGE = benchlib.ROOT / "docs" / "guide" / "service.md"
FOLDER = benchlib.ROOT / "build" / "service"
SOURCE = benchlib.ROOT / "bench" / "service" / "Service.java"

RUNTIME = ("com.microsoft.onnxruntime:onnxruntime:1.19.2", "onnxruntime-1.19.2.jar")
RUNTIME_SHA256 = "ddab9113a453c0200ac16caf308b76bc8e84653ddc11969983b783dff34397b2"
NETWORK = ("rapidocr-onnxruntime==1.3.24", "rapidocr_onnxruntime-1.3.24-py3-none-any.whl")
NETWORK_SHA256 = "4282ff0b8db05ad2a53afc8d0ef2e7d879c53022fc61a4f8e84c58d737822cd2"
MODEL = "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx"

THREADS = 16
JAVA = ("java", "-Xms512m", "-Xmx512m", "-XX:+AlwaysPreTouch", "-XX:MaxDirectMemorySize=256m")
EVERY_S = 0.25
STEADY_S = 2.0  # resident memory is the median of the last two seconds of a part
MOST_S = 600
DEFAULT = "glibc,brimful,brimful-background,jemalloc,gperftools,mimalloc3,snmalloc,rpmalloc"
BASELINE, OURS = "glibc", "brimful"
GOAL = 0.25  # of glibc's growth
Data = dict[str, Any]


# --- what it is made of -------------------------------------------------------------------------


def fetched(name: str, sha256: str, command: Sequence[str]) -> Path:
    """The file `name`, fetched by `command` unless it is there. Raises BenchError."""
    path = FOLDER / name
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise BenchError(f"{name} cannot be fetched: {(done.stdout + done.stderr)[-300:]}")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    sources.compare(sha256, found, name)
    return path


def prepare() -> list[str]:
    """The service, compiled, and what it needs; returns its command line without its arguments."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            raise BenchError(f"{program} is missing: tools/install-deps.sh service")
    copy = [f"-Dartifact={RUNTIME[0]}", f"-DoutputDirectory={FOLDER}"]
    runtime = fetched(RUNTIME[1], RUNTIME_SHA256, ["mvn", "-q", "-B", "dependency:copy", *copy])
    download = ["download", "--no-deps", "--dest", str(FOLDER), NETWORK[0]]
    wheel = fetched(NETWORK[1], NETWORK_SHA256, [*sources.pip(), *download])
    if not (FOLDER / MODEL).exists():
        with zipfile.ZipFile(wheel) as archive:
            archive.extract(MODEL, FOLDER)
    compiler = ["javac", "-Xlint:all", "-Werror", "-cp", str(runtime), "-d", str(FOLDER)]
    done = subprocess.run([*compiler, str(SOURCE)], capture_output=True, text=True)
    if done.returncode != 0:
        raise BenchError(f"{SOURCE.name} does not compile: {done.stderr[-500:]}")
    return [*JAVA, "-cp", f"{FOLDER}:{runtime}", "Service", str(FOLDER / MODEL)]


# --- one run ------------------------------------------------------------------------------------


def resident_mib(pid: int) -> float:
    """Rss of the process; raises OSError when it is gone."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(pid)


def environment(allocator: Allocator) -> dict[str, str]:
    preload = {"LD_PRELOAD": allocator.library} if allocator.library else {}
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LD_PRELOAD", "BRIMFUL"))}
    return kept | preload | allocator.settings


def listen(process: subprocess.Popen[str], began: float, said: list[Data]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        said.append(json.loads(line) | {"at_s": time.monotonic() - began})


def sample(allocator: Allocator, command: Sequence[str]) -> Data:
    """One process: what was resident when, and what the service said of itself."""
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        env=environment(allocator),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[Data] = []
    listener = threading.Thread(target=listen, args=(process, began, said))
    listener.start()
    curve: list[tuple[float, float]] = []
    served_by = ""
    try:
        while process.poll() is None:
            try:
                curve.append(
                    (round(time.monotonic() - began, 2), round(resident_mib(process.pid), 1))
                )
                if said and not served_by:
                    served_by = Path(f"/proc/{process.pid}/maps").read_text()
            except OSError:
                pass  # it ends just now
            if time.monotonic() - began > MOST_S:
                raise BenchError(f"{allocator.name}: no end after {MOST_S} s")
            time.sleep(EVERY_S)
    finally:
        process.kill()
        listener.join()
    errors = process.stderr.read() if process.stderr is not None else ""
    if process.returncode != 0 or [part["part"] for part in said] != ["load", "rest", "end"]:
        raise BenchError(f"{allocator.name}: exit code {process.returncode}: {errors[-400:]}")
    if allocator.library and str(Path(allocator.library).resolve()) not in served_by:
        raise BenchError(f"{allocator.name}: the process has not loaded {allocator.library}")
    return figures_of(curve, said) | {"curve": curve, "parts": said}


def figures_of(curve: Sequence[tuple[float, float]], said: Sequence[Data]) -> Data:
    """Before, peak, after and growth in MiB; requests a second and milliseconds from the service."""
    load, rest, end = (part["at_s"] for part in said)

    def steady(until: float) -> float:
        return statistics.median(mib for at, mib in curve if until - STEADY_S <= at <= until)

    before, after = steady(load), steady(end)
    return {
        "before_mib": before,
        "peak_mib": max(mib for _, mib in curve),
        "after_mib": after,
        "growth_mib": after - before,
        "requests_per_s": said[1]["requests"] / said[1]["seconds"],
        "p50_ms": said[1]["p50_ms"],
        "p99_ms": said[1]["p99_ms"],
        "loaded_s": rest - load,
    }


def measure(chosen: Sequence[Allocator], command: Sequence[str], rounds: int) -> Data:
    found: Data = {allocator.name: [] for allocator in chosen}
    for number in range(rounds):
        for allocator in random.sample(list(chosen), len(chosen)):
            found[allocator.name].append(sample(allocator, command))
            growth = found[allocator.name][-1]["growth_mib"]
            print(
                f"round {number + 1} of {rounds}: {allocator.name}: {growth:+.0f} MiB", flush=True
            )
    return found


# --- the page -----------------------------------------------------------------------------------


def middle(samples: Sequence[Data], key: str) -> float:
    return statistics.median(one[key] for one in samples)


def table(found: Data) -> list[str]:
    base = middle(found[BASELINE], "growth_mib")
    about_memory = ["before the load, MiB", "at the peak", "after the rest", "growth", "of glibc's"]
    head = [*about_memory, "requests/s", "p50, ms", "p99, ms"]
    rows = []
    for name, samples in sorted(found.items(), key=lambda item: middle(item[1], "growth_mib")):
        keys = ("before_mib", "peak_mib", "after_mib", "growth_mib")
        cells = [name, *(f"{middle(samples, key):,.0f}" for key in keys)]
        cells.append(f"{middle(samples, 'growth_mib') / base:.2f}")
        cells += [f"{middle(samples, key):.1f}" for key in ("requests_per_s", "p50_ms", "p99_ms")]
        rows.append(cells)
    return pages.table(["allocator", *head], rows)


def share(found: Data) -> float:
    """Our growth over glibc's."""
    return middle(found[OURS], "growth_mib") / middle(found[BASELINE], "growth_mib")


def verdict(found: Data) -> str:
    word = "met" if share(found) <= GOAL else "**missed**"
    return f"Growth of {OURS} over glibc's: {share(found):.2f} (goal: at most {GOAL:.2f}), {word}."


def chart(found: Data) -> alt.TopLevelMixin:
    names = list(found)
    known = [one for one in allocators.known() if one.name in names]
    styles = look.styles(known)
    rows = [
        {"allocator": name, "at": at, "mib": mib, "width": styles[name].width}
        for name in names
        for at, mib in found[name][0]["curve"]
    ]
    lines = alt.Chart(parts.data(rows)).mark_line(aria=False)
    encoded = lines.encode(
        x=alt.X("at:Q", axis=parts.quiet_axis("seconds")),
        y=alt.Y("mib:Q", axis=parts.quiet_axis("resident, MiB")),
        strokeWidth=parts.width(),
        **parts.series(names, styles),
    )
    return encoded.properties(width=640, height=300).configure(**look.config())


def draw(found: Data) -> list[str]:
    meaning = "Resident memory of the service over time, by allocator"
    return pages.picture(PAGE, "service", chart(found), meaning)


def write_page(path: Path) -> None:
    result = json.loads(path.read_text())
    facts, found = result["environment"], result["samples"]
    lines = [
        *draw(found),
        *table(found),
        verdict(found),
        "",
        f"Raw data: [`{path.name}`](../../bench/results/{path.name}), {facts['date']}, commit "
        f"`{facts['commit'][:12]}`; {result['requests']} requests, {THREADS} threads, "
        f"{result['rounds']} rounds (medians; the chart shows the first); {facts['cpu']}, "
        f"{facts['cpus']} CPUs.",
    ]
    PAGE.write_text(pages.filled(PAGE, "run_service.py", "\n".join(lines)))
    print(f"{benchlib.path_for_record(PAGE)}: figures of {path.name}")


def run(options: argparse.Namespace) -> int:
    chosen = allocators.choose(allocators.known(), options.allocators)
    absent = [one for one in chosen if one.missing]
    for one in absent:
        print(f"{one.name} is left out: {one.missing}")
    chosen = [one for one in chosen if not one.missing]
    if not {BASELINE, OURS} <= {one.name for one in chosen}:
        raise BenchError(f"{BASELINE} and {OURS} must be among the allocators")
    command = [*prepare(), str(THREADS), str(options.requests), str(options.rest)]
    found = measure(chosen, command, options.rounds)
    print("\n".join([*table(found), verdict(found)]))
    if not options.keep:
        return 0 if share(found) <= GOAL else 1
    path = benchlib.RESULTS / f"service-{benchlib.stamp()}.json"
    facts = {"what": "bench/run_service.py", "environment": benchlib.environment()}
    used = {"requests": options.requests, "rest_s": options.rest, "rounds": options.rounds}
    who = {"allocators": {one.name: [one.title, one.version, one.origin] for one in chosen}}
    benchlib.save_json(path, facts | used | who | {"samples": found})
    write_page(path)
    return 0 if share(found) <= GOAL else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("file", nargs="?", type=Path, help="a result to show, instead of a new run")
    parser.add_argument("--allocators", default=DEFAULT, metavar="A,B", help=f"default: {DEFAULT}")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--requests", type=int, default=800)
    parser.add_argument("--rest", type=int, default=15, metavar="SECONDS", help="after the load")
    parser.add_argument("--no-keep", dest="keep", action="store_false", help="print, write nothing")
    options = parser.parse_args()
    try:
        if options.file is not None:
            write_page(options.file)
            return 0
        return run(options)
    except (BenchError, BuildError, allocators.AllocatorError, OSError) as error:
        print(f"run_service: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
