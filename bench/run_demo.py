#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Real programs on real input, alternately under the system's allocator and under brimful.

This is the main job of `make run`. Each round runs every program once under each allocator, the
order drawn anew, so that a machine that gets slower or faster meanwhile does it to both. What is
compared are the two runs of one round; the table gives the median of those ratios and its interval.

A run counts only if it was what it claims to be: the program must succeed, print what it printed
under the other allocator, and its /proc/PID/maps (a compiler driver's cc1plus included) must show
libbrimful under brimful and must not show it under the system's allocator. Anything else makes the
program's row FAILED and the exit code 1.

Exit codes: 0 all measured, 1 something failed, 2 wrong usage, 130 interrupted (after showing what
had been measured).
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import benchlib
from benchlib import ROOT, WORK, Allocator, BenchError
from brimful import terminal  # found by benchlib
from brimful.bench import machine

try:
    from rich import box
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table
except ImportError:
    sys.exit("run_demo: rich is missing: apt-get install python3-rich python3-typer")

SYSTEM = "system"
BRIMFUL = "brimful"
PYTHON = "/usr/bin/python3"
PROGRAM_SECONDS = 600  # seconds are usual: a machine that is busy is slow, but no failure
REDIS_SECONDS = 300
REDIS_REQUESTS = 300_000  # per kind of request: about 3 s a run, below which runs differ too much
PLAIN_WIDTH = 110
SECONDS = 110  # with installing and building, `make run` has 3 minutes
LEAST_PAIRS = 5  # of fewer nothing can be said


@dataclass
class Program:
    """One program of the demonstration and what has been measured of it."""

    name: str
    what: str
    process: str  # name of the process that does the work, whose maps must prove the allocator
    sample: Callable[[Allocator], dict[str, Any]]
    samples: list[dict[str, dict[str, Any]]] = field(default_factory=list)  # one per whole round
    failure: str = ""


# --- one run ------------------------------------------------------------------------------------


def read_measurement(text: str) -> dict[str, Any]:
    """The JSON that measure printed; raises BenchError if the command did not succeed."""
    try:
        data: dict[str, Any] = json.loads(text)
    except ValueError:
        raise BenchError("the measuring launcher said nothing") from None
    if data["timed_out"]:
        raise BenchError(f"no end after {data['wall_s']:.0f} s")
    if data["signal"]:
        raise BenchError(f"killed by signal {data['signal']}")
    if data["exit_code"] != 0:
        raise BenchError(f"exit code {data['exit_code']}")
    data["page_faults"] = data["minor_faults"] + data["major_faults"]
    return data


def run_command(
    allocator: Allocator, command: list[str], variables: dict[str, str] | None = None
) -> dict[str, Any]:
    """Measure `command` under `allocator`; what it printed is in the sample as "output"."""
    output = WORK / "output.txt"
    done = subprocess.run(
        benchlib.measure_command(
            allocator, command, variables=variables, output=output, timeout=PROGRAM_SECONDS
        ),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    try:
        data = read_measurement(done.stdout)
    except BenchError as error:
        last = done.stderr.strip().rsplit("\n", 1)[-1]
        raise BenchError(f"{error}{': ' + last if last else ''}") from None
    data["output"] = output.read_text(errors="replace")
    return data


def run_redis(allocator: Allocator) -> dict[str, Any]:
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
    line = benchlib.measure_command(
        allocator, server, output=folder / "log", timeout=2 * REDIS_SECONDS
    )
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 10
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                log = (folder / "log").read_text(errors="replace").strip() or "no message"
                raise BenchError(f"redis-server did not start: {log.splitlines()[-1]}")
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
            raise BenchError(f"redis-benchmark failed: {done.stderr.strip() or done.returncode}")
        subprocess.run(shut_down, capture_output=True, timeout=20)
        said, _ = process.communicate(timeout=20)
        data = read_measurement(said)
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"no answer from {error.cmd[0]} after {error.timeout:.0f} s") from None
    finally:
        if process.poll() is None:
            process.terminate()  # the launcher then kills the server's process group
            process.wait(timeout=10)
        shutil.rmtree(folder, ignore_errors=True)
    data["wall_s"] = wall
    data["requests_per_s"] = len(rates) * REDIS_REQUESTS / wall
    data["output"] = ""
    return data


def proof(program: Program, allocator: Allocator, data: dict[str, Any]) -> str:
    """Why `data` does not show that `allocator` served the program, or ""."""
    workers = [p for p in data["processes"] if p["name"].startswith(program.process)]
    if not workers:
        return f"never saw the maps of {program.process}"
    library = str((allocator.library or benchlib.LIBRARY).resolve())
    for process in data["processes"]:
        mapped = library in process["allocators"]
        name = process["name"]
        if allocator.library is not None and not mapped:
            return f"{name} ran without {Path(library).name}"
        if allocator.library is None and mapped:
            return f"{name} of the system's run had {Path(library).name}"
    return ""


# --- programs -----------------------------------------------------------------------------------


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


def programs() -> Iterator[Program]:
    """Everything that can be run here; what cannot is said on stderr."""
    if shutil.which("g++"):
        source = heaviest_source()
        command = ["g++", *compile_flags(), "-c", "-o", "/dev/null", str(source)]
        yield Program(
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

        def sample(allocator: Allocator, variables: dict[str, str] = variables) -> dict[str, Any]:
            return run_command(allocator, [PYTHON, script], variables)

        yield Program(f"python3, {kind}", f"object_graph.py, {what}", "python3", sample)
    if shutil.which("redis-server") and shutil.which("redis-benchmark"):
        yield Program(
            "redis-server",
            f"redis-benchmark, 7 tests × {REDIS_REQUESTS:,} requests, unix socket; server's own costs",
            "redis",
            run_redis,
        )
    else:
        print("run_demo: redis-server is not installed: no redis row", file=sys.stderr)


# --- the rounds ---------------------------------------------------------------------------------


@contextmanager
def progress(console: Console, total: int) -> Iterator[Callable[[str, str], None]]:
    """A function (what runs now, what the last run gave) → shown: a bar on a terminal, else lines.

    `total` is the number of runs that are certain; further ones count beyond it.
    """
    if not console.is_terminal:
        count = 0

        def line(now: str, last: str) -> None:
            nonlocal count
            if last:
                count += 1
                place = f"{count}/{max(count, total)}"
                console.print(f"[{place}] {last}", highlight=False, markup=False)

        yield line
        return
    what = TextColumn("{task.description}")
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), what)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)

        def show(now: str, last: str) -> None:
            bar.update(task, description=now, advance=1 if last else 0)
            bar.update(task, total=max(total, bar.tasks[0].completed))

        yield show


