#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Fetches, builds and probes the rivals, and writes build/rivals/manifest.json.

    build.py [--list] [--force] [NAME...]

Each rival stands for itself: one that fails becomes an entry with its reason, and the others go on.
A library is built again only if its origin, its recipe or its compiler changed, if the file is not
the one that was built, or with --force; probes always run, because Debian's libraries change
without us. The manifest is a list with one entry for each configuration in the table, also for
those that cannot be had: name, title, version, origin, library (absolute path or null), sha256,
settings (variables to run it under), mode (the front end that the probe saw run), limits (what it
cannot do), compiler, and missing (null, or why it cannot be measured).

Exit code: 0 if all that can be had is there, 1 if something failed, 2 for bad arguments.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import inspect
import json
import platform
import re
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from rivals import probing, sources  # noqa: E402  (the package lives beside this script's folder)
from rivals.catalog import (  # noqa: E402
    RIVALS,
    Crate,
    Debian,
    Nowhere,
    Recipe,
    Rival,
    Sdist,
    Sources,
)
from rivals.recipes import BuildError, Shell  # noqa: E402

Entry = dict[str, Any]
Fetch = Callable[[Sources, Path, Shell], Path]


def say(text: str) -> None:
    print(text, flush=True)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def printed(command: Sequence[str]) -> str:
    """What a command prints, or "" if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


@dataclass
class Workshop:
    """Where things are built, and what may be replaced in tests."""

    folder: Path  # build/rivals
    fetch: Fetch = sources.fetch
    libraries: Path = Path("/usr/lib")
    force: bool = False
    built: dict[str, Path | BuildError] = field(default_factory=dict)  # in this run, by build name

    def entry(self, rival: Rival) -> Entry:
        """The manifest's entry of a rival: made, proved, or with the reason why not."""
        entry = blank(rival)
        try:
            library = self.library(rival, entry)
            self.prove(rival, library, entry)
        except BuildError as error:
            entry["missing"] = str(error)
        except Exception as error:
            # A fault of ours or of the disk: this rival's too, and still no reason to lose the rest.
            entry["missing"] = f"{type(error).__name__}: {error}"
            (self.folder / "logs" / f"{rival.name}-fault.log").write_text(traceback.format_exc())
        return entry

    def prove(self, rival: Rival, library: Path, entry: Entry) -> None:
        """Probe the library; fill in what makes the entry usable, or raise BuildError."""
        shell = Shell(self.folder / "logs" / f"probe-{rival.name}.log", self.folder)
        program = probing.compile_probe(shell, self.folder / "work" / "probe")
        verdict = probing.probe(program, library, rival.settings, rival.mode, shell.log)
        entry["mode"] = verdict.mode or None
        entry["limits"] = list(verdict.limits)
        if verdict.fault:
            raise BuildError(f"{rival.flaw}; {verdict.fault}" if rival.flaw else verdict.fault)
        entry["library"] = str(library)
        entry["sha256"] = sha256(library)

    def library(self, rival: Rival, entry: Entry) -> Path:
        """The rival's library, built if need be; rivals that share a build get the same one."""
        if isinstance(rival.origin, Nowhere):
            raise BuildError(rival.origin.reason)
        if isinstance(rival.origin, Debian):
            return self.installed(rival.origin, entry)
        name = rival.build_name()
        if name not in self.built:
            try:
                self.built[name] = self.build(rival, rival.origin)
            except BuildError as error:
                self.built[name] = error
        result = self.built[name]
        if isinstance(result, BuildError):
            raise result
        entry["compiler"] = compiler_of(result)
        return result

    def installed(self, origin: Debian, entry: Entry) -> Path:
        """A library of Debian's; of several versions the one with the highest numbers."""
        pattern = origin.pattern.format(machine=platform.machine())
        found = sorted(self.libraries.glob(pattern), key=numbers_in)
        if not found:
            raise BuildError(f"Debian package {origin.package} is not installed")
        owner = printed(["dpkg-query", "-S", str(found[-1])]).partition(": ")[0].split(":")[0]
        if owner:
            entry["version"] = printed(["dpkg-query", "-W", "-f=${Version}\n", owner]).split("\n")[
                0
            ]
            entry["origin"] = f"Debian package {owner} {entry['version']}"
        return found[-1]

    def build(self, rival: Rival, origin: Crate | Sdist) -> Path:
        """Fetch and compile, unless the same build is there already."""
        assert rival.recipe is not None, f"{rival.name} has sources but no recipe"
        name = rival.build_name()
        what = f"{rival.title} {rival.version}"
        return self.made(name, f"lib{name}.so", what, origin, rival.recipe)

    def made(self, name: str, file: str, what: str, origin: Sources, recipe: Recipe) -> Path:
        """`file` in the folder, made by `recipe` from `origin` unless the same build is there already.

        Raises BuildError.
        """
        target = self.folder / file
        stamp = self.folder / "work" / f"{name}.json"
        wanted = fingerprint(origin, recipe)
        if not self.force and is_current(target, stamp, wanted):
            return target
        shell = Shell(self.folder / "logs" / f"{name}.log", fresh(self.folder / "work" / name))
        say(f"  {name}: fetching {origin}")
        source = self.fetch(origin, self.folder / "sources", shell)
        say(f"  {name}: compiling {what}")
        made = shell.work / target.name
        recipe(source, made, shell)
        made.replace(target)
        stamp.write_text(json.dumps({"fingerprint": wanted, "sha256": sha256(target)}) + "\n")
        shutil.rmtree(shell.work)
        return target


