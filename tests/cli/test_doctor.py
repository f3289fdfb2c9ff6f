#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each finding of `brimful doctor` is provoked and named; in a healthy program nothing is found.

What a test can bring about is brought about; what belongs to the machine (the mode of hugepages, swap,
the control group's limit) stands in copies of the kernel's files.

Environment: BRIMFUL_BUILD, the folder of the build.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BRIMFUL_BUILD", ROOT / "build/release")).resolve()
LIBRARY = BUILD / "libbrimful.so"
OBSERVER = BUILD / "brimful-observer"
LAUNCHER = ROOT / "brimful"
SKIP = 77
PLAIN = {
    name: value for name, value in os.environ.items() if not name.startswith(("LD_", "BRIMFUL_"))
} | {"BRIMFUL_OBSERVER": str(OBSERVER)}
PR_SET_THP_DISABLE = 41

sys.path.insert(0, str(ROOT / "cli"))
try:
    import elftools  # noqa: F401
    import typer  # noqa: F401
except ImportError as error:
    print(f"skipped: python3-{error.name} is missing")
    sys.exit(SKIP)
if not LIBRARY.exists():
    print(f"skipped: {LIBRARY} is not built")
    sys.exit(SKIP)

from brimful.doctor import checks  # noqa: E402
from brimful.doctor.findings import Finding  # noqa: E402
from brimful.doctor.process import Process, System  # noqa: E402

# Says that it is there, and waits for its input to end.
WAITS = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
{more}
int main(void) {{
  char byte;
  void* volatile object = malloc(100);
  puts("here");
  fflush(stdout);
  while (read(0, &byte, 1) > 0) {{}}
  free(object);
  return 0;
}}
"""


def doctor(*arguments: str, code: int | None = None, timeout: int = 60) -> dict[str, Any]:
    """What `brimful doctor --json` says."""
    command = [str(LAUNCHER), "doctor", "--json", "--lib", str(LIBRARY), *arguments]
    result = subprocess.run(
        command,
        env=PLAIN,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if code is not None and result.returncode != code:
        raise AssertionError(f"exit code {result.returncode}: {result.stdout}{result.stderr}")
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def kinds(found: dict[str, Any]) -> set[str]:
    """The findings of all processes, by name."""
    return {finding["kind"] for process in found["processes"] for finding in process["findings"]}


class Programs(unittest.TestCase):
    """Small programs, built once for all tests of a class."""

    folder: Path
    plain: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="brimful-doctor-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.plain = cls.program("plain")

    @classmethod
    def program(cls, name: str, *flags: str, more: str = "") -> str:
        source, path = cls.folder / f"{name}.c", cls.folder / name
        source.write_text(WAITS.format(more=more))
        subprocess.run(["gcc", "-O1", "-w", *flags, "-o", path, source], check=True)
        return str(path)

    @contextlib.contextmanager
    def running(
        self, *command: str, preload: str | None = str(LIBRARY), **options: Any
    ) -> Iterator[int]:
        """A process that has said "here"."""
        variables = PLAIN | ({"LD_PRELOAD": preload} if preload else {}) | options.pop("env", {})
        with subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            **options,
        ) as child:
            assert child.stdout is not None and child.stdin is not None
            self.assertEqual(child.stdout.readline(), b"here\n")
            try:
                yield child.pid
            finally:
                child.stdin.close()
                child.wait()


class Files(Programs):
    """What the file of a program shows."""

    def test_a_static_program(self) -> None:
        self.assertEqual(kinds(doctor("--", self.program("static", "-static"), code=1)), {"static"})

    def test_a_program_for_musl(self) -> None:
        path = self.program("musl", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
        self.assertEqual(kinds(doctor("--", path, code=1)), {"musl"})

    def test_go(self) -> None:
        mark = '__attribute__((section(".go.buildinfo"), used)) static const char info[16] = "go";'
        self.assertEqual(kinds(doctor("--", self.program("go", more=mark), code=0)), {"go"})
        path = self.program("static-go", "-static", more=mark)
        self.assertEqual(kinds(doctor("--", path, code=1)), {"go"})

    def test_an_allocator_built_in(self) -> None:
        more = 'void* _rjem_malloc(size_t n) { return 0; } const char* at = "/rustc/1/library";'
        found = doctor("--", self.program("rust", more=more), code=0)
        self.assertEqual(kinds(found), {"own-allocator"})
        self.assertIn("Rust", found["processes"][0]["findings"][0]["seen"])

    def test_a_malloc_that_wins(self) -> None:
        more = "static char heap[1 << 16]; void* malloc(size_t n) { return heap; } void free(void* p) {}"
        self.assertEqual(
            kinds(doctor("--", self.program("own", "-rdynamic", more=more), code=1)), {"own-malloc"}
        )

    def test_a_text_that_is_no_program(self) -> None:
        path = self.folder / "script"
        path.write_text("#!/bin/sh\nexit 3\n")
        path.chmod(0o755)
        self.assertEqual(kinds(doctor("--", str(path), code=0)), set())


class Processes(Programs):
    """What a running process shows."""

    def test_a_healthy_program(self) -> None:
        for front_end in ("percpu", "thread"):
            with self.running(self.plain, env={"BRIMFUL_FRONT_END": front_end}) as pid:
                found = checks.examine(Process(healthy(), pid), None, str(LIBRARY))
                self.assertEqual((found.findings, found.runs_brimful), ((), True))

    def test_nobody_asked_for_it(self) -> None:
        with self.running(self.plain, preload=None) as pid:
            self.assertEqual(kinds(doctor(str(pid), code=1)), {"not-asked-for"})

    def test_lost_on_the_way(self) -> None:
        with self.running("sh", "-c", f"env -u LD_PRELOAD {self.plain}; exit 0") as pid:
            child = next(
                p for p in System().processes() if Process(System(), p).status("PPid") == pid
            )
            found = doctor(str(child), code=1)
            self.assertEqual(kinds(found), {"preload-lost"})
            self.assertIn(f"sh ({pid}) has it", found["processes"][0]["findings"][0]["seen"])

    def test_a_library_that_is_not_there(self) -> None:
        with self.running(self.plain, preload="/no/such/libbrimful.so") as pid:
            self.assertEqual(kinds(doctor(str(pid), code=1)), {"no-such-library"})

    def test_privileges(self) -> None:
        if os.getuid() != 0:
            self.skipTest("only root can make a set-user-ID program of another user's")
        path = self.program("privileged")
        self.folder.chmod(0o755)
        os.chown(path, 1, 1)
        os.chmod(path, 0o6755)
        with self.running(path) as pid:
            self.assertEqual(kinds(doctor(str(pid), code=1)), {"secure"})
        self.assertIn("secure", kinds(doctor("--seconds", "0.3", "--", path, code=1)))

    def test_two_allocators(self) -> None:
        other = str(self.folder / "libjemalloc.so.2")
        source = self.folder / "other.c"
        source.write_text("int only_its_own;")
        subprocess.run(["gcc", "-shared", "-o", other, source], check=True)
        with self.running(self.plain, preload=f"{LIBRARY}:{other}") as pid:
            self.assertEqual(kinds(doctor(str(pid), code=0)), {"two-allocators"})
        with self.running(self.plain, preload=f"{other}:{LIBRARY}") as pid:
            self.assertEqual(kinds(doctor(str(pid), code=1)), {"other-preload-first"})

    def test_the_front_end_of_threads(self) -> None:
        if not OBSERVER.exists():
            self.skipTest("the observer is not built")
        with self.running(self.plain, env={"BRIMFUL_FRONT_END": "thread"}) as pid:
            found = doctor(str(pid), code=0)
            self.assertEqual(kinds(found), {"front-end-thread"})
            self.assertEqual(found["processes"][0]["front_end"], "thread")

    def test_a_limit_of_the_address_space(self) -> None:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

        with self.running(self.plain, preexec_fn=limit) as pid:
            self.assertEqual(kinds(doctor(str(pid), code=0)), {"address-space-limit"})

    def test_hugepages_forbidden(self) -> None:
        def forbid() -> None:
            ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)

        with self.running(self.plain, preexec_fn=forbid) as pid:
            if "THP_enabled" not in Path(f"/proc/{pid}/status").read_text():
                self.skipTest("this kernel does not say whether a process may have hugepages")
            self.assertEqual(kinds(doctor(str(pid), code=0)), {"hugepages-forbidden"})


def healthy() -> System:
    """This machine's processes on a machine that has nothing to be told."""
    folder = Path(tempfile.mkdtemp(prefix="brimful-doctor-machine-"))
    unittest.addModuleCleanup(shutil.rmtree, folder)
    system = System(folder / "proc", folder / "sys")
    for pid in System().processes():
        (system.proc / str(pid)).mkdir(parents=True)
        for name in (
            "maps",
            "status",
            "environ",
            "auxv",
            "comm",
            "cmdline",
            "limits",
            "exe",
            "root",
        ):
            (system.proc / str(pid) / name).symlink_to(f"/proc/{pid}/{name}")
    write(system.proc / "sys/vm/max_map_count", "65530\n")
    write(system.proc / "sys/vm/overcommit_memory", "0\n")
    write(system.proc / "meminfo", "CommitLimit:  1000000 kB\nCommitted_AS:  990000 kB\n")
    write(system.sys / "kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    return system


def write(path: Path, text: str) -> None:
    """In place of what the kernel says there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)


class Machines(Programs):
    """What the kernel's files say."""

    def found(self, pid: int, system: System) -> list[Finding]:
        return list(checks.examine(Process(system, pid), None, str(LIBRARY)).findings)

    def expect(self, system: System, pid: int, kind: str, *seen: str, level: str = "note") -> None:
        (finding,) = self.found(pid, system)
        self.assertEqual((finding.kind, finding.level), (kind, level))
        for text in seen:
            self.assertIn(text, finding.seen)

    def test_hugepages_off(self) -> None:
        with self.running(self.plain) as pid:
            system = healthy()
            write(system.sys / "kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n")
            self.expect(system, pid, "hugepages-off", "never")

    def test_strict_overcommit(self) -> None:
        with self.running(self.plain) as pid:
            system = healthy()
            write(system.proc / "sys/vm/overcommit_memory", "2\n")
            self.expect(system, pid, "strict-overcommit", "967 MiB of 977 MiB", level="problem")

    def test_many_mappings(self) -> None:
        with self.running(self.plain) as pid:
            system = healthy()
            write(system.proc / "sys/vm/max_map_count", "12\n")
            self.expect(system, pid, "many-mappings", "of vm.max_map_count 12", level="problem")

    def test_the_limit_of_a_control_group(self) -> None:
        for line, below, names in (
            ("0::/a/b", "a", ("memory.current", "memory.max")),
            ("4:memory:/a/b", "memory/a", ("memory.usage_in_bytes", "memory.limit_in_bytes")),
        ):
            with self.subTest(line=line), self.running(self.plain) as pid:
                system = healthy()
                write(system.proc / str(pid) / "cgroup", f"1:cpu:/\n{line}\n")
                folder = system.sys / "fs/cgroup" / below
                write(folder / names[0], f"{95 << 20}\n")
                write(folder / names[1], f"{100 << 20}\n")
                self.expect(system, pid, "group-limit", "95 MiB of 100 MiB", level="problem")
                write(folder / names[0], f"{50 << 20}\n")
                self.assertEqual(self.found(pid, system), [])

    def test_memory_that_is_locked_or_swapped(self) -> None:
        with self.running(self.plain) as pid:
            system = healthy()
            status = system.proc / str(pid) / "status"
            write(status, "VmRSS:\t  51200 kB\nVmLck:\t  40960 kB\nVmSwap:\t 0 kB\n")
            self.expect(system, pid, "locked", "40 MiB")
            write(status, "VmRSS:\t  51200 kB\nVmLck:\t  0 kB\nVmSwap:\t 20480 kB\n")
            self.expect(system, pid, "swapped", "20 MiB")


class Commands(Programs):
    """The command line."""

    def run_doctor(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [LAUNCHER, "doctor", *arguments], env=PLAIN, capture_output=True, text=True, timeout=60
        )

    def test_processes_that_a_command_starts(self) -> None:
        found = doctor("--", "sh", "-c", "env -u LD_PRELOAD sleep 0.5; sleep 0.5", code=1)
        by_name = {one["program"]: one for one in found["processes"]}
        self.assertIn("sleep", by_name)
        self.assertEqual(kinds(found), {"preload-lost"})

    def test_a_command_that_goes_on_is_ended(self) -> None:
        began = time.monotonic()
        found = doctor("--seconds", "0.5", "--", "sleep", "100", code=0)
        self.assertLess(time.monotonic() - began, 30)
        self.assertTrue(found["processes"][0]["runs_brimful"])

    def test_ctrl_c_ends_the_command(self) -> None:
        command = [str(LAUNCHER), "doctor", "--lib", str(LIBRARY), "--", "sleep", "1234.5"]
        with subprocess.Popen(command, env=PLAIN, start_new_session=True) as child:
            time.sleep(1.5)
            os.killpg(child.pid, signal.SIGINT)
            self.assertEqual(child.wait(20), 130)
        left = [p for p in System().processes() if b"1234.5" in cmdline(p)]
        self.assertEqual(left, [])

    def test_what_it_says_is_as_the_schema_says(self) -> None:
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is missing")
        schema = json.loads((ROOT / "share/schema/brimful.schema.json").read_text())
        part = {key: value for key, value in schema.items() if key != "anyOf"}
        with self.running(self.plain, preload=None) as pid:
            found = doctor(str(pid), code=1)
        jsonschema.validate(found, part | {"$ref": "#/$defs/doctor"})

    def test_words_for_people(self) -> None:
        with self.running(self.plain, preload=None) as pid:
            answer = self.run_doctor(str(pid))
        self.assertEqual(answer.returncode, 1)
        lines = answer.stdout.splitlines()
        self.assertEqual(lines[0], f"problem: plain ({pid}): doesn't run brimful")
        self.assertEqual(
            [line.split(":")[0].strip() for line in lines[1:4]], ["seen", "means", "do"]
        )
        self.assertIn(f"brimful run -- {self.plain}", lines[3])

    def test_nothing_to_look_at(self) -> None:
        for arguments, code, text in (
            (["4194000"], 125, "there is no process 4194000"),
            (["--lib", str(LIBRARY), "--", "no-such-command"], 127, "not found"),
            (["1", "--", "true"], 2, "either a PID or -- COMMAND"),
            (["--lib", "/no/lib.so", "--", "true"], 125, "/no/lib.so"),
        ):
            with self.subTest(arguments=arguments):
                answer = self.run_doctor(*arguments)
                self.assertEqual(answer.returncode, code, answer.stderr)
                self.assertIn(text, answer.stderr)
                self.assertNotIn("Traceback", answer.stderr)


def cmdline(pid: int) -> bytes:
    """A process's command line, if it is still there."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    unittest.main()
