# SPDX-License-Identifier: MIT
"""Studies that are several runs of `brimful bench`, one after the other.

Each run is a part of the study and reports into a folder of its own; its results.json is the record,
which of a whole run goes to bench/results/, named after the part. A part that cannot be measured on
this machine is named with the reason, and the others run. Tables and charts are those of
`brimful bench report`.
"""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .model import RESULTS, ROOT, WORK, Option, Run, Study, StudyError
from .pages import Place
from .records import new_name, shown

MORE = {
    "bench": Option("further arguments of each `brimful bench`, as in --bench='--rounds 5:5'", ""),
    "budget": Option("of each part, as in 20m, in place of its own", ""),
}
# exit code → 1: some cell failed, which the result says
GOOD = (0, 1)
INTERRUPTED = 130
GRACE_S = 20  # that an interrupted run gets before it is told once more


@dataclass(frozen=True)
class Part:
    """One run: its heading in the page, what `brimful bench` is told, its charts there with their
    meaning."""

    heading: str
    arguments: Sequence[str]
    budget: str
    short: Sequence[str]
    charts: Mapping[str, str]
    # What has to be so while it runs; raises StudyError.
    around: Callable[[], AbstractContextManager[None]] = nullcontext


def study(
    name: str, parts: Mapping[str, Part], measured: Mapping[str, Part] | None = None, **about: Any
) -> Study:
    """A study of these parts, of which it measures `measured` (all) itself; the rest as for Study."""
    own = parts if measured is None else measured
    return Study(
        name,
        measure=lambda run: measure(run, own),
        show=lambda record: show(record.results),
        parts=tuple(own),
        kinds=tuple(parts),
        options=MORE,
        **about,
    )


def measure(run: Run, parts: Mapping[str, Part]) -> None:
    """The parts that are wanted."""
    for name in filter(run.wants, parts):
        print(f"== {name}", flush=True)
        part, path = parts[name], new_name(name)
        folder = WORK / path.removesuffix(".json")
        budget = run.options.budget or part.budget
        lengths = part.short if run.options.short else ["--budget", budget]
        words = [*part.arguments, *lengths, *shlex.split(run.options.bench)]
        command = [str(ROOT / "brimful"), "bench", *words, "--out", str(folder)]
        try:
            with part.around():
                code = _ended(command)
        except StudyError as error:
            run.record.fail(name, error)
            continue
        if code == INTERRUPTED:
            if (folder / "results.json").exists():
                run.record.results[name] = shown(folder / "results.json")
            raise KeyboardInterrupt
        if code not in GOOD:
            run.record.fail(name, f"brimful bench: exit code {code}")
            continue
        kept = folder / "results.json"
        if run.options.keep or not run.options.short:
            kept = Path(shutil.copy(kept, RESULTS / path))
        run.record.results[name] = shown(kept)


def _ended(command: Sequence[str]) -> int:
    """The exit code of a run, which has time to write what it has when it is interrupted."""
    process = subprocess.Popen(command)
    try:
        return process.wait()
    except KeyboardInterrupt:
        try:
            process.wait(GRACE_S)  # Ctrl-C in a terminal reaches it as well
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait()
        return INTERRUPTED


def show(record_results: Mapping[str, str]) -> list[str]:
    return [f"Raw data of {name}: {path}" for name, path in record_results.items()]


# --- the page -------------------------------------------------------------------------------------


def said(arguments: Sequence[str], path: Path) -> list[str]:
    """What `brimful bench report` prints of a result. Raises StudyError."""
    command = [str(ROOT / "brimful"), "bench", "report", str(path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise StudyError(f"{path.name}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def figures(
    place: Place, parts: Mapping[str, Part], files: Mapping[str, Path], form: str
) -> list[str]:
    """Charts and tables of all parts that have a result; `form` is an option of `bench report`."""
    lines: list[str] = []
    for name, part in parts.items():
        if name in files:
            lines += _section(place, name, part, files[name], form)
    return lines


def _section(place: Place, name: str, part: Part, path: Path, form: str) -> list[str]:
    pictures = []
    with tempfile.TemporaryDirectory() as folder:
        wanted = [word for key in part.charts for word in ("--chart", key)]
        tables = said([form, "--charts", folder, *wanted], path)
        for key, meaning in part.charts.items():
            light, dark = (Path(folder) / f"{key}-{shade}.svg" for shade in ("light", "dark"))
            if light.exists():
                texts = light.read_text(), dark.read_text()
                pictures += place.picture(f"{name}-{key}", *texts, meaning)
    data = json.loads(path.read_text())
    facts = data["environment"]
    source = (
        f"{place.source(path, facts)}, `{' '.join(data['options']['command_line'])}`. "
        f"{facts['cpu']}, {facts['cpus_allowed']} CPUs, Linux {facts['kernel']}, {facts['libc']}, "
        f"THP {facts['thp']}."
    )
    return [f"### {part.heading}", "", *pictures, *tables, "", source, ""]
