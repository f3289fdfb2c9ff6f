#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`brimful leaks` beside the search itself: what it does to the process, its options, bad input.

Environment: BRIMFUL_BUILD, the folder of the build.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import planted

PTRACE_SEIZE = 0x4206
NOBODY = 65534


def look(*words: object, **more: str) -> subprocess.CompletedProcess[str]:
    """brimful leaks."""
    return subprocess.run(
        [planted.ROOT / "brimful", "leaks", *map(str, words)],
        capture_output=True,
        text=True,
        env=os.environ | {"BRIMFUL_OBSERVER": str(planted.OBSERVER)} | more,
    )


def program(folder: Path, name: str) -> Path:
    """A compiled program: of planted/, or beside this file."""
    [source] = [*planted.PLANTED.glob(f"{name}.c*"), *Path(__file__).parent.glob(f"{name}.c")]
    return planted.compile_program(source, folder)


class Running:
    """A program under the library that has said `ready`."""

    def __init__(
        self, path: Path, *, environment: dict[str, str] | None = None, **more: object
    ) -> None:
        self.process: subprocess.Popen[str] = subprocess.Popen(
            [path, "wait"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment or planted.environment(),
            **more,  # type: ignore[call-overload]
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line == "ready\n":
                break

    def __enter__(self) -> subprocess.Popen[str]:
        return self.process

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


class LooksTest(unittest.TestCase):
    """One look each."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def assert_refused(
        self, said: subprocess.CompletedProcess[str], why: str, code: int = 1
    ) -> None:
        self.assertEqual(said.returncode, code, said.stderr)
        self.assertIn(why, said.stderr)
        self.assertEqual(said.stderr.count("\n"), 1, said.stderr)
        self.assertEqual(said.stdout, "")

    def test_nothing_seems_lost_while_threads_allocate_and_free_and_they_go_on(self) -> None:
        with Running(program(self.folder, "churn")) as process:
            assert process.stdin is not None and process.stdout is not None
            counts = []
            for _ in range(6):
                said = look("--json", process.pid)
                self.assertEqual(said.returncode, 0, said.stdout[:2000] + said.stderr)
                process.stdin.write("\n")
                process.stdin.flush()
                counts.append(int(process.stdout.readline()))
            self.assertEqual(counts, sorted(set(counts)), "a thread was not let go")

    def test_a_signal_that_comes_while_the_process_is_held_is_not_lost(self) -> None:
        with Running(program(self.folder, "churn")) as process:
            looking = subprocess.Popen(
                [planted.OBSERVER, "leaks", str(process.pid)], stdout=subprocess.DEVNULL
            )
            process.terminate()
            self.assertEqual(process.wait(10), -15)
            self.assertIn(looking.wait(10), (0, 1))

    def test_types_are_told_of_a_stripped_program_and_can_be_suppressed(self) -> None:
        path = program(self.folder, "classes")
        subprocess.run(["strip", path], check=True)
        rules = self.folder / "rules"
        rules.write_text("# known\ntype:zoo::Horse size:80\n")
        with Running(path) as process:
            said = look("--json", process.pid)
            types = {group["type"]: group["count"] for group in json.loads(said.stdout)["groups"]}
            self.assertEqual(types, {"zoo::Horse": 7, "zoo::Cage<zoo::Animal>": 1})
            self.assertEqual(said.returncode, 1)
            said = look("--suppressions", rules, process.pid)
            self.assertIn("1 object lost", said.stdout)
            self.assertIn("suppressed: 14 objects", said.stdout)
            rules.write_text("type:*\n")
            self.assertEqual(look("--suppressions", rules, process.pid).returncode, 0)
            rules.write_text("# first\ntypo:*\n")
            self.assert_refused(look("--suppressions", rules, process.pid), "line 2", 2)

    def test_a_sampled_leak_has_its_stack_which_can_be_suppressed(self) -> None:
        rules = self.folder / "rules"
        rules.write_text("stack:plant* module:lost_chain\n")
        with Running(
            program(self.folder, "lost_chain"), environment=planted.environment(BRIMFUL_PROF="1")
        ) as process:
            said = look("--json", process.pid)
            [group] = json.loads(said.stdout)["groups"]
            self.assertEqual(group["stack"][0], "plant (lost_chain)")
            self.assertIn("main (lost_chain)", group["stack"])
            self.assertEqual(look("--suppressions", rules, process.pid).returncode, 0)

    def core_of(self, process: subprocess.Popen[str]) -> Path:
        """The core that a program in self.folder leaves."""
        pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
        if pattern.startswith(("|", "/")):
            self.skipTest(f"core files go elsewhere: {pattern}")
        most = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (most, most))
        process.send_signal(6)
        process.wait()
        cores = [path for path in self.folder.iterdir() if path.name.startswith("core")]
        if not cores:
            self.skipTest("this machine writes no core files")
        return cores[0]

    def test_a_core_tells_what_the_process_does(self) -> None:
        with Running(program(self.folder, "classes"), cwd=self.folder) as process:
            alive = json.loads(look("--json", process.pid).stdout)
            core = self.core_of(process)
        dead = json.loads(look("--json", core).stdout)
        for key in ("lost", "behind", "possibly", "live"):
            self.assertEqual(dead[key], alive[key], key)
        self.assertEqual([g["type"] for g in dead["groups"]], [g["type"] for g in alive["groups"]])
        cut = self.folder / "cut"
        cut.write_bytes(core.read_bytes()[:200000])
        self.assert_refused(look(cut), "is cut off")

    def test_a_core_has_all_of_the_heap_and_nothing_of_what_was_never_used(self) -> None:
        for reserve in ("32G", "4M"):  # the latter in many windows
            environment = planted.environment(BRIMFUL_RESERVE=reserve)
            with Running(
                program(self.folder, "grown"), environment=environment, cwd=self.folder
            ) as process:
                cores: list[Path] = []
                if shutil.which("gcore"):
                    command = ["gcore", "-o", str(self.folder / "gdb"), str(process.pid)]
                    subprocess.run(command, capture_output=True, check=False)
                    cores += self.folder.glob("gdb.*")
                cores.append(self.core_of(process))
            for core in cores:
                # gdb before version 15 writes holes out, and each reservation of ours would be 32 GiB.
                self.assertLess(core.stat().st_size, 1 << 30, core.name)
                seen = json.loads(look("--json", core).stdout)
                self.assertEqual(seen["lost"]["count"], 0, core.name)
                self.assertGreaterEqual(seen["live"]["count"], 400, core.name)
                core.unlink()

    def test_a_core_names_stacks_while_its_files_are_those_that_it_was_of(self) -> None:
        path = program(self.folder, "lost_chain")
        environment = planted.environment(BRIMFUL_PROF="1")
        with Running(path, environment=environment, cwd=self.folder) as process:
            [alive] = json.loads(look("--json", process.pid).stdout)["groups"]
            core = self.core_of(process)
        [dead] = json.loads(look("--json", core).stdout)["groups"]
        self.assertEqual(dead["stack"], alive["stack"])
        self.assertEqual(dead["stack"][0], "plant (lost_chain)")
        # Another build at the same place: its names would be wrong and look right.
        path.write_bytes(program(self.folder, "lost_ring").read_bytes())
        [other] = json.loads(look("--json", core).stdout)["groups"]
        self.assertRegex(other["stack"][0], r"^lost_chain\+0x[0-9a-f]+ \(lost_chain\)$")
        self.assertEqual(other["addresses"], dead["addresses"])

    def test_diff_tells_growth(self) -> None:
        reports = []
        for name in ("many", "lost_sizes"):
            with Running(program(self.folder, name)) as process:
                reports.append(self.folder / f"{name}.json")
                reports[-1].write_text(look("--json", process.pid).stdout)
        grown = look("diff", *reports)
        self.assertEqual(grown.returncode, 1)
        self.assertIn("-2,000", grown.stdout)
        self.assertIn("+10,240", grown.stdout)
        same = look("diff", reports[0], reports[0])
        self.assertEqual((same.returncode, same.stdout), (0, "no difference\n"))
        self.assert_refused(look("diff", reports[0], "/etc/passwd"), "is no JSON", 2)

    def test_the_exit_code_stays_the_programs(self) -> None:
        more = {"BRIMFUL_LEAKS": "exit", "BRIMFUL_OBSERVER": str(planted.OBSERVER)}
        said = subprocess.run(
            ["bash", "-c", "exit 3"],
            env=planted.environment(**more),
            capture_output=True,
            text=True,
        )
        self.assertEqual(said.returncode, 3)
        self.assertIn("brimful: leaks of process", said.stderr)
        more["BRIMFUL_OBSERVER"] = "/nowhere"
        said = subprocess.run(
            ["bash", "-c", "exit 4"],
            env=planted.environment(**more),
            capture_output=True,
            text=True,
        )
        self.assertEqual(said.returncode, 4)
        self.assertIn("/nowhere is not there", said.stderr)

    def test_a_command_is_looked_at_when_it_exits(self) -> None:
        lib = ("--lib", planted.LIBRARY)
        said = look(*lib, "--", program(self.folder, "many"))
        self.assertEqual(said.returncode, 1, said.stderr)
        self.assertIn("2,000 objects lost, 128,000 bytes", said.stdout)
        self.assertEqual(look(*lib, "--", "bash", "-c", "exit 5").returncode, 5)
        self.assertEqual(look(*lib, "--", "bash", "-c", "exit 0").returncode, 0)
        killed = look(*lib, "--", "bash", "-c", "kill -9 $$")
        self.assertEqual(killed.returncode, 137)
        self.assertIn("no report", killed.stderr)
        self.assertEqual(look("--", "/nowhere").returncode, 127)

    def test_a_process_without_the_library_is_told_so(self) -> None:
        with Running(program(self.folder, "many"), environment=dict(os.environ)) as process:
            self.assert_refused(look(process.pid), "does not use brimful")

    def test_a_process_that_has_ended_is_told_so(self) -> None:
        ended = subprocess.Popen(["true"])
        ended.wait()
        self.assert_refused(look(ended.pid), f"there is no process {ended.pid}")

    def test_a_file_that_is_no_core_is_told_so(self) -> None:
        self.assert_refused(look("/etc/passwd"), "is no core file")
        self.assert_refused(
            look("/nowhere"), "a process number or the path of a core file is wanted"
        )

    def test_a_process_that_is_traced_is_told_so(self) -> None:
        with Running(program(self.folder, "many")) as process:
            libc = ctypes.CDLL(None, use_errno=True)
            self.assertEqual(libc.ptrace(PTRACE_SEIZE, process.pid, 0, 0), 0)
            self.assert_refused(look(process.pid), f"is traced by process {os.getpid()} already")

    def test_a_process_of_another_user_is_told_so(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root can start a process as another user")
        with Running(program(self.folder, "many")) as process:
            said = subprocess.run(
                [planted.OBSERVER, "leaks", str(process.pid)],
                user=NOBODY,
                capture_output=True,
                text=True,
            )
            if "Permission denied" in said.stderr:
                self.skipTest("the build's folder is not open to others")
            self.assert_refused(said, "run this as its user, or as root")

    def test_a_process_that_ends_meanwhile_gives_a_line_or_a_report(self) -> None:
        path = program(self.folder, "lost_sizes")
        for delay in range(6):
            with Running(path) as process:
                looking = subprocess.Popen(
                    [planted.OBSERVER, "leaks", str(process.pid)],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                time.sleep(delay * 0.004)
                process.kill()
                out, err = looking.communicate()
            self.assertEqual(looking.returncode, 1, out + err)
            self.assertTrue("11 objects lost" in out or err.count("\n") == 1, out + err)


if __name__ == "__main__":
    if not planted.OBSERVER.exists():
        print("brimful-observer is not built")
        sys.exit(planted.SKIP)
    unittest.main(verbosity=2)