def run_rounds(
    todo: list[Program],
    pair: list[Allocator],
    least: int,
    seconds: float,
    console: Console,
    seed: int,
) -> bool:
    """Measure everything `least` times, and more often while another round fits into `seconds`.

    Returns False if interrupted.
    """
    generator = random.Random(seed)
    start = time.monotonic()
    done = 0
    try:
        with progress(console, len(todo) * len(pair) * least) as show:
            while done < least or (time.monotonic() - start) * (done + 1) / done < seconds:
                for program in generator.sample(todo, len(todo)):
                    run_pair(program, generator.sample(pair, 2), show)
                done += 1
                if all(program.failure for program in todo):
                    break
    except KeyboardInterrupt:
        return False
    return True


def run_pair(program: Program, pair: list[Allocator], show: Callable[[str, str], None]) -> None:
    """One round of one program: both allocators in the given order."""
    samples: dict[str, dict[str, Any]] = {}
    for allocator in pair:
        label = f"{program.name} under {allocator.name}"
        if program.failure:
            show(label, f"{label}: skipped, it failed before")
            continue
        show(label, "")
        try:
            data = program.sample(allocator)
        except BenchError as error:
            program.failure = f"{allocator.name}: {error}"
            show(label, f"{label}: FAILED: {error}")
            continue
        missing = proof(program, allocator, data)
        if missing:
            program.failure = f"{allocator.name}: {missing}"
        samples[allocator.name] = data
        rss = data["peak_rss_kib"] / 1024
        mark = " FAILED" if missing else ""
        show(label, f"{label}: {data['wall_s']:.2f} s, peak {rss:.0f} MiB{mark}")
    if len(samples) == len(pair):
        program.samples.append(samples)
        if samples[SYSTEM]["output"] != samples[BRIMFUL]["output"]:
            program.failure = program.failure or "its output differs between the allocators"


