# SPDX-License-Identifier: MIT
"""Whether a run really had the allocator it was meant to have.

LD_PRELOAD is a wish: the loader ignores it for programs that raise privileges, cannot apply it to
static ones, only warns about a library that it cannot load, and a program that exports a malloc of
its own goes first. A figure taken under a preload that failed is glibc's under another name, so
there are two proofs, and both must hold for every program of a run:

- its maps, read by the launcher while it ran, show the library. The loader maps preloaded libraries
  before libc, so a process with libc and without the library is proof of the contrary;
- the loader's own account of its bindings (LD_DEBUG=bindings of ld.so(8), all bound at once, with
  LD_TRACE_LOADED_OBJECTS so that the program itself does not run) shows that the library gets the
  calls of malloc of every object. It also decides about processes that ended before a look.

The system's own malloc is proved the same way. Some programs link another allocator (Debian's
redis-server: jemalloc), so for programs that are not ours "glibc" is preloaded like everybody else.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Sequence
from typing import Any

from .. import locate

TRACE = {
    "LD_TRACE_LOADED_OBJECTS": "1",
    "LD_WARN": "yes",  # with it, the loader also relocates what it lists
    "LD_BIND_NOW": "yes",
    "LD_DEBUG": "bindings",
}
TRACE_TIMEOUT_S = 60
BINDING = re.compile(r"binding file (.+) \[\d+\] to (.+) \[\d+\]: normal symbol `(\w+)'")
LIBC = re.compile(r"/(libc\.so[^/]*|libc-[^/]*|ld-musl[^/]*)$")
PROGRAM_HEADER_INTERPRETER = 3


def is_libc(path: str) -> bool:
    return LIBC.search(path) is not None


def c_library() -> str:
    """Path of the C library of this system's programs, or "" if it cannot be told."""
    with open("/proc/self/maps") as maps:
        paths = (line.split(maxsplit=5)[-1].strip() for line in maps if "/" in line)
        return next((path for path in paths if is_libc(path)), "")


def is_served(by: str, library: str) -> bool:
    """Whether the file that a program of ours names as its malloc's is `library`; "" is the system's."""
    served = os.path.realpath(by)
    return served == os.path.realpath(library) if library else bool(by) and is_libc(served)


def objection(processes: Sequence[dict[str, Any]], library: str, root: str) -> str:
    """Why these processes do not prove that `library` served them, or "".

    `library` "" is the system's own. `root` is the file that the launcher executed under the
    preload: if all was over before a look, the loader's account of it must do; "" if there is none.
    """
    if not library:
        return _objection_to_system(processes)
    wanted = os.path.realpath(library)
    name = os.path.basename(library)
    proven = []
    for process in processes:
        if wanted in process["allocators"]:
            proven.append(str(process["exe"]))
        elif process["unreadable"]:
            return f"the kernel refuses to show the maps of {_called(process)}"
        elif any(is_libc(path) for path in process["allocators"]):
            return f"{_called(process)} ran without {name}"
    for program in dict.fromkeys(proven or [root]):
        called = os.path.basename(program) or "the program"
        if is_static(program):
            return f"{called} is statically linked: nothing can be preloaded"
        servers = servers_of_malloc(program, library)
        others = [by for by in servers if by != wanted]
        if others:
            return f"{called} takes malloc from {os.path.basename(others[0])}"
        if not servers and not proven:
            return f"{called} ended before its maps could be read"
    return ""


def _objection_to_system(processes: Sequence[dict[str, Any]]) -> str:
    for process in processes:
        foreign = [path for path in process["allocators"] if not is_libc(path)]
        if not foreign:
            continue
        # It is mapped; what counts is whether anything is bound to it with libc preloaded.
        servers = servers_of_malloc(process["exe"], c_library())
        others = [path for path in servers if not is_libc(path)]
        if others or not servers:
            by = os.path.basename((others or foreign)[0])
            return f"{_called(process)} brings an allocator of its own, {by}"
    return ""


def _called(process: dict[str, Any]) -> str:
    return str(process["name"] or os.path.basename(process["exe"]) or "a process")


@functools.cache
def servers_of_malloc(program: str, library: str) -> tuple[str, ...]:
    """Files that malloc of any object of `program` is bound to with `library` preloaded.

    Empty if the loader cannot tell (a static program, a script). Does not run the program.
    """
    environment = {"PATH": os.environ.get("PATH", ""), **TRACE}
    environment["LD_PRELOAD"] = locate.preloadable(library)
    try:
        done = subprocess.run(
            [program],
            env=environment,
            capture_output=True,
            timeout=TRACE_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    lines = done.stderr.decode(errors="replace").splitlines()
    found = (BINDING.search(line) for line in lines)
    pairs = {(by[1], os.path.realpath(by[2])) for by in found if by and by[3] == "malloc"}
    servers = {server for _, server in pairs}
    # A program at a fixed address that takes the address of malloc lends its own jump to it to all
    # others. Where that jump leads shows in what the program itself is bound to.
    itself = os.path.realpath(program)
    if any(user == program and server != itself for user, server in pairs):
        servers.discard(itself)
    return tuple(sorted(servers))


@functools.cache
def is_static(path: str) -> bool:
    """Whether `path` is an ELF program that asks for no dynamic loader."""
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if head[:4] != b"\x7fELF" or head[4] != 2:
                return False
            start = int.from_bytes(head[32:40], "little")
            size = int.from_bytes(head[54:56], "little")
            count = int.from_bytes(head[56:58], "little")
            file.seek(start)
            table = file.read(size * count)
    except OSError:
        return False
    kinds = (table[at : at + 4] for at in range(0, size * count, size))
    return all(int.from_bytes(kind, "little") != PROGRAM_HEADER_INTERPRETER for kind in kinds)
