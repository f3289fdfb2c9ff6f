#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs fuzzers, for as long as one likes; what they find is kept with the input that found it.

    run.py [TARGET…] --seconds N    each target so long (all of them without a name), libFuzzer
    run.py … --preset fuzz-shipped  the assembly fast paths, without sanitizers (malloc_* only)
    run.py … --afl                  driven by AFL++
    run.py … --record               writes the figures: bench/results/, and the table of docs/fuzzing.md
    run.py … --merge                smallest inputs that reach what the runs reached, into tests/fuzz/corpus
    run.py --list

Inputs that reached something new are below build/fuzz-corpus and the next run goes on from them; what
a target broke with is below build/fuzz-found. Exit codes: 0; 1, something was found; 2, wrong usage
or no build; 77, a package is missing; 130, Ctrl-C, after what was done until then.
"""

from __future__ import annotations

import argparse
import datetime
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/fuzz"
CORPUS = HERE / "corpus"
GROWN = ROOT / "build/fuzz-corpus"
FOUND = ROOT / "build/fuzz-found"
PAGE = ROOT / "docs/fuzzing.md"
LONGEST = {"observed_heap": 512, "elf_file": 256, "core_file": 1024}  # bytes of an input; else
LONGEST_ELSE = 2048
MOST_CORPUS = 12 * 1024  # bytes of a target's inputs in the tree
MOST_INPUTS = 40  # that are added at once
MISSING = 77

# What the library is asked to do while it is fuzzed, by turns: the time is shared among them.
OPTIONS = (
    "",
    "tier:hardened",
    "front_end:thread,guards:1",
    "prof:64,guards:4",
    "tier:hardened,prof:1,report:stack",
    "cache:none,purge_delay_ms:0",
    "cache:unlimited,purge:free,muzzy_delay_ms:0",
    "limit:64M,soft_limit:16M",
    "reserve:64M,on_exhaustion:null",
    "populate:all,thp:always",
    "background_thread:1,release_rate:1M",
)

# Which sources a target is about: their share of lines that it reaches is published.
SUBJECTS = {
    "malloc_calls": r"src/(alloc|slots|pages|meta|stats|abi)/",
    "malloc_threads": r"src/(alloc|slots|pages|meta)/",
    "options": r"src/config/",
    "control_names": r"src/control/",
    "system_files": r"src/os/(cgroup|cpus|environment|clock)\.cpp|src/stats/coverage\.cpp",
    "stack_text": r"src/os/(stack_text|report)\.cpp",
    "tlsf": r"src/pools/tlsf/",
    "page_pool": r"src/pools/page_pool/",
    "handle_pool": r"src/pools/handle/",
    "observed_heap": r"observer/(heap|inspect|leaks|stats/(counters|options))",
    "core_file": r"observer/memory/(core|anatomy|thread_state)\.cpp",
    "sample_file": r"observer/stacks/(sample_file|collect|session|unwind)\.cpp",
    "elf_file": r"observer/stacks/(module|unwind_rows|expression)\.cpp",
    "observer_texts": r"observer/(stacks/(perf_map|modules|expression|demangle)|leaks/suppressions)\.cpp",
}
PYTHON = "python_readers"

ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


@dataclass
class Outcome:
    """What came of one target."""

    target: str
    seconds: int
    executions: int = 0
    inputs: int = 0
    found: int = 0
    lines: int = 0
    reached: int = 0
    unit: str = "lines"


def build(preset: str, targets: list[str]) -> Path:
    """The folder of the programs, which are made anew if need be. One build at a time."""
    tool = "afl-clang-fast++" if preset == "fuzz-afl" else "clang++"
    if shutil.which(tool) is None:
        print(f"{tool} is missing: apt-get install {'afl++' if 'afl' in tool else 'clang'}")
        sys.exit(MISSING)
    log = ROOT / f"build/{preset}.log"
    log.parent.mkdir(exist_ok=True)
    with open(ROOT / f"build/{preset}.lock", "w") as lock, open(log, "w") as output:
        fcntl.flock(lock, fcntl.LOCK_EX)
        programs = [f"{target}_fuzz" for target in targets]
        for command in (
            ["cmake", "--preset", preset, "-S", str(ROOT)],
            ["cmake", "--build", str(ROOT / "build" / preset), "--target", *programs],
        ):
            if subprocess.run(
                command, cwd=ROOT, stdout=output, stderr=output, check=False
            ).returncode:
                text = log.read_text()
                if "libclang_rt.fuzzer" in text or "libclang_rt.profile" in text:
                    print("clang's run time is missing: apt-get install libclang-rt-14-dev")
                    sys.exit(MISSING)
                print(f"{text[-3000:]}\n{preset} can't be built: {log}")
                sys.exit(2)
    return ROOT / "build" / preset / "tests/fuzz"


def folders(target: str) -> list[Path]:
    """Where inputs are: first the one that new ones go to."""
    (GROWN / target).mkdir(parents=True, exist_ok=True)
    FOUND.mkdir(parents=True, exist_ok=True)
    return [GROWN / target, *([CORPUS / target] if (CORPUS / target).is_dir() else [])]


def choices(target: str, seconds: int) -> list[tuple[str, int]]:
    """Options of the library and their seconds."""
    if not target.startswith("malloc_"):
        return [("", seconds)]
    count = max(1, min(len(OPTIONS), seconds // 5))
    return [(options, max(1, seconds // count)) for options in OPTIONS[:count]]


def run_libfuzzer(program: Path, target: str, seconds: int) -> Outcome:
    outcome = Outcome(target, seconds)
    dictionary = HERE / f"dictionaries/{target}.dict"
    for options, share in choices(target, seconds):
        command = [
            str(program),
            f"-max_total_time={share}",
            f"-max_len={LONGEST.get(target, LONGEST_ELSE)}",
            f"-artifact_prefix={FOUND}/{target}-",
            # Of a clock on the wall, and other tests run meanwhile.
            "-timeout=120",
            "-rss_limit_mb=4096",
            "-print_final_stats=1",
            "-len_control=0",
            *([f"-dict={dictionary}"] if dictionary.exists() else []),
            *map(str, folders(target)),
        ]
        environment = {**os.environ, **ENVIRONMENT}
        environment.pop("BRIMFUL_CONF", None)
        if options:
            environment["BRIMFUL_CONF"] = options
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
        counted = re.search(r"stat::number_of_executed_units: (\d+)", done.stderr)
        outcome.executions += int(counted[1]) if counted else 0
        if done.returncode:
            outcome.found += 1
            told = f"BRIMFUL_CONF={options} " if options else ""
            lines = [
                line for line in done.stderr.splitlines() if not re.match(r"#\d|\s+NEW_F", line)
            ]
            print("\n".join(lines[-60:]))
            print(
                f"{target}: found something; again: {told}{program} {FOUND}/{target}-…", flush=True
            )
    outcome.inputs = sum(1 for _ in folders(target)[0].iterdir())
    return outcome


def run_afl(program: Path, target: str, seconds: int) -> Outcome:
    """AFL++ starts the program anew for each input, so that what one leaves behind misleads none."""
    outcome = Outcome(target, seconds)
    seeds = folders(target)[-1]
    if not any(seeds.iterdir()):
        (seeds / "zero").write_bytes(b"\0")
    output = ROOT / "build/fuzz-afl-output" / target
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    quiet = ("NO_UI", "SKIP_CPUFREQ", "NO_AFFINITY", "I_DONT_CARE_ABOUT_MISSING_CRASHES")
    environment = {**os.environ, **{f"AFL_{name}": "1" for name in quiet}}
    # AFL++ wants these words among its own.
    environment["ASAN_OPTIONS"] = f"{ENVIRONMENT['ASAN_OPTIONS']}:abort_on_error=1:symbolize=0"
    command = [
        "afl-fuzz",
        "-i",
        str(seeds),
        "-o",
        str(output),
        "-V",
        str(seconds),
        "-t",
        "10000+",
        "-m",
        "none",
    ]
    done = subprocess.run(
        [*command, "--", str(program)], env=environment, capture_output=True, text=True, check=False
    )
    stats = output / "default/fuzzer_stats"
    if not stats.exists():
        print(f"{done.stdout[-2000:]}{done.stderr[-500:]}\n{target}: AFL++ did not start")
        sys.exit(2)
    values = dict(re.findall(r"(\w+)\s*: (.*)", stats.read_text()))
    outcome.executions = int(values["execs_done"])
    outcome.inputs = int(values["corpus_count"])
    outcome.found = int(values["saved_crashes"]) + int(values["saved_hangs"])
    for kind in ("crashes", "hangs"):
        for path in (output / f"default/{kind}").glob("id*"):
            shutil.copy(path, FOUND / f"{target}-{kind}-{path.name.split(',')[0]}")
    return outcome


def run_python(seconds: int) -> Outcome:
    """The readers in Python: examples of hypothesis in place of executions."""
    outcome = Outcome(PYTHON, seconds, unit="")
    command = ["/usr/bin/python3", str(HERE / f"{PYTHON}.py"), "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == MISSING:
        print(done.stdout, end="")
        return outcome
    counted = re.search(r"(\d+) examples", done.stdout)
    outcome.executions = int(counted[1]) if counted else 0
    if done.returncode:
        outcome.found = 1
        print(done.stdout[-4000:] + done.stderr[-4000:])
    return outcome


def measure_coverage(outcomes: list[Outcome]) -> None:
    """Lines of the subject that the inputs reach, old and new ones together; by llvm-cov."""
    wanted = [outcome for outcome in outcomes if outcome.target in SUBJECTS]
    if not wanted or shutil.which("llvm-cov") is None:
        return
    programs = build("fuzz-coverage", [outcome.target for outcome in wanted])
    for outcome in wanted:
        program = programs / f"{outcome.target}_fuzz"
        with tempfile.TemporaryDirectory() as scratch:
            for number, options in enumerate(o for o, _ in choices(outcome.target, 60)):
                environment = {**os.environ, "LLVM_PROFILE_FILE": f"{scratch}/{number}.profraw"}
                environment["BRIMFUL_CONF"] = options
                command = [str(program), *map(str, folders(outcome.target))]
                subprocess.run(command, env=environment, capture_output=True, check=False)
            merged = f"{scratch}/all.profdata"
            raw = [str(path) for path in Path(scratch).glob("*.profraw")]
            subprocess.run(["llvm-profdata", "merge", "-sparse", "-o", merged, *raw], check=True)
            export = [
                "llvm-cov",
                "export",
                "-summary-only",
                f"-instr-profile={merged}",
                str(program),
            ]
            done = subprocess.run(export, capture_output=True, text=True, check=True)
        for file in json.loads(done.stdout)["data"][0]["files"]:
            name = file["filename"]
            inside = name[len(str(ROOT)) + 1 :] if name.startswith(str(ROOT)) else ""
            if re.match(SUBJECTS[outcome.target], inside):
                outcome.lines += file["summary"]["lines"]["count"]
                outcome.reached += file["summary"]["lines"]["covered"]


def merge(programs: Path, target: str) -> None:
    """Some of the inputs that reach all that is reached, as many as the tree has room for."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            str(programs / f"{target}_fuzz"),
            "-merge=1",
            scratch,
            *map(str, folders(target)),
        ]
        environment = {**os.environ, **ENVIRONMENT}
        subprocess.run(command, env=environment, capture_output=True, check=False)
        into = CORPUS / target
        into.mkdir(parents=True, exist_ok=True)
        room = MOST_CORPUS - sum(path.stat().st_size for path in into.iterdir())
        by_size = sorted(Path(scratch).iterdir(), key=lambda path: path.stat().st_size)
        # Some of each length: the shortest alone would be single calls.
        for path in by_size[:: len(by_size) // MOST_INPUTS + 1]:
            room -= path.stat().st_size
            if room >= 0:
                shutil.copy(path, into / path.name[:12])
    print(f"{target}: {sum(1 for _ in into.iterdir())} inputs in {into.relative_to(ROOT)}")


def table(outcomes: list[Outcome]) -> str:
    rows = [
        "| target | seconds | executions | inputs | found | lines reached |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for o in outcomes:
        share = f"{o.reached} of {o.lines}, {100 * o.reached / o.lines:.0f} %" if o.lines else "–"
        inputs = str(o.inputs) if o.unit else "–"
        rows.append(
            f"| `{o.target}` | {o.seconds} | {o.executions:,} | {inputs} | {o.found} | {share} |"
        )
    rows.append(
        f"| **all** | {sum(o.seconds for o in outcomes)} | {sum(o.executions for o in outcomes):,} | | {sum(o.found for o in outcomes)} | |"
    )
    return "\n".join(rows)


def record(outcomes: list[Outcome], driver: str) -> None:
    now = datetime.datetime.now(datetime.UTC)
    path = ROOT / f"bench/results/fuzz-{now:%Y-%m-%dT%H%M}.json"
    whole = {
        "schema": "brimful-fuzz/1",
        "environment": {"date": f"{now:%Y-%m-%dT%H:%MZ}", "cpus_online": os.cpu_count()},
        "options": {"driver": driver, "load_average": os.getloadavg()[2]},
        "targets": [asdict(outcome) for outcome in outcomes],
    }
    path.write_text(json.dumps(whole, indent=1) + "\n")
    text = PAGE.read_text()
    begin, end = "<!-- fuzz:begin -->\n", "\n<!-- fuzz:end -->"
    head, rest = text.split(begin)
    source = f"{now:%Y-%m-%d}, {driver}; raw data: `{path.relative_to(ROOT)}`"
    PAGE.write_text(f"{head}{begin}{source}\n\n{table(outcomes)}{end}{rest.split(end)[1]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    known = [*SUBJECTS, PYTHON]
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="; ".join(known))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--preset", default="fuzz", choices=("fuzz", "fuzz-shipped"))
    parser.add_argument("--afl", action="store_true", help="AFL++ drives")
    parser.add_argument(
        "--record", action="store_true", help="measure coverage, write raw data and table"
    )
    parser.add_argument("--merge", action="store_true", help="new inputs into the tree")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(known))
        return 0
    for target in arguments.targets:
        if target not in known:
            parser.error(f"there is no target {target}: {', '.join(known)}")
    targets = arguments.targets or known
    if arguments.preset == "fuzz-shipped":
        targets = [target for target in targets if target.startswith("malloc_")]
    if arguments.seconds < 1 or not targets:
        parser.error(
            "nothing to do: at least one second, and with --preset fuzz-shipped a target malloc_…"
        )
    compiled = [target for target in targets if target != PYTHON]
    preset = "fuzz-afl" if arguments.afl else arguments.preset
    programs = build(preset, compiled) if compiled else ROOT
    outcomes: list[Outcome] = []
    status = 0
    try:
        for target in targets:
            program = programs / f"{target}_fuzz"
            if target == PYTHON:
                outcome = run_python(arguments.seconds)
            elif arguments.afl:
                outcome = run_afl(program, target, arguments.seconds)
            else:
                outcome = run_libfuzzer(program, target, arguments.seconds)
            outcomes.append(outcome)
            print(
                f"{target}: {outcome.executions:,} executions, {outcome.inputs} inputs, {outcome.found} found",
                flush=True,
            )
            if arguments.merge and target != PYTHON and not arguments.afl:
                merge(programs, target)
    except KeyboardInterrupt:
        status = 130
    if arguments.record and outcomes:
        measure_coverage(outcomes)
        record(outcomes, "AFL++" if arguments.afl else "libFuzzer")
    return status or (1 if any(outcome.found for outcome in outcomes) else 0)


if __name__ == "__main__":
    sys.exit(main())