def blank(rival: Rival) -> Entry:
    """An entry that says nothing yet but what the table says."""
    return {
        "name": rival.name,
        "title": rival.title,
        "version": rival.version,
        "origin": str(rival.origin),
        "library": None,
        "sha256": None,
        "settings": dict(rival.settings),
        "mode": None,
        "limits": [],
        "compiler": None,
        "missing": None,
    }


def fingerprint(origin: Sources, recipe: Recipe) -> str:
    """Changes when the build would give another file."""
    compilers = [printed([name, "--version"]).split("\n")[0] for name in ("gcc", "clang")]
    text = "\n".join([repr(origin), inspect.getsource(recipe), *compilers])
    return hashlib.sha256(text.encode()).hexdigest()


def is_current(file: Path, stamp: Path, wanted: str) -> bool:
    """Whether `file` is the untouched result of the build that is wanted."""
    try:
        made = json.loads(stamp.read_text())
        return bool(made == {"fingerprint": wanted, "sha256": sha256(file)})
    except (OSError, ValueError):
        return False


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def compiler_of(library: Path) -> str | None:
    """What the library's own comment section says compiled it."""
    said = printed(["readelf", "-p", ".comment", str(library)])
    made = [line.partition("]")[2].strip() for line in said.splitlines() if "]" in line]
    # A clang build also names gcc, whose start-up objects are linked in.
    return next((line for line in made if "clang" in line), made[0] if made else None)


def numbers_in(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


# --- the manifest -------------------------------------------------------------------------------


def manifest(
    before: Sequence[Entry], made: Sequence[Entry], rivals: Sequence[Rival]
) -> list[Entry]:
    """All rivals in the table's order: what was made now, else what was known, else a blank."""
    known = {entry["name"]: entry for entry in [*before, *made]}
    unbuilt = "not built yet (make rivals)"
    return [known.get(rival.name) or blank(rival) | {"missing": unbuilt} for rival in rivals]


def read_manifest(path: Path) -> list[Entry]:
    try:
        entries: list[Entry] = json.loads(path.read_text())
    except (OSError, ValueError):
        return []
    return entries


def write_manifest(path: Path, entries: Sequence[Entry]) -> None:
    """In one step, so that a harness that reads it meanwhile sees the old or the new one."""
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(list(entries), indent=1, ensure_ascii=False) + "\n")
    draft.replace(path)


def table(entries: Sequence[Entry]) -> str:
    """The closing table: version, checksum, origin and state of each."""
    rows = [("rival", "version", "sha-256", "origin", "state")]
    for entry in entries:
        state = f"missing: {entry['missing']}" if entry["missing"] else entry["mode"] or "ready"
        checksum = (entry["sha256"] or "-")[:12]
        rows.append((entry["name"], entry["version"] or "-", checksum, entry["origin"], state))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]])
        for row in rows
    )


# --- the command --------------------------------------------------------------------------------


def arguments(rivals: Sequence[Rival], argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="build.py", description="Fetch, build and probe the allocators to compare with."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these (default: all)")
    parser.add_argument("--list", action="store_true", help="show the table and build nothing")
    parser.add_argument("--force", action="store_true", help="build even what is up to date")
    options = parser.parse_args(argv)
    unknown = sorted(set(options.names) - {rival.name for rival in rivals})
    if unknown:
        parser.exit(2, f"build.py: no rival {', '.join(unknown)} (--list shows them)\n")
    return options


def build_all(workshop: Workshop, rivals: Sequence[Rival], chosen: Sequence[Rival]) -> bool:
    """Build `chosen` and write the manifest of all `rivals`; false if something failed."""
    path = workshop.folder / "manifest.json"
    made: list[Entry] = []
    for number, rival in enumerate(chosen, 1):
        began = time.monotonic()
        entry = workshop.entry(rival)
        made.append(entry)
        state = f"missing: {entry['missing']}" if entry["missing"] else entry["mode"] or "ready"
        seconds = time.monotonic() - began
        say(f"[{number}/{len(chosen)}] {rival.name}: {state} ({seconds:.1f} s)")
        # After each, so that an interrupted run keeps what it has.
        write_manifest(path, manifest(read_manifest(path), made, rivals))
    say("\n" + table(read_manifest(path)))
    failed = [
        rival.name
        for rival, entry in zip(chosen, made, strict=True)
        if entry["missing"] and not isinstance(rival.origin, Nowhere) and not rival.flaw
    ]
    if failed:
        say(f"\nFailed: {', '.join(failed)} (logs in {workshop.folder / 'logs'})")
    return not failed


def main(argv: Sequence[str], workshop: Workshop, rivals: Sequence[Rival] = RIVALS) -> int:
    options = arguments(rivals, argv)
    if options.list:
        for rival in rivals:
            say(f"{rival.name:20} {rival.title:26} {rival.origin}")
        return 0
    workshop.force = options.force
    chosen = [rival for rival in rivals if not options.names or rival.name in options.names]
    (workshop.folder / "logs").mkdir(parents=True, exist_ok=True)
    try:
        with (workshop.folder / "lock").open("w") as lock:
            # Two runs at once would empty each other's folders; the second waits for the first.
            fcntl.flock(lock, fcntl.LOCK_EX)
            return 0 if build_all(workshop, rivals, chosen) else 1
    except KeyboardInterrupt:
        say("\nInterrupted; the manifest has what was finished")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Workshop(ROOT / "build" / "rivals")))
