# SPDX-License-Identifier: MIT
"""Finding the program to start, and knowing beforehand whether a preload can reach it.

Three kinds of program start normally but never see LD_PRELOAD: statically linked ones (no loader
runs), those that gain privileges at exec (the loader is in secure mode and ignores the variable),
and those of another word size or machine (the loader refuses the library). All three look like
"brimful made no difference", which is why `run` says so; it never refuses, because COMMAND may well
start other programs that the preload does reach.
"""

from __future__ import annotations

import os
import stat

EXIT_CANNOT_RUN = 126
EXIT_NOT_FOUND = 127

_PT_INTERP = 3
_MAX_SCRIPT_DEPTH = 4  # the kernel's own limit for a script whose interpreter is a script


class NotRunnable(Exception):
    """COMMAND cannot be started; `code` is the exit code that env and nohup use for it."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Obstacle(str):
    """Why a preload fails, in words that follow the program's name; `kind` tells them apart."""

    kind: str  # static, musl, machine or secure

    @classmethod
    def of(cls, kind: str, reason: str) -> Obstacle:
        """One of that kind."""
        obstacle = cls(reason)
        obstacle.kind = kind
        return obstacle


def find(command: str) -> str:
    """Path of `command` as execvp would choose it.

    Raises NotRunnable: 127 if there is no such file, 126 if there is but it cannot be executed.
    """
    if not command:
        raise NotRunnable(EXIT_NOT_FOUND, "'': not found")
    if "/" in command:
        _check(command, command)
        return command
    refused = None
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        path = os.path.join(folder or ".", command)
        try:
            _check(path, command)
        except NotRunnable as error:
            if error.code == EXIT_CANNOT_RUN:
                refused = refused or error
        else:
            return path
    raise refused or NotRunnable(EXIT_NOT_FOUND, f"{command}: not found")


def _check(path: str, command: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise NotRunnable(EXIT_NOT_FOUND, f"{command}: not found") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NotRunnable(EXIT_CANNOT_RUN, f"{command}: {reason}") from None
    if stat.S_ISDIR(mode):
        raise NotRunnable(EXIT_CANNOT_RUN, f"{command}: is a folder")
    if not os.access(path, os.X_OK):
        raise NotRunnable(EXIT_CANNOT_RUN, f"{path}: not executable")


def why_preload_fails(path: str, library: str) -> Obstacle | None:
    """Reason why a preloaded `library` will not reach the program at `path`, or None."""
    for _ in range(_MAX_SCRIPT_DEPTH):
        privileged = _gains_privileges(path)
        try:
            with open(path, "rb") as file:
                head = file.read(256)
                if head[:2] != b"#!":
                    linkage = _linkage_problem(file.fileno(), head, library)
                    break
        except OSError:
            # Executable but unreadable: nothing is known about it, so nothing is said.
            linkage = None
            break
        # The kernel ignores privileges of a script; its interpreter decides.
        words = head[2:].split(b"\n", 1)[0].split(None, 1)
        if not words:
            return None
        path = os.fsdecode(words[0])
    else:
        return None
    return linkage or privileged


def _gains_privileges(path: str) -> Obstacle | None:
    """Whether exec of `path` makes the loader run in secure mode (AT_SECURE)."""
    try:
        status = os.stat(path)
        if os.statvfs(path).f_flag & os.ST_NOSUID:
            return None
    except OSError:
        return None
    if status.st_mode & stat.S_ISUID and status.st_uid != os.getuid():
        return Obstacle.of("secure", "is set-user-ID: the loader ignores preloads there")
    runs_as_group = status.st_mode & stat.S_ISGID and status.st_mode & stat.S_IXGRP
    if runs_as_group and status.st_gid != os.getgid():
        return Obstacle.of("secure", "is set-group-ID: the loader ignores preloads there")
    if os.getuid() != 0:
        try:
            os.getxattr(path, "security.capability")
        except OSError:
            return None
        return Obstacle.of("secure", "has file capabilities: the loader ignores preloads there")
    return None


def _linkage_problem(descriptor: int, head: bytes, library: str) -> Obstacle | None:
    """Read the ELF header and program headers of an open file."""
    if head[:4] != b"\x7fELF" or len(head) < 64:
        return None
    with open(library, "rb") as file:
        ours = file.read(20)
    if head[4] != ours[4]:
        bits = 32 if head[4] == 1 else 64
        return Obstacle.of("machine", f"is a {bits}-bit program, the library is not")
    if head[18:20] != ours[18:20]:
        return Obstacle.of("machine", "is built for another machine than the library")
    if head[4] != 2:
        return None
    order = "little" if head[5] == 1 else "big"

    def number(data: bytes, at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], order)  # type: ignore[arg-type]

    size, count = number(head, 54, 2), number(head, 56, 2)
    table = os.pread(descriptor, size * count, number(head, 32, 8))
    for at in range(0, len(table) - 55, size or 56):
        if number(table, at, 4) == _PT_INTERP:
            name = os.pread(descriptor, number(table, at + 32, 8), number(table, at + 8, 8))
            if b"ld-musl" in name:
                return Obstacle.of("musl", "is linked against musl, the library against glibc")
            return None
    reason = "is statically linked: no loader runs that could preload (link libbrimful.a instead)"
    return Obstacle.of("static", reason)
