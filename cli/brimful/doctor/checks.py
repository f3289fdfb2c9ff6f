# SPDX-License-Identifier: MIT
"""The checks of `brimful doctor`, one function each: a process in, its findings out.

First whether brimful is in the process and owns its malloc; only where it does not, why. Then what the
machine, the control group and the limits do to its memory. A check finds nothing in a healthy program.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from .. import locate, program
from .binary import Binary
from .binary import look as look_at_binary
from .findings import NOTE, PROBLEM, Examined, Finding
from .process import UNLIMITED, Process, System

_MIB = 1 << 20
_NEARLY = 0.9  # of a limit
_MANY_MAPPINGS = 0.8  # of vm.max_map_count
_SMALL_ADDRESS_SPACE = 64 << 30
# Names of the libraries of other allocators, as they are mapped.
_LIBRARIES = {
    "jemalloc": "libjemalloc",
    "tcmalloc": "libtcmalloc",
    "mimalloc": "libmimalloc",
    "snmalloc": "libsnmalloc",
    "rpmalloc": "librpmalloc",
    "TBB": "libtbbmalloc",
    "hardened_malloc": "libhardened_malloc",
    "scudo": "libscudo",
}
_LOSERS = {
    "sudo": "sudo clears it: `sudo brimful run -- COMMAND` sets it on the other side",
    "doas": "doas clears it: `doas brimful run -- COMMAND` sets it on the other side",
    "su": "su gives a login environment: say `su -c 'brimful run -- COMMAND'`",
    "systemd": "a service gets it from its unit: `systemctl edit UNIT`, Environment=LD_PRELOAD=PATH",
    "dockerd": "a container has its own: `docker run -e LD_PRELOAD=PATH`, with the library in the image",
    "containerd-shim": "a container gets its own environment: set LD_PRELOAD in its description",
    "sshd": "a login gets a new environment: start the program by `brimful run` there",
    "cron": "cron starts jobs with an environment of its own: name `brimful run` in the job's line",
}

# By the kind of program.Obstacle.
_WAYS_OUT = {
    "static": "link it with libbrimful.a (docs/guide/linking.md)",
    "musl": "build the library against musl, or link the program with libbrimful.a",
    "machine": "take a library that is built for it",
    "secure": "link it with libbrimful.a, or start it without the privilege",
    "unreachable": "look at what the dynamic linker says: LD_DEBUG=libs COMMAND",
}


def examine(process: Process, front_end: str | None, library: str | None) -> Examined:
    """Everything about one running process. `front_end`: what the library in it says, if known;
    `library`: the one that would be preloaded."""
    findings: list[Finding] = []
    binary = look_at_binary(process.program())
    runs = process.has_loaded_brimful() or "brimful" in binary.allocators
    if not runs:
        findings += _absence(process, binary, library)
    findings += _owners(process, binary, runs)
    if runs:
        findings += _front_end(process, front_end)
        findings += _limits(process)
        findings += _memory(process)
        findings += of_machine(process.system)
    return Examined(process.pid, process.name(), runs, front_end, tuple(findings))


def of_file(path: str, library: str) -> list[Finding]:
    """About a program that is not running: what will keep a preload from it."""
    binary = look_at_binary(path)
    if "brimful" in binary.allocators:
        return []
    reason = program.why_preload_fails(path, library)
    findings = [_unreachable(path, reason, binary)] if reason else []
    if not reason:
        findings += _own_allocator(path, binary)
    return findings


def of_machine(system: System) -> Iterator[Finding]:
    """What holds for every process of the machine."""
    if system.hugepages() == "never":
        yield Finding(
            NOTE,
            "hugepages-off",
            "hugepages are switched off",
            f"{system.sys}/kernel/mm/transparent_hugepage/enabled says never",
            "big heaps take a fault and an entry of the TLB for each 4 KiB; thp:auto can't help",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        )
    if system.overcommit() == 2:
        used, most = system.committed()
        is_near = most > 0 and used > _NEARLY * most
        yield Finding(
            PROBLEM if is_near else NOTE,
            "strict-overcommit",
            "the system promises no more memory than it has",
            f"vm.overcommit_memory is 2; {_mib(used)} of {_mib(most)} are promised",
            "malloc gives NULL when that is used up, though memory is free; fork of a large process fails",
            "sudo sysctl vm.overcommit_memory=0, or raise vm.overcommit_ratio",
        )


def _absence(process: Process, binary: Binary, library: str | None) -> Iterator[Finding]:
    """Why a process does not run brimful."""
    if not process.wants_brimful():
        yield _never_asked(process)
        return
    wanted = next(name for name in process.preloads() if "libbrimful" in name)
    if process.is_secure():
        yield Finding(
            PROBLEM,
            "secure",
            "gained privileges as it started, so it ignores preloads",
            "AT_SECURE is set (set-user-ID, set-group-ID or file capabilities); LD_PRELOAD is",
            "the dynamic linker takes nothing from an environment that less privileged users can write",
            "start it as that user instead, or link it with libbrimful.a; /etc/ld.so.preload reaches "
            "every program of the machine, this one as well",
        )
    elif not process.sees(wanted):
        yield Finding(
            PROBLEM,
            "no-such-library",
            "the library isn't there where this process lives",
            f"LD_PRELOAD names {wanted}; there is no such file in the process's root folder",
            "the dynamic linker warned and went on without: in containers and chroots other files lie "
            "below the same names",
            "put the library into the image, or mount it there, and name its path inside",
        )
    else:
        reason = program.why_preload_fails(process.program(), library) if library else None
        yield _unreachable(process.name(), reason, binary)


def _unreachable(name: str, obstacle: program.Obstacle | None, binary: Binary) -> Finding:
    """A preload that can't reach a program, and what its kind of program can do instead."""
    kind = obstacle.kind if obstacle is not None else "unreachable"
    seen = f"{name} {obstacle or 'could not load it'}"
    means = "the dynamic linker loads nothing into it, so it keeps its own malloc"
    mend = _WAYS_OUT[kind]
    if binary.is_go and kind == "static":
        kind, seen = "go", f"{seen}; it is a Go program"
        means = "Go's objects come from its collector, not from malloc; only C code called by cgo would gain"
        mend = "nothing to do: no malloc makes it faster (GOGC and GOMEMLIMIT are Go's settings)"
    return Finding(PROBLEM, kind, "a preload doesn't reach it", seen, means, mend)


