# SPDX-License-Identifier: MIT
"""A Java service with inference under load: how much its resident memory grows, by allocator.

The question comes from a search service whose resident memory grew by 2.5 GB under load with glibc
and by 0.5 GB with others. Service.java is such a service: a network that finds text in images runs for
each request, sixteen at a time, then it rests. Every allocator has a fresh process in each round, in an
order drawn anew, and gets the same requests. Resident memory is read four times a second from
/proc/PID/smaps_rollup; what is compared is its growth from before the load to the end of the rest.
Java's heap has a fixed size and is touched at the start, so it does not grow.

ONNX Runtime (Maven) and the network (a Python package) are fetched once, into build/service/, and
compared with the checksums below.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import statistics
import subprocess
import threading
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from brimful.bench import launch
from brimful.bench.model import Allocator
from brimful.bench.study import contenders, records
from brimful.bench.study.model import ROOT, Data, Option, Run, Study, StudyError
from brimful.bench.study.pages import Place
from brimful.bench.study.pages import table as page_table
from rivals import sources
from rivals.recipes import BuildError

FOLDER = ROOT / "build" / "service"
SOURCE = Path(__file__).with_name("Service.java")

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


# --- what it is made of -------------------------------------------------------------------------


def fetched(name: str, sha256: str, command: Sequence[str]) -> Path:
    """The file `name`, fetched by `command` unless it is there. Raises StudyError."""
    path = FOLDER / name
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise StudyError(f"{name} cannot be fetched: {(done.stdout + done.stderr)[-300:]}")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    sources.compare(sha256, found, name)
    return path


def prepare() -> list[str]:
    """The service, compiled, and what it needs; returns its command line without its arguments."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            raise StudyError(f"{program} is missing: tools/install-deps.sh service")
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
        raise StudyError(f"{SOURCE.name} does not compile: {done.stderr[-500:]}")
    return [*JAVA, "-cp", f"{FOLDER}:{runtime}", "Service", str(FOLDER / MODEL)]


# --- one run ------------------------------------------------------------------------------------


def resident_mib(pid: int) -> float:
    """Rss of the process; raises OSError when it is gone."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(pid)


def listen(process: subprocess.Popen[str], began: float, said: list[Data]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        said.append(json.loads(line) | {"at_s": time.monotonic() - began})


def sample(allocator: Allocator, command: Sequence[str]) -> Data:
    """One process: what was resident when, and what the service said of itself."""
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        env=launch.environment(allocator),
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
                raise StudyError(f"{allocator.name}: no end after {MOST_S} s")
            time.sleep(EVERY_S)
    finally:
        process.kill()
        listener.join()
    errors = process.stderr.read() if process.stderr is not None else ""
    if process.returncode != 0 or [part["part"] for part in said] != ["load", "rest", "end"]:
        raise StudyError(f"{allocator.name}: exit code {process.returncode}: {errors[-400:]}")
    if allocator.library and str(Path(allocator.library).resolve()) not in served_by:
        raise StudyError(f"{allocator.name}: the process has not loaded {allocator.library}")
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


def measure(run: Run) -> None:
    chosen = contenders.chosen(run)
    if not {BASELINE, OURS} <= {one.name for one in chosen}:
        raise StudyError(f"{BASELINE} and {OURS} must be among the allocators")
    options = run.options
    try:
        command = [*prepare(), str(THREADS), str(options.requests), str(options.rest)]
    except BuildError as error:
        raise StudyError(str(error)) from None
    found: Data = run.record.results.setdefault("samples", {one.name: [] for one in chosen})
    generator = random.Random(options.seed)
    for number in range(options.rounds):
        for one in generator.sample(chosen, len(chosen)):
            found[one.name].append(sample(one, command))
            growth = found[one.name][-1]["growth_mib"]
            print(
                f"round {number + 1} of {options.rounds}: {one.name}: {growth:+.0f} MiB", flush=True
            )


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
    return page_table(["allocator", *head], rows)


def share(found: Data) -> float:
    """Our growth over glibc's."""
    return middle(found[OURS], "growth_mib") / middle(found[BASELINE], "growth_mib")


def verdict(found: Data) -> str:
    word = "met" if share(found) <= GOAL else "**missed**"
    return f"Growth of {OURS} over glibc's: {share(found):.2f} (goal: at most {GOAL:.2f}), {word}."


def told(record: records.Record) -> list[str]:
    """What was measured; nothing if it was ended before both had a turn."""
    found = {name: samples for name, samples in record.results["samples"].items() if samples}
    if not {BASELINE, OURS} <= found.keys():
        return ["Ended before both glibc and brimful had a turn."]
    return [*table(found), verdict(found)]


def figures(place: Place, files: Mapping[str, Path]) -> dict[str, list[str]]:
    from studies.service import charts

    path = files["service"]
    record = records.load(path)
    facts, found, options = record.environment, record.results["samples"], record.options
    meaning = "Resident memory of the service over time, by allocator"
    source = (
        f"{place.source(path, facts)}; {options['requests']} requests, {THREADS} threads, "
        f"{options['rounds']} rounds (medians; the chart shows the first); {facts['cpu']}, "
        f"{facts['cpus_allowed']} CPUs."
    )
    drawn = place.chart("service", charts.chart(found), meaning)
    return {"": [*drawn, *told(record), "", source]}


STUDY = Study(
    "service",
    title="How much does a Java service with inference grow under load?",
    time="15 minutes",
    short_time="2 minutes",
    measure=measure,
    show=told,
    figures=figures,
    pages=("docs/guide/service.md",),
    options={
        "allocators": contenders.option(DEFAULT, f"{BASELINE},{OURS}"),
        "rounds": Option("turns of each allocator", 2, 1),
        "requests": Option("requests of each run", 800, 200),
        "rest": Option("seconds of rest after the load", 15, 5),
    },
    needs=("tools/install-deps.sh bench", "tools/install-deps.sh service", "make lib"),
)
