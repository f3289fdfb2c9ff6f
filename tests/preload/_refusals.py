# SPDX-License-Identifier: MIT
"""Real programs in which the k-th system call of the library fails: what is run, how, and what counts as a fault.

`_refuse.c`, preloaded in front of the library, refuses the calls. A program may end, by its own message
and even by its own abort(), when malloc told it ENOMEM: that is its answer to NULL. It is a fault

- when the library says something of its own (all of its lines begin with `brimful:`), or crashes;
- when a signal ends the program though no request was refused to it;
- when it takes longer than anything in it can explain;
- when it claims success, and what it prints is not what it prints when nothing fails.

Environment: BRIMFUL_LIB, the library.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("BRIMFUL_LIB", ROOT / "build/release/libbrimful.so")).resolve()

# struct Shared of _refuse.c.
DESCRIPTOR = 200
CALLS = 512
ANY, MEMORY = -1, -2
HEAD = struct.Struct("<QqQQqQQQ")
COUNTS = struct.Struct(f"<{CALLS}Q")
MAGIC = 0x6573756665726D62
ALWAYS = (1 << 64) - 1

# The calls that the tally names; others stand there by their number.
NAMES = {
    0: "read", 1: "write", 3: "close", 9: "mmap", 10: "mprotect", 11: "munmap", 24: "sched_yield", 25: "mremap",
    27: "mincore", 28: "madvise", 35: "nanosleep", 39: "getpid", 72: "fcntl", 145: "sched_getscheduler",
    157: "prctl", 202: "futex", 203: "sched_setaffinity", 204: "sched_getaffinity", 237: "mbind", 257: "openat",
    262: "newfstatat", 302: "prlimit64", 309: "getcpu", 324: "membarrier", 332: "statx", 334: "rseq",
}  # fmt: skip
SECONDS = 30.0
RUNS_AGAIN = 5


@dataclass(frozen=True)
class Plan:
    """Which calls fail: the first to the last of `call`, counted over the tree of processes."""

    call: int
    first: int = 0
    last: int = 0
    error: int = errno.ENOMEM


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `status` as subprocess has it; None: it did not end."""

    status: int | None
    output: bytes
    errors: bytes
    refused: int
    nulls: int
    counts: tuple[int, ...]
    seconds: float
    pid: int = 0


@dataclass(frozen=True)
class Program:
    """A command, what it is fed, and by which library options it is run."""

    name: str
    command: list[str]
    conf: str = "verbose:0"
    stdin: bytes = b""
    user: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    requests: list[bytes] | None = None  # to the socket that a server opens
    socket: str = ""
    gives_up: bytes = b""  # what it says on stderr when it goes on without what it was to do