def _never_asked(process: Process) -> Finding:
    """LD_PRELOAD is not set: lost on the way, or never there."""
    child, parent = process, process.parent()
    while parent is not None:
        if parent.wants_brimful() or parent.has_loaded_brimful():
            loser = child.name()
            why = next((text for name, text in _LOSERS.items() if loser.startswith(name)), None)
            return Finding(
                PROBLEM,
                "preload-lost",
                "LD_PRELOAD was lost on the way here",
                f"{parent.name()} ({parent.pid}) has it, {loser} ({child.pid}), which it started, has not",
                "each process gets its environment from the one that starts it, which made a new one here",
                why
                or f"let {loser} keep LD_PRELOAD, or start the program by `brimful run` behind it",
            )
        child, parent = parent, parent.parent()
    top = child.name()
    advice = next((text for name, text in _LOSERS.items() if top.startswith(name)), None)
    in_unit = f"; for a service, {advice}" if advice and process.pid != child.pid else ""
    return Finding(
        PROBLEM,
        "not-asked-for",
        "doesn't run brimful",
        "libbrimful is not among its files, and LD_PRELOAD names it neither here nor in a process above",
        "it uses the malloc it was built with; a running process can't change it",
        f"start it by `brimful run -- {_command(process)}`{in_unit}",
    )


def _owners(process: Process, binary: Binary, runs: bool) -> Iterator[Finding]:
    """Other allocators in the process, and whose malloc is."""
    if runs and process.has_loaded_brimful():
        yield from _own_allocator(process.name(), binary)
    others = [
        (name, file)
        for file in process.files()
        for name, stem in _LIBRARIES.items()
        if os.path.basename(file).startswith(stem)
    ]
    preloads = [os.path.basename(name) for name in process.preloads()]
    ours = next((at for at, name in enumerate(preloads) if name.startswith(locate.LIBRARY)), None)
    for name, file in others:
        stem = _LIBRARIES[name]
        theirs = next((at for at, one in enumerate(preloads) if one.startswith(stem)), None)
        if not runs:
            owner = f"malloc is {name}'s"
        elif theirs is not None and (ours is None or theirs < ours):
            yield Finding(
                PROBLEM,
                "other-preload-first",
                f"{name} is preloaded before brimful",
                f"LD_PRELOAD={':'.join(process.preloads())}",
                f"the first that has a malloc gets the calls: {name}",
                f"name libbrimful.so first, or leave {os.path.basename(file)} out",
            )
            continue
        else:
            owner = "malloc is brimful's, which comes first"
        yield Finding(
            NOTE,
            "two-allocators",
            f"{name} is loaded, too",
            f"{file}; {owner}",
            "malloc, free, new and jemalloc's functions are the owner's; memory from functions that only "
            f"{name} has is {name}'s, and must not be freed by the other",
            "nothing, as long as the program uses the common functions; else build it without that library",
        )


