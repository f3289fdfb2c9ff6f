# SPDX-License-Identifier: MIT
"""The programs of the demonstration, and one run of each under one allocator.

A run counts only if it was what it claims to be: the program must succeed, and its /proc/PID/maps (a
compiler driver's cc1plus included) must show libbrimful under brimful and must not show it under the
system's allocator.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from brimful.bench import launch, machine
from brimful.bench.model import Allocator
from brimful.bench.study.model import ROOT, WORK, Data, StudyError

PYTHON = "/usr/bin/python3"
PROGRAM_SECONDS = 600  # seconds are usual: a machine that is busy is slow, but no failure
REDIS_SECONDS = 300
REDIS_REQUESTS = 300_000  # per kind of request: about 3 s a run, below which runs differ too much


@dataclass
class Program:
    """One program and what has been measured of it."""

    part: str
    name: str
    what: str
    process: str  # name of the process that does the work, whose maps must prove the allocator
    sample: Callable[[Allocator], Data]
    samples: list[dict[str, Data]] = field(default_factory=list)  # one per whole round
    failure: str = ""


def read_measurement(text: str) -> Data:
    """The JSON that measure printed; raises StudyError if the command did not succeed."""
    try:
        data: Data = json.loads(text)
    except ValueError:
        raise StudyError("the measuring launcher said nothing") from None
    if data["timed_out"]:
        raise StudyError(f"no end after {data['wall_s']:.0f} s")
    if data["signal"]:
        raise StudyError(f"killed by signal {data['signal']}")
    if data["exit_code"] != 0:
        raise StudyError(f"exit code {data['exit_code']}")
    data["page_faults"] = data["minor_faults"] + data["major_faults"]
    return data


def run_command(
    allocator: Allocator, command: list[str], variables: Mapping[str, str] | None = None
) -> Data:
    """Measure `command` under `allocator`; what it printed is in the sample as "output"."""
    output = WORK / "output.txt"
    line = launch.measuring(
        allocator, command, output, variables=variables, timeout_s=PROGRAM_SECONDS
    )
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT)
    try:
        data = read_measurement(done.stdout)
    except StudyError as error:
        last = launch.last_line(done.stderr)
        raise StudyError(f"{error}{': ' + last if last else ''}") from None
    return data | {"output": output.read_text(errors="replace")}


def run_redis(allocator: Allocator) -> Data:
    """One redis-server under `allocator`, loaded by redis-benchmark over a unix socket.

    Wall time and throughput are the client's, the rest is the server's own. The client always runs
    on the system's allocator. Nothing is written to disk and no port is opened.
    """
    folder = Path(tempfile.mkdtemp(prefix="brimful-redis-"))
    socket = folder / "s"
    server = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", ""]
    server += ["--appendonly", "no", "--loglevel", "warning", "--dir", str(folder)]
    client = ["redis-benchmark", "-s", str(socket), "-c", "20", "-P", "16", "-d", "200", "--csv"]
    client += ["-r", "50000", "-n", str(REDIS_REQUESTS)]
    client += ["-t", "set,get,lpush,rpop,sadd,hset,zadd"]
    shut_down = ["redis-cli", "-s", str(socket), "shutdown", "nosave"]
    line = launch.measuring(allocator, server, folder / "log", timeout_s=2 * REDIS_SECONDS)
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 10
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                log = (folder / "log").read_text(errors="replace").strip() or "no message"
                raise StudyError(f"redis-server did not start: {log.splitlines()[-1]}")
            time.sleep(0.01)
        start = time.monotonic()
        done = subprocess.run(client, capture_output=True, text=True, timeout=REDIS_SECONDS)
        wall = time.monotonic() - start
        rates = [
            float(row.split(",")[1].strip('"'))
            for row in done.stdout.splitlines()
            if row.count(",") > 2 and not row.startswith('"test"')
        ]
        if done.returncode != 0 or not rates:
            raise StudyError(f"redis-benchmark failed: {done.stderr.strip() or done.returncode}")
        subprocess.run(shut_down, capture_output=True, timeout=20)
        said, _ = process.communicate(timeout=20)
        data = read_measurement(said)
    except subprocess.TimeoutExpired as error:
        raise StudyError(f"no answer from {error.cmd[0]} after {error.timeout:.0f} s") from None
    finally:
        if process.poll() is None:
            process.terminate()  # the launcher then kills the server's process group
            process.wait(timeout=10)
        shutil.rmtree(folder, ignore_errors=True)
    rate = len(rates) * REDIS_REQUESTS / wall
    return data | {"wall_s": wall, "requests_per_s": rate, "output": ""}


def proof(process: str, allocator: Allocator, library: str, data: Data) -> str:
    """Why `data` does not show that `allocator` served the program's `process`, or "".

    `library` is brimful's, which must not be where another allocator was meant.
    """
    if not any(one["name"].startswith(process) for one in data["processes"]):
        return f"never saw the maps of {process}"
    real = str(Path(library).resolve())
    for one in data["processes"]:
        mapped = real in one["allocators"]
        if allocator.library and not mapped:
            return f"{one['name']} ran without {Path(library).name}"
        if not allocator.library and mapped:
            return f"{one['name']} of the system's run had {Path(library).name}"
    return ""


def heaviest_source() -> Path:
    """The file of this project that costs the compiler most, judged by its preprocessed size.

    Files that need more than a compiler (a test framework) do not count.
    """
    candidates = [ROOT / "bench" / "workloads" / "heavy.cpp"]
    for folder in ("src", "tests/unit"):
        found = sorted((ROOT / folder).rglob("*.cpp"), key=lambda path: -path.stat().st_size)
        candidates += [path for path in found if "gtest" not in path.read_text()][:3]

    def size(path: Path) -> int:
        return len(machine.said(["g++", *compile_flags(), "-E", str(path)]))

    return max(candidates, key=size)


def compile_flags() -> list[str]:
    return ["-std=c++20", "-O2", f"-I{ROOT / 'include'}", f"-I{ROOT / 'src'}"]


def programs(parts: list[str]) -> Iterator[Program]:
    """Those of `parts` that can be run here."""
    if "compiler" in parts and shutil.which("g++"):
        source = heaviest_source()
        command = ["g++", *compile_flags(), "-c", "-o", "/dev/null", str(source)]
        yield Program(
            "compiler",
            "C++ compiler",
            f"g++ -std=c++20 -O2 -c {source.relative_to(ROOT)}",
            "cc1plus",
            lambda allocator: run_command(allocator, command),
        )
    script = str(ROOT / "bench" / "workloads" / "object_graph.py")
    for kind, what in (
        ("malloc", "PYTHONMALLOC=malloc: every object is a malloc"),
        ("pymalloc", "as installed: pymalloc asks malloc for arenas and large blocks only"),
    ):
        variables = {"PYTHONMALLOC": kind, "PYTHONHASHSEED": "0"}

        def sample(allocator: Allocator, variables: dict[str, str] = variables) -> Data:
            return run_command(allocator, [PYTHON, script], variables)

        if kind in parts:
            name = f"python3, {kind}"
            yield Program(kind, name, f"object_graph.py, {what}", "python3", sample)
    if "redis" in parts and shutil.which("redis-server") and shutil.which("redis-benchmark"):
        yield Program(
            "redis",
            "redis-server",
            f"redis-benchmark, 7 tests × {REDIS_REQUESTS:,} requests, unix socket; server's own costs",
            "redis",
            run_redis,
        )