class Refuser:
    """The two forms of _refuse.c, built, and a folder for what the programs need."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="brimful-refusals-"))
        self.folder.chmod(0o755)
        source = Path(__file__).with_name("_refuse.c")
        self.plain, self.counting = self.folder / "refuse.so", self.folder / "refuse_counting.so"
        for target, flags in ((self.plain, []), (self.counting, ["-DCOUNT_NULLS"])):
            command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fno-builtin", *flags]
            subprocess.run([*command, "-o", str(target), str(source)], check=True)

    def copy(self, name: str) -> Refuser:
        """One with a folder of its own inside this one's, so that two programs at a time don't meet."""
        other = Refuser.__new__(Refuser)
        other.folder = self.folder / name
        other.folder.mkdir()
        other.folder.chmod(0o777)
        other.plain, other.counting = self.plain, self.counting
        if (self.folder / "data").exists():
            subprocess.run(["cp", "-a", self.folder / "data", other.folder], check=True)
        return other

    def adopt(self, program: Program) -> Program:
        """The program of the refuser that this is a copy of, with what it uses in this folder."""
        old, new = str(self.folder.parent), str(self.folder)
        command = [word if word.endswith(".cpp") else word.replace(old, new) for word in program.command]
        return replace(program, command=command, socket=program.socket.replace(old, new))

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, program: Program, plan: Plan, *, counts_nulls: bool = False) -> Outcome:
        """Runs the program once under the plan. Takes as long as the program, SECONDS at most."""
        with tempfile.TemporaryFile() as file:
            file.write(HEAD.pack(MAGIC, plan.call, plan.first, plan.last, plan.error, 0, 0, 0))
            file.write(bytes(COUNTS.size))
            file.flush()
            os.dup2(file.fileno(), DESCRIPTOR, inheritable=True)
            try:
                outcome = self._run(program, self.counting if counts_nulls else self.plain)
            finally:
                os.close(DESCRIPTOR)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                *_, refused, nulls = HEAD.unpack_from(view)
                counts = COUNTS.unpack_from(view, HEAD.size)
        status, output, errors, seconds, pid = outcome
        return Outcome(status, output, errors, refused, nulls, counts, seconds, pid)

    def _run(self, program: Program, refuse: Path) -> tuple[int | None, bytes, bytes, float, int]:
        environment = {
            "PATH": os.environ["PATH"],
            "LC_ALL": "C",
            "HOME": str(self.folder),
            "LD_PRELOAD": f"{refuse} {LIBRARY}",
            "BRIMFUL_CONF": program.conf,
            **program.environment,
        }
        began = time.monotonic()
        process = subprocess.Popen(
            program.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=self.folder,
            user=program.user,
            group=program.user,
            pass_fds=[DESCRIPTOR],
            start_new_session=True,
        )
        answers = b""
        try:
            if program.requests is not None:
                answers = _ask(process, program.socket, program.requests)
            output, errors = process.communicate(program.stdin, timeout=SECONDS)
            status: int | None = process.returncode
        except subprocess.TimeoutExpired:
            status = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
        if program.requests is not None:
            output = answers  # a server's own words have the time in them
        return status, output, errors, time.monotonic() - began, process.pid


def _ask(process: subprocess.Popen[bytes], path: str, requests: list[bytes]) -> bytes:
    """Sends the requests to the server's socket, one after the other, while the server lives."""
    end = time.monotonic() + SECONDS
    with contextlib.suppress(FileNotFoundError):
        while process.poll() is None and time.monotonic() < end:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(SECONDS)
                try:
                    client.connect(path)
                except OSError:
                    time.sleep(0.005)
                    continue
                answers = b""
                with contextlib.suppress(ConnectionError, TimeoutError):
                    for request in requests:
                        client.sendall(request)
                        answers += client.recv(1 << 20)
                return answers
    return b""


def run_and_judge(refuser: Refuser, program: Program, plan: Plan, expected: bytes) -> tuple[Outcome, str | None]:
    """Runs the program, and says in a line what is wrong with how it ended; None: nothing."""
    # Where all is refused from some moment on, the program will hear of it.
    outcome = refuser.run(program, plan, counts_nulls=plan.last == ALWAYS)
    return outcome, fault_of(refuser, program, plan, outcome, expected) if outcome.refused else None


def fault_of(refuser: Refuser, program: Program, plan: Plan, outcome: Outcome, expected: bytes) -> str | None:
    """As run_and_judge(), of a run that is over."""
    said = re.search(rb"^.*brimful:.*$", outcome.errors, re.MULTILINE)
    if said is not None:
        return f"the library says: {said[0].decode(errors='replace')}"
    if outcome.status is None:
        return f"no end after {SECONDS:.0f} s"
    if outcome.status == 0 and outcome.output != expected:
        if program.gives_up and program.gives_up in outcome.errors:
            return None
        return f"success, with an output of {len(outcome.output)} bytes in place of {len(expected)}"
    if outcome.status >= 0:
        return None
    name = signal.Signals(-outcome.status).name
    where = crash_of(outcome.pid)
    if LIBRARY.name in where:
        return f"{name} in the library: {where}"
    # Which call is the k-th may differ from run to run.
    for _ in range(RUNS_AGAIN if outcome.nulls == 0 else 0):
        again = refuser.run(program, plan, counts_nulls=True)
        if again.nulls > 0 and again.status == outcome.status:
            return None
    return f"{name}, and nothing was refused to the program {where}" if outcome.nulls == 0 else None


def crash_of(pid: int) -> str:
    """What the kernel's log says of the process's fault; empty where nobody may read it."""
    answer = subprocess.run(["dmesg"], capture_output=True, text=True, check=False).stdout
    lines = [line for line in answer.splitlines()[-200:] if re.search(rf"\[{pid}\].* in ", line)]
    return lines[-1].partition("] ")[2] if lines else ""