# --- what is shown ------------------------------------------------------------------------------

MEASURES: tuple[tuple[str, str, str, float, int], ...] = (
    ("wall time", "wall_s", "s", 1, 3),
    ("user time", "user_s", "s", 1, 3),
    ("system time", "system_s", "s", 1, 3),
    ("peak RSS", "peak_rss_kib", "MiB", 1 / 1024, 1),
    ("page faults", "page_faults", "", 1, 0),
    ("requests/s", "requests_per_s", "", 1, 0),
)


def summary(program: Program) -> list[dict[str, Any]]:
    """Medians and paired ratio of each measure of one program."""
    rows = []
    for title, key, unit, scale, digits in MEASURES:
        if not program.samples or key not in program.samples[0][SYSTEM]:
            continue
        system = [sample[SYSTEM][key] * scale for sample in program.samples]
        ours = [sample[BRIMFUL][key] * scale for sample in program.samples]
        rows.append(
            {
                "measure": title,
                "unit": unit,
                "digits": digits,
                "system": statistics.median(system),
                "brimful": statistics.median(ours),
                "ratio": benchlib.paired_ratio(ours, system),
            }
        )
    return rows


def figures_table(done: list[Program]) -> Table:
    table = Table(
        title="Medians; ratio: brimful ÷ system in pairs, with its 95 % interval",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("program", no_wrap=True)
    table.add_column("measure")
    for title in ("system", "brimful", "ratio", "interval"):
        table.add_column(title, justify="right", no_wrap=True)
    for program in done:
        if program.failure:
            table.add_row(f"[bold]{program.name}", f"[bold red]FAILED[/]: {program.failure}")
            table.add_section()
            continue
        for at, row in enumerate(summary(program)):
            ratio: benchlib.Ratio = row["ratio"]
            better, worse = ("more", "less") if row["measure"] == "requests/s" else ("less", "more")
            colour = {better: "green", worse: "red"}.get(ratio.verdict(), "default")
            name = f"[bold]{program.name}" if at == 0 else ""
            if at == 1:
                name = f"{ratio.pairs} pairs"
            table.add_row(
                name,
                f"{row['measure']}{', ' + row['unit'] if row['unit'] else ''}",
                f"{row['system']:,.{row['digits']}f}",
                f"{row['brimful']:,.{row['digits']}f}",
                f"[{colour}]{ratio.median:.3f}",
                f"{ratio.low:.3f}…{ratio.high:.3f}",
            )
        table.add_section()
    return table


def maps_table(done: list[Program], library: Path) -> Table:
    table = Table(
        title="What /proc/PID/maps says each process had loaded",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for title in ("program", "run", "process", "allocators, the one in charge first"):
        table.add_column(title)
    for program in done:
        first = True
        for name in (SYSTEM, BRIMFUL):
            seen = {
                (process["name"], in_charge_first(process["allocators"], library))
                for sample in program.samples
                for process in sample[name]["processes"]
            }
            for process_name, shown in sorted(seen):
                table.add_row(program.name if first else "", name, process_name, shown)
                first = False
        table.add_section()
    return table


def in_charge_first(paths: list[str], library: Path) -> str:
    """File names in the loader's order of search: the preload, the program's own, libc last."""

    def rank(path: str) -> int:
        return 0 if path == str(library.resolve()) else 2 if "/libc" in path else 1

    return ", ".join(Path(path).name for path in sorted(sorted(paths), key=rank))


def show_results(
    done: list[Program], console: Console, library: Allocator, facts: dict[str, Any]
) -> None:
    measured = [program for program in done if program.samples or program.failure]
    console.print()
    console.print(figures_table(measured))
    assert library.library is not None
    console.print(maps_table([p for p in measured if p.samples], library.library))
    for program in measured:
        console.print(f"{program.name}: {program.what}", highlight=False, markup=False)
    preloaded = "libjemalloc" in json.dumps([p.samples for p in measured if p.process == "redis"])
    if preloaded:
        console.print(
            "redis-server links jemalloc itself here: its system column is jemalloc, not glibc.",
            highlight=False,
        )
    sha = library.describe().get("sha256", "")[:16]
    console.print(
        f"{facts['cpu']}, {facts['cpus']} CPUs · Linux {facts['kernel']} · {facts['libc']} · "
        f"THP {facts['thp']} · commit {facts['commit'][:12]} · libbrimful sha256 {sha}",
        highlight=False,
        markup=False,
    )
    for program in measured:
        console.print(verdict(program), highlight=False, markup=False)


def verdict(program: Program) -> str:
    """One sentence for a person."""
    if program.failure:
        return f"{program.name}: FAILED: {program.failure}"
    if len(program.samples) < LEAST_PAIRS:
        return f"{program.name}: {len(program.samples)} rounds, too few to say anything"
    rows = {row["measure"]: row["ratio"] for row in summary(program)}

    def say(what: str, ratio: benchlib.Ratio) -> str:
        if ratio.verdict() == "no difference shown":
            return f"no clear difference in {what}"
        return f"{abs(ratio.median - 1) * 100:.1f} % {ratio.verdict()} {what}"

    time_said, memory_said = say("time", rows["wall time"]), say("peak memory", rows["peak RSS"])
    return f"{program.name}: {time_said}, {memory_said}"


def record(
    done: list[Program], pair: list[Allocator], facts: dict[str, Any], seed: int, whole: bool
) -> dict[str, Any]:
    """Everything a reader needs to judge or redo the figures."""
    for program in done:
        for sample in program.samples:
            for data in sample.values():
                data["output"] = data["output"][:200]
                for process in data["processes"]:
                    process["allocators"] = [
                        benchlib.path_for_record(Path(path)) for path in process["allocators"]
                    ]
    return {
        "what": "bench/run_demo.py",
        "environment": facts,
        "allocators": {allocator.name: allocator.describe() for allocator in pair},
        "seed": seed,
        "complete": whole,
        "programs": [
            {
                "name": program.name,
                "what": program.what,
                "failure": program.failure,
                "summary": [row | {"ratio": vars(row["ratio"])} for row in summary(program)],
                "rounds": program.samples,
            }
            for program in done
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--lib", type=Path, default=benchlib.LIBRARY, help="library to preload")
    parser.add_argument("--conf", default="", help="BRIMFUL_CONF for the runs under brimful")
    parser.add_argument(
        "--pairs",
        type=int,
        help=f"least runs of each (default {LEAST_PAIRS}, below which nothing is said; 1 with --seconds)",
    )
    parser.add_argument(
        "--seconds", type=float, help=f"add runs while they fit (default {SECONDS})"
    )
    parser.add_argument("--only", default="", help="only programs whose name contains this")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31, help="of the order")
    parser.add_argument("--save", action="store_true", help="keep the raw data in bench/results/")
    options = parser.parse_args()
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    library = options.lib.absolute()
    if not library.exists():
        print(f"run_demo: no library at {library}: build it with `make lib`", file=sys.stderr)
        return 1
    settings = {"BRIMFUL_CONF": options.conf} if options.conf else {}
    pair = [Allocator(SYSTEM), Allocator(BRIMFUL, library, settings)]
    facts = benchlib.environment()
    try:
        benchlib.measuring_program()
    except BenchError as error:
        print(f"run_demo: {error}", file=sys.stderr)
        return 1
    every = list(programs())
    todo = [program for program in every if options.only in program.name]
    if not todo:
        there = "; ".join(program.name for program in every)
        print(f"run_demo: no program {options.only!r}; there are: {there}", file=sys.stderr)
        return 2
    least = max(1, options.pairs or (LEAST_PAIRS if options.seconds is None else 1))
    seconds = SECONDS if options.seconds is None else options.seconds
    whole = run_rounds(todo, pair, least, seconds, console, options.seed)
    show_results(todo, console, pair[1], facts)
    if not whole:
        console.print("Interrupted: the figures above are of the rounds that were complete.")
    data = record(todo, pair, facts, options.seed, whole)
    name = f"demo-{benchlib.stamp()}.json"
    folders = [WORK, *([benchlib.RESULTS] if options.save else [])]
    for folder in folders:
        benchlib.save_json(folder / name, data)
    console.print(f"Raw data: {benchlib.path_for_record(folders[-1] / name)}", highlight=False)
    if not whole:
        return 130
    return 1 if any(program.failure for program in todo) else 0


if __name__ == "__main__":
    sys.exit(terminal.guarded("run_demo", main))
