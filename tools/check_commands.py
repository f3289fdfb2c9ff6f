#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the pages say of `make` and of the command is what these have.

- `make TARGET`, anywhere in README.md, HACKING.md, docs/, examples/ (but not in what tells of the
  past): the Makefile has the target.
- Each target that `make` lists is on a page.
- `brimful … --option`, in a text or a block: some command has that option.
- Options: `.It Fl Fl NAME` and `.Fl Fl NAME` of the manual page against `brimful --help` and that
  of its subcommands, both ways. Subcommands likewise.

Exit code 77 where typer is missing, for then nothing can be said about options.

    check_commands.py [--root FOLDER]
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from pathlib import Path

MANUAL = "docs/man/brimful.1"
LISTED = re.compile(r"^([a-z-]+):.*## ", re.MULTILINE)
RULE = re.compile(r"^([a-z-]+):(?!=)", re.MULTILINE)
MENTION = re.compile(r"(?:`|^|&& )(make(?: -\w+)*(?: [A-Z]+=\S+)*((?: [a-z][a-z-]*)+))(?=[ `#&]|$)")
OPTION = re.compile(r"\bFl Fl ([a-z-]+)")
CALL = re.compile(r"(?:`(?:\./)?|^\./|&& \./)brimful ([^`#]*)")
OWN_OPTION = re.compile(r'^\s*add\("--([a-z-]+)"', re.MULTILINE)
STUDYS_OPTION = re.compile(r'^\s*"([a-z-]+)": Option\(', re.MULTILINE)
SUBCOMMAND = re.compile(r"^\.(?:Cm|It Cm|Op Cm) (.*)$", re.MULTILINE)
# Everybody's options, which every command has.
COMMON = {"help"}
PAST = ("design", "CHANGELOG.md")


def pages_of(root: Path) -> list[Path]:
    names = [root / "README.md", root / "HACKING.md", *root.glob("docs/**/*.md")]
    names += root.glob("examples/**/*.md")
    return sorted(p for p in names if p.exists() and not set(PAST) & set(p.relative_to(root).parts))


def make_faults(root: Path) -> tuple[list[str], int]:
    """Faults and the number of mentions."""
    makefile = (root / "Makefile").read_text()
    targets = set(RULE.findall(makefile))
    faults: list[str] = []
    mentioned: set[str] = set()
    count = 0
    for page in pages_of(root):
        for number, line in enumerate(page.read_text().split("\n"), 1):
            for found in MENTION.finditer(line):
                # A command in a block ends where its comment begins; in a text, `make` may be a verb.
                for target in found[2].split():
                    count += 1
                    mentioned.add(target)
                    if target not in targets:
                        place = page.relative_to(root).as_posix()
                        faults.append(f"{place}:{number}: make has no target {target}")
    for target in sorted(set(LISTED.findall(makefile)) - mentioned - {"help"}):
        faults.append(f"Makefile:1: no page says what `make {target}` is for")
    return faults, count


def call_faults(root: Path, known: set[str]) -> list[str]:
    """Options in calls of the command; what stands behind ` -- ` is somebody else's."""
    faults = []
    for page in pages_of(root):
        for number, line in enumerate(page.read_text().split("\n"), 1):
            for words in CALL.findall(line):
                own = re.split(r"(?:^| )--(?: |$)", words)[0]
                place = f"{page.relative_to(root).as_posix()}:{number}"
                faults += [
                    f"{place}: brimful has no option --{name}"
                    for name in re.findall(r"(?<!\S)--([a-z][a-z-]*)", own)
                    if name not in known
                ]
    return faults


def command_options(command: object, path: str = "") -> dict[str, str]:
    """Each long option of a command and those below it, with the command that has it."""
    found: dict[str, str] = {}
    for parameter in getattr(command, "params", ()):
        for name in getattr(parameter, "opts", ()):
            if name.startswith("--"):
                found[name.removeprefix("--")] = path or "brimful"
    for name, inner in getattr(command, "commands", {}).items():
        found |= command_options(inner, f"{path} {name}".strip())
    return found


def opposites(command: object) -> set[str]:
    """Options that only say no to another, as --no-real does. The manual need not name them."""
    found = {
        name.removeprefix("--")
        for parameter in getattr(command, "params", ())
        for name in getattr(parameter, "secondary_opts", ())
    }
    return found.union(*(opposites(one) for one in getattr(command, "commands", {}).values()))


def command_names(command: object) -> set[str]:
    """All subcommands, at any depth."""
    inner = getattr(command, "commands", {})
    return set(inner).union(*(command_names(one) for one in inner.values())) if inner else set()


def study_options(root: Path) -> dict[str, str]:
    """Options of the studies, which read their words themselves; the manual names those that matter."""
    source = root / "cli" / "brimful" / "bench" / "study" / "command.py"
    names = OWN_OPTION.findall(source.read_text()) if source.exists() else []
    for study in root.glob("bench/studies/*/study.py"):
        names += STUDYS_OPTION.findall(study.read_text())
    return dict.fromkeys(names, "bench study")


def manual_faults(command: object, more: dict[str, str], text: str) -> list[str]:
    options = command_options(command)
    shown = set(OPTION.findall(text))
    faults = [
        f"{MANUAL}:1: lacks --{name} of `{options[name]}`"
        for name in sorted(set(options) - shown - COMMON)
    ]
    faults += [
        f"{MANUAL}:1: no command has --{name}"
        for name in sorted(shown - set(options) - set(more) - opposites(command) - COMMON)
    ]
    # What stands behind `|` or `,` are words; those of the library's options are others'.
    head = text.split(".Sh OPTIONS OF THE LIBRARY")[0]
    words = {word for line in SUBCOMMAND.findall(head) for word in re.findall(r"[a-z]{3,}", line)}
    faults += [
        f"{MANUAL}:1: lacks the command {name}" for name in sorted(command_names(command) - words)
    ]
    return faults


def main() -> int:
    default_root = os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parent.parent)
    parser = argparse.ArgumentParser(description="Pages name the targets and options there are.")
    parser.add_argument("--root", type=Path, default=Path(default_root))
    root = parser.parse_args().root
    faults, count = make_faults(root)
    status = 0
    sys.path.insert(0, str(root / "cli"))
    try:
        application = importlib.import_module("brimful.app")
        typer_main = importlib.import_module("typer.main")
    except ImportError as error:
        status = 77
        summary = f"{error.name} is missing, so options of the command were not compared"
    else:
        command = typer_main.get_command(application.app)
        studies = study_options(root)
        faults += manual_faults(command, studies, (root / MANUAL).read_text())
        everything = set(command_options(command)) | set(studies) | opposites(command) | COMMON
        faults += call_faults(root, everything)
        known = len(command_options(command))
        summary = f"commands: {count} calls of make, {known} options, {len(faults)} faults"
    print("\n".join([*faults, summary]))
    return 1 if faults else status


if __name__ == "__main__":
    sys.exit(main())