def _own_allocator(name: str, binary: Binary) -> Iterator[Finding]:
    """Another allocator inside the program's own file, and Go."""
    others = [one for one in binary.allocators if one != "brimful"]
    inside = ", ".join(others) or "an allocator of its own"
    if binary.is_go:
        yield Finding(
            NOTE,
            "go",
            "is a Go program",
            f"{name} has Go's build information",
            "Go's objects come from its own collector; brimful serves only C code that is called by cgo",
            "expect a gain only where perf shows malloc; GOGC and GOMEMLIMIT are Go's settings",
        )
    elif binary.exports_malloc:
        yield Finding(
            PROBLEM,
            "own-malloc",
            "the program brings a malloc of its own, which wins",
            f"{name} exports malloc ({inside})",
            "the dynamic linker takes a function from the program before it looks at what is preloaded",
            "build it with the system's malloc (redis: make MALLOC=libc), or link it with libbrimful.a",
        )
    elif binary.contains_malloc or others:
        rust = " (Rust programs: their #[global_allocator])" if binary.is_rust else ""
        yield Finding(
            NOTE,
            "own-allocator",
            "the program has another allocator built in",
            f"{name} contains {inside}{rust}",
            "its own calls go there; brimful serves the libraries it has loaded, and calls of plain malloc",
            "build the program with the system's allocator, so that its malloc is brimful's",
        )


def _front_end(process: Process, front_end: str | None) -> Iterator[Finding]:
    if front_end != "thread":
        return
    conf = process.variables()
    chosen = "front_end:thread" in conf.get("BRIMFUL_CONF", "") or "BRIMFUL_FRONT_END" in conf
    yield Finding(
        NOTE,
        "front-end-thread",
        "keeps free objects per thread, not per processor",
        "the option front_end says so"
        if chosen
        else "the kernel offers it no restartable sequences (rseq), or a seccomp policy forbids them",
        "it works as well; with many more threads than processors it keeps more memory",
        "leave front_end out"
        if chosen
        else "allow the system call rseq, or run on Linux 4.18 or newer",
    )


def _limits(process: Process) -> Iterator[Finding]:
    limit = process.address_space_limit()
    if limit != UNLIMITED and limit < _SMALL_ADDRESS_SPACE:
        used = process.status("VmSize")
        yield Finding(
            PROBLEM if used > _NEARLY * limit else NOTE,
            "address-space-limit",
            "its address space is limited",
            f"ulimit -v is {_mib(limit)}; {_mib(used)} are taken",
            "brimful reserves less, and malloc gives NULL at the limit, however much memory is free",
            "ulimit -v unlimited before it starts; what limits memory is the option limit or a control group",
        )
    most = process.system.most_mappings()
    mappings = process.mappings()
    if most is not None and mappings > _MANY_MAPPINGS * most:
        yield Finding(
            PROBLEM,
            "many-mappings",
            "it has nearly as many mappings as the system allows",
            f"{mappings} of vm.max_map_count {most}",
            "at the limit mmap fails, and so do malloc of large blocks and the start of threads",
            f"sudo sysctl vm.max_map_count={4 * most}",
        )
    group = process.group_memory()
    if group is not None and group[1] > _NEARLY * group[2]:
        folder, used, allowed = group
        resident = process.status("VmRSS")
        yield Finding(
            PROBLEM,
            "group-limit",
            "its control group is nearly out of memory",
            f"{_mib(used)} of {_mib(allowed)} in {folder}; {_mib(resident)} are this process's",
            "at the limit the kernel takes caches first, then ends a process of the group",
            "soft_limit:auto gives memory back before that, limit:auto makes malloc give NULL; or raise it",
        )


def _memory(process: Process) -> Iterator[Finding]:
    resident = process.status("VmRSS")
    locked = process.status("VmLck")
    if locked > resident // 4 and locked > 0:
        yield Finding(
            NOTE,
            "locked",
            "its memory is locked",
            f"{_mib(locked)} are (mlock or mlockall), of {_mib(resident)} resident",
            "locked memory can't go back to the system, so free memory stays resident after a peak",
            "lock only what must be (mlock of those buffers), not all of it by mlockall",
        )
    swapped = process.status("VmSwap")
    if swapped > _MIB and swapped > resident // 20:
        yield Finding(
            NOTE,
            "swapped",
            "a part of it lies in swap",
            f"{_mib(swapped)} are swapped out, {_mib(resident)} resident",
            "the first touch of such memory waits for the disk, in malloc as anywhere",
            "give it more memory, or let it give back what is free sooner: purge_delay_ms:100",
        )
    if process.has_hugepages_forbidden():
        yield Finding(
            NOTE,
            "hugepages-forbidden",
            "hugepages are switched off for it",
            "THP_enabled is 0 in its status: prctl(PR_SET_THP_DISABLE), by itself or whoever started it",
            "big heaps take a fault and an entry of the TLB for each 4 KiB",
            "look for the setting in the service's manager or the program's options",
        )


def _command(process: Process) -> str:
    words = (process.system.proc / str(process.pid) / "cmdline").read_bytes().split(b"\0")[:-1]
    return shlex.join(os.fsdecode(word) for word in words) or "COMMAND"


def _mib(number: int) -> str:
    """A number of bytes for people."""
    return f"{number / _MIB:,.0f} MiB" if number < 10 << 30 else f"{number / (1 << 30):,.1f} GiB"
