# SPDX-License-Identifier: MIT
"""`brimful run`: become COMMAND, with libbrimful.so preloaded.

The process is replaced (exec), never forked: signals, exit code, process id, terminal and job
control are COMMAND's own, and nothing stays behind in memory. Exit codes of our own are those of
env and nohup: 125 for a mistake on our side, 126 when COMMAND exists but cannot be executed, 127
when it does not exist; every other code is COMMAND's.

What python changed on its way here is put back first: it ignores SIGPIPE and SIGXFSZ (ignored
signals survive exec, and `yes | head` would then end with an error message), and in a C locale it
sets LC_CTYPE.
"""

from __future__ import annotations

import errno
import os
import signal
import sys

from . import locate, program

EXIT_FAILURE = 125
OPTIONS = ("--conf", "--guards", "--lib")
USAGE = """\
usage: brimful run [--conf "key:value,..."] [--guards all|off|N] [--lib PATH] -- COMMAND [ARGUMENT...]"""
# The words for how many of the small objects are guarded, as the option `guards` says it.
GUARDS = {"all": "1", "off": "0"}


class UsageError(Exception):
    """The command line of `brimful run` itself is wrong."""


def wants_help(arguments: list[str]) -> bool:
    """Whether --help stands among run's own options (not among COMMAND's)."""
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in ("--help", "-h"):
            return True
        elif argument in OPTIONS:
            skip = True
        elif argument == "--" or not argument.startswith("-"):
            return False
    return False


def parse(arguments: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Split run's arguments into (settings, library, command). Raises UsageError.

    Options end at `--` or at the first word that is not one, so COMMAND's options are never ours.
    """
    settings: list[str] = []
    chosen: str | None = None
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if name not in OPTIONS:
            raise UsageError(f"unknown option {name}")
        if not equals:
            if not rest:
                raise UsageError(f"{name} needs a value")
            value = rest.pop(0)
        if name == "--conf":
            settings.append(value)
        elif name == "--guards":
            settings.append(f"guards:{guards(value)}")
        else:
            chosen = value
    if not rest:
        raise UsageError("no command given")
    return settings, chosen, rest


def guards(value: str) -> str:
    """The option's value for `--guards VALUE`. Raises UsageError."""
    number = GUARDS.get(value, value)
    if not (number.isascii() and number.isdigit()):
        raise UsageError(
            f"--guards can't be {value}: it takes all, off, or N for one in N small objects"
        )
    return number


def run(arguments: list[str]) -> int:
    """Start what `brimful run ARGUMENTS` asks for; returns an exit code only if that failed."""
    try:
        settings, chosen, command = parse(arguments)
    except UsageError as error:
        _say(f"{error}\n{USAGE}")
        return EXIT_FAILURE
    return start(settings, chosen, command)


def start(settings: list[str], chosen: str | None, command: list[str]) -> int:
    """Replace this process by `command` under the library; returns only on failure."""
    try:
        library = locate.library(chosen)
        preload = locate.preloadable(library)
    except locate.LibraryError as error:
        _say(str(error))
        return EXIT_FAILURE
    try:
        path = program.find(command[0])
    except program.NotRunnable as error:
        _say(str(error))
        return error.code
    try:
        reason = program.why_preload_fails(path, library)
    except OSError:
        # A truncated or vanishing file: exec below tells more about it than a warning could.
        reason = None
    if reason is not None:
        _say(f"warning: {path} {reason}; it runs without brimful")
    return _exec(path, command, environment(settings, preload))


def environment(settings: list[str], preload: str) -> dict[bytes, bytes]:
    """COMMAND's environment: ours, plus the preload and the settings.

    The command line wins over what was set before: its settings come last in BRIMFUL_CONF, where the
    last mention of a key counts, and the variables BRIMFUL_<OPTION>, which the library reads after
    BRIMFUL_CONF, are dropped for the keys it names.
    """
    result = dict(os.environb)
    if result.get(b"LC_CTYPE") == b"C.UTF-8" and not _started_with(b"LC_CTYPE"):
        del result[b"LC_CTYPE"]
    existing = os.fsdecode(result.get(b"LD_PRELOAD", b""))
    result[b"LD_PRELOAD"] = os.fsencode(locate.preload_list(preload, existing))
    inherited = os.fsdecode(result.get(b"BRIMFUL_CONF", b""))
    parts = [part.strip(", ") for part in (inherited, *settings)]
    for entry in ",".join(settings).split(","):
        result.pop(os.fsencode("BRIMFUL_" + entry.partition(":")[0].strip().upper()), None)
    if settings:
        result[b"BRIMFUL_CONF"] = os.fsencode(",".join(part for part in parts if part))
    return result


def _started_with(name: bytes) -> bool:
    """Whether the variable was in this process's environment before python touched it."""
    try:
        with open("/proc/self/environ", "rb") as file:
            return any(entry.startswith(name + b"=") for entry in file.read().split(b"\0"))
    except OSError:
        return True


def restore_signals() -> None:
    """The signals that python ignores, as others have them; ignored ones would survive exec."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _exec(path: str, command: list[str], environment: dict[bytes, bytes]) -> int:
    restore_signals()
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        try:
            os.execve(path, command, environment)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without a `#!` line: execvp, and so env and nohup, give it to the shell.
            os.execve("/bin/sh", ["sh", path, *command[1:]], environment)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, FileNotFoundError):
            # The file itself was there a moment ago, so what is missing is named inside it.
            reason += " (its interpreter or loader)"
            code = program.EXIT_NOT_FOUND
        else:
            code = program.EXIT_CANNOT_RUN
        _say(f"{path}: {reason}")
        return code


def _say(text: str) -> None:
    sys.stderr.write(f"brimful run: {text}\n")
