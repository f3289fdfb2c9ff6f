#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A sample is a figure only if nothing was wrong: every fault that is injected shows as its status.

The allocator under test is a small library that passes everything on to glibc under its other names,
and the workloads are a C program that says what it is told to, so nothing here needs a build of
brimful or a rival.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cli"))

from passing_on import ALLOCATOR  # noqa: E402

from brimful.bench import contention, launch, machine, proof, sample  # noqa: E402
from brimful.bench.model import (  # noqa: E402
    METRIC,
    Allocator,
    Cell,
    Contention,
    Curve,
    LockCounts,
    Sample,
    Status,
)

# argv[1]: its result with %s for the file that serves malloc; argv[2]: how to misbehave before.
WORKLOAD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void hold(size_t mib, unsigned ms) {
  char* block = malloc(mib << 20);
  memset(block, 1, mib << 20);
  usleep(ms * 1000);
  free(block);
}
int main(int argc, char** argv) {
  const char* how = argc > 2 ? argv[2] : "";
  if (strcmp(how, "segv") == 0) { fputs("about to fall\n", stderr); raise(SIGSEGV); }
  if (strcmp(how, "kill") == 0) raise(SIGKILL);
  if (strcmp(how, "hang") == 0) pause();
  if (strcmp(how, "exit") == 0) { fputs("first\nan object was overwritten\n\n", stderr); return 1; }
  if (strncmp(how, "say ", 4) == 0) fputs(how + 4, stderr);
  if (strcmp(how, "conf") == 0) fputs(getenv("BRIMFUL_CONF"), stderr);
  if (strcmp(how, "hold") == 0) { hold(64, 300); usleep(300000); }
  Dl_info info;
  dladdr((void*)&malloc, &info);
  printf(argv[1], info.dli_fname);
  puts("");
  return 0;
}
"""
RESULT = (
    '{"workload": "w", "threads": 1, "operations": 5, "seconds": 0.25, "peak_live_bytes": 1048576,'
    ' "failed_allocations": 0, "malloc": "%s", "phases": [], "extra": {"bytes": 7}}'
)
SYSTEM = Allocator("glibc")


class Built:
    """The programs of these tests, compiled once."""

    folder: tempfile.TemporaryDirectory[str]
    library: str
    workload: str
    own_malloc: str
    static: str


def setUpModule() -> None:
    if shutil.which("gcc") is None:
        raise unittest.SkipTest("gcc is not installed")
    Built.folder = tempfile.TemporaryDirectory(prefix="brimful-test-")

    def build(name: str, text: str, *flags: str) -> str:
        path = Path(Built.folder.name) / name
        source = path.with_suffix(".c")
        source.write_text(text)
        subprocess.run(["gcc", "-O0", "-o", path, source, *flags], check=True, timeout=120)
        return str(path)

    Built.library = build("libtestmalloc.so", ALLOCATOR, "-shared", "-fPIC")
    Built.workload = build("workload", WORKLOAD)
    own = ALLOCATOR + "int main(void) { free(malloc(1)); return 0; }"
    Built.own_malloc = build("own_malloc", own, "-rdynamic")
    Built.static = build("static", "int main(void) { return 0; }", "-static")


def tearDownModule() -> None:
    Built.folder.cleanup()


def wanted() -> Allocator:
    return Allocator("test", library=Built.library)


def workload(result: str = RESULT, how: str = "", figure: str = "seconds") -> Cell:
    return Cell("w", "w", "single", command=(Built.workload, result, how), figure=figure)


def command(*words: str) -> Cell:
    return Cell(words[0], words[0], "command", command=words, figure="wall_s")


def taken(cell: Cell, allocator: Allocator | None = None, timeout_s: float = 20) -> Sample:
    return sample.run(cell, allocator or wanted(), 3, timeout_s=timeout_s)[0]


class AGoodRun(unittest.TestCase):
    def test_it_gives_the_figures_of_the_launcher_and_of_the_workload(self) -> None:
        good = sample.run(workload(), wanted(), 3, timeout_s=20, again=True)[0]
        self.assertEqual((good.status, good.reason), (Status.OK, ""))
        self.assertEqual(
            (good.round, good.again, good.cell, good.allocator), (3, True, "w", "test")
        )
        self.assertEqual(good.metrics["seconds"], 0.25)
        self.assertEqual(good.metrics["ullage"], good.metrics["peak_rss_kib"] / 1024)
        self.assertGreater(good.metrics["wall_s"], 0)
        self.assertLessEqual(set(good.metrics), set(METRIC))
        self.assertEqual(good.extra, {"bytes": 7, "operations": 5})
        self.assertEqual(good.served_by[0], os.path.realpath(Built.library))

    def test_the_system_is_an_allocator_like_the_others(self) -> None:
        good = taken(workload(), SYSTEM)
        self.assertEqual(good.status, Status.OK)
        self.assertTrue(proof.is_libc(good.served_by[0]))

    def test_the_time_can_be_another_figure(self) -> None:
        self.assertEqual(taken(workload(figure="bytes")).metrics["seconds"], 7)
        by_wall = taken(workload(figure="wall_s")).metrics
        self.assertEqual(by_wall["seconds"], by_wall["wall_s"])
        missing = taken(workload(figure="nothing"))
        self.assertEqual((missing.status, missing.reason), (Status.FAILED, "reported no nothing"))

    def test_a_plain_run_has_no_memory_over_time(self) -> None:
        good, curve, histograms = sample.run(workload(), wanted(), 0, timeout_s=20)
        self.assertNotIn("mean_rss_kib", good.metrics)
        self.assertIsNone(curve)
        self.assertEqual(histograms, [])

    def test_histograms_are_read(self) -> None:
        more = ', "histograms": [{"operation": "free", "band": "1-8", "counts": [[20, 3]], "max_ns": 90}]'
        _, _, found = sample.run(workload(RESULT[:-1] + more + "}"), wanted(), 0, timeout_s=20)
        self.assertEqual([(h.operation, h.band, h.max_ns) for h in found], [("free", "1-8", 90)])
        self.assertEqual(found[0].counts, ((20, 3),))

    def test_a_command_of_the_user_runs_where_the_user_is(self) -> None:
        here = f'[ "$(pwd -P)" = "{Path.cwd()}" ] && sleep 0.1'
        self.assertEqual(taken(command("sh", "-c", here)).reason, "")
        elsewhere = replace(command("sh", "-c", here), family="program")
        self.assertEqual(taken(elsewhere).status, Status.FAILED)


class AFault(unittest.TestCase):
    def assert_ends(self, bad: Sample, status: Status, reason: str) -> None:
        self.assertEqual(bad.status, status, bad)
        self.assertIn(reason, bad.reason)
        self.assertNotIn("\n", bad.reason)
        self.assertEqual(bad.metrics, {})

    def test_a_crash_is_one_and_ends_with_the_last_words(self) -> None:
        self.assert_ends(
            taken(workload(how="segv")), Status.CRASHED, "ended by SIGSEGV: about to fall"
        )

    def test_a_kill_from_outside_is_a_crash(self) -> None:
        self.assert_ends(
            taken(workload(how="kill")), Status.CRASHED, "ended by SIGKILL (out of memory?)"
        )

    def test_a_hang_is_ended(self) -> None:
        self.assert_ends(
            taken(workload(how="hang"), timeout_s=0.5), Status.TIMED_OUT, "no end after 0.5 s"
        )

    def test_exit_code_1_is_a_failure_and_gives_the_last_line_of_standard_error(self) -> None:
        bad = taken(workload(how="exit"))
        self.assert_ends(bad, Status.FAILED, "exit code 1: an object was overwritten")
        self.assertNotIn("first", bad.reason)

    def test_output_that_is_no_result_is_a_failure(self) -> None:
        for text in ("", "nonsense", '{"workload": "w", "sec', "[1]", '{"workload": 1}'):
            with self.subTest(text=text):
                self.assert_ends(taken(workload(text)), Status.FAILED, "printed no result")

    def test_impossible_figures_are_failures(self) -> None:
        for value in ("-1", "0", "NaN", "Infinity", '"fast"', "null", "true"):
            with self.subTest(seconds=value):
                text = RESULT.replace("0.25", value)
                self.assert_ends(taken(workload(text)), Status.FAILED, "reported")

    def test_failed_allocations_are_a_failure(self) -> None:
        text = RESULT.replace('"failed_allocations": 0', '"failed_allocations": 2')
        self.assert_ends(taken(workload(text)), Status.FAILED, "2 allocations failed")

    def test_a_library_that_is_not_there_is_missing(self) -> None:
        absent = replace(wanted(), library="/nowhere/libabsent.so")
        self.assert_ends(taken(workload(), absent), Status.MISSING, "/nowhere/libabsent.so")

    def test_a_library_that_the_loader_refuses_is_not_loaded(self) -> None:
        broken = Path(Built.folder.name) / "libbroken.so"
        broken.write_bytes(Path(Built.library).read_bytes()[:512])
        bad = replace(wanted(), library=str(broken))
        self.assert_ends(taken(workload(), bad), Status.NOT_LOADED, "malloc was served by")
        self.assert_ends(
            taken(command("sleep", "0.3"), bad), Status.NOT_LOADED, "sleep ran without libbroken.so"
        )

    def test_a_library_without_malloc_is_not_loaded(self) -> None:
        math = next(Path("/usr/lib").glob("*-linux-gnu/libm.so.6"))
        wrong = replace(wanted(), library=str(math))
        self.assert_ends(taken(workload(), wrong), Status.NOT_LOADED, "malloc was served by")
        self.assert_ends(
            taken(command("sleep", "0.3"), wrong), Status.NOT_LOADED, "takes malloc from libc"
        )

    def test_a_child_that_drops_the_preload_is_not_loaded(self) -> None:
        bad = taken(command("sh", "-c", "unset LD_PRELOAD; sleep 0.3; true"))
        self.assert_ends(bad, Status.NOT_LOADED, "sleep ran without libtestmalloc.so")

    def test_a_static_program_is_not_loaded(self) -> None:
        self.assert_ends(taken(command(Built.static)), Status.NOT_LOADED, "statically linked")

    def test_a_program_with_a_malloc_of_its_own_is_not_loaded(self) -> None:
        self.assert_ends(
            taken(command(Built.own_malloc)), Status.NOT_LOADED, "takes malloc from own_malloc"
        )

    def test_a_program_that_lends_its_jump_to_malloc_is_loaded(self) -> None:
        source = Path(Built.folder.name) / "lender.c"
        source.write_text(
            "#include <stdlib.h>\n#include <unistd.h>\nvoid* (*volatile taken)(size_t) = malloc;\n"
            "int main(void) { free(malloc(8)); free(taken(9)); usleep(100000); return 0; }"
        )
        program = str(source.with_suffix(""))
        subprocess.run(["gcc", "-no-pie", "-fno-pic", "-o", program, source], check=True)
        self.assertEqual(taken(command(program)).reason, "")
        own = (os.path.realpath(Built.library),)
        self.assertEqual(proof.servers_of_malloc(program, Built.library), own)

    def test_a_program_that_cannot_be_executed_is_a_failure(self) -> None:
        self.assert_ends(
            taken(command("/no/such/program")), Status.FAILED, "No such file or directory"
        )

    def test_cpus_that_are_not_there_are_a_failure(self) -> None:
        bad = sample.run(workload(), wanted(), 0, timeout_s=20, cpus="1000")[0]
        self.assert_ends(bad, Status.FAILED, "cannot run on these CPUs")


class AShortProgram(unittest.TestCase):
    def test_it_is_proved_by_the_loader_when_its_maps_were_never_seen(self) -> None:
        self.assertEqual(proof.objection([], Built.library, "/bin/true"), "")
        self.assertIn("statically", proof.objection([], Built.library, Built.static))
        self.assertIn("ended before", proof.objection([], Built.library, ""))

    def test_a_process_that_hides_its_maps_proves_nothing(self) -> None:
        hidden = {"name": "su", "exe": "/bin/su", "allocators": [], "unreadable": True}
        self.assertIn("refuses", proof.objection([hidden], Built.library, "/bin/true"))


class ManyShortProcesses(unittest.TestCase):
    def test_one_that_ends_while_its_maps_are_read_is_not_taken_for_unloaded(self) -> None:
        source = Path(Built.folder.name) / "forks.c"
        source.write_text(
            "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
            "int main(void) {\n"
            "  for (int i = 0; i < 300; i++) {\n"
            "    if (fork() == 0) { usleep(500 * (rand() % 20)); _exit(0); }\n"
            "    usleep(300);\n"
            "  }\n"
            "  while (wait(NULL) > 0) { }\n"
            "  return 0;\n"
            "}"
        )
        program = str(source.with_suffix(""))
        subprocess.run(["gcc", "-o", program, source], check=True, timeout=120)
        for _ in range(10):
            self.assertEqual(taken(command(program)).reason, "")


class TheSystemsOwn(unittest.TestCase):
    def test_a_program_that_brings_an_allocator_runs_on_libc_all_the_same(self) -> None:
        program = Path(Built.folder.name) / "guest"
        source = program.with_suffix(".c")
        source.write_text(
            "#include <stdlib.h>\n#include <unistd.h>\n"
            "int main(void) { free(malloc(9)); usleep(200000); return 0; }"
        )
        flags = ["-Wl,--no-as-needed", Built.library, f"-Wl,-rpath,{Built.folder.name}"]
        subprocess.run(["gcc", "-o", program, source, *flags], check=True, timeout=120)
        good = taken(command(str(program)), SYSTEM)
        self.assertEqual((good.status, good.reason), (Status.OK, ""))
        self.assertIn(os.path.realpath(Built.library), good.served_by)
        servers = proof.servers_of_malloc(str(program), proof.c_library())
        self.assertTrue(servers and all(proof.is_libc(path) for path in servers), servers)

    def test_a_malloc_inside_the_program_is_not_the_systems(self) -> None:
        process = {
            "name": "own_malloc",
            "exe": Built.own_malloc,
            "allocators": [Built.own_malloc],
            "unreadable": False,
        }
        self.assertIn("allocator of its own", proof.objection([process], "", ""))


class MemoryOverTime(unittest.TestCase):
    def measured(self, allocator: Allocator) -> tuple[Sample, Curve]:
        text = RESULT.replace('"phases": []', '"phases": [{"name": "idle-end", "at_s": 0.55}]')
        good, curve, _ = sample.run(
            workload(text, "hold"), allocator, 0, timeout_s=20, sample_ms=10
        )
        self.assertEqual(good.status, Status.OK, good.reason)
        assert curve is not None
        return good, curve

    def test_the_curve_rises_and_falls_with_the_program(self) -> None:
        good, curve = self.measured(wanted())
        self.assertGreater(max(curve.rss_kib), 64 << 10)
        self.assertLess(max(curve.rss_kib), 80 << 10)
        self.assertLess(curve.rss_kib[-1], 10 << 10)
        self.assertGreater(good.metrics["peak_rss_kib"], 64 << 10)
        self.assertGreater(len(curve.seconds), 10)
        self.assertEqual(list(curve.seconds), sorted(curve.seconds))
        self.assertLess(good.metrics["idle_rss_kib"], 10 << 10)
        self.assertGreater(good.metrics["mean_rss_kib"], 10 << 10)
        self.assertLess(good.metrics["mean_rss_kib"], 64 << 10)
        self.assertGreaterEqual(good.metrics["peak_pss_kib"], 64 << 10)
        self.assertEqual([phase.name for phase in curve.phases], ["idle-end"])

    def test_a_share_of_huge_pages_is_one(self) -> None:
        good, _ = self.measured(SYSTEM)
        self.assertGreaterEqual(good.metrics["huge_share"], 0)
        self.assertLessEqual(good.metrics["huge_share"], 1)


class TheLauncher(unittest.TestCase):
    def measured(self, *words: str) -> dict[str, object]:
        done = launch.run(command(*words), SYSTEM, launch.How(20))
        return done.measured

    def test_counters_that_cannot_be_had_are_null_and_faults_agree_with_the_kernels(self) -> None:
        measured = self.measured(Built.workload, RESULT, "hold")
        counters = measured["counters"]
        assert isinstance(counters, dict)
        names = {"instructions", "cycles", "cache_misses", "branch_misses"}
        self.assertEqual(set(counters), names | {"page_faults", "context_switches"})
        for name, value in counters.items():
            self.assertTrue(value is None or value > 0, (name, value))
        if counters["page_faults"] is not None:
            by_rusage = measured["minor_faults"]
            assert isinstance(by_rusage, int)
            self.assertLess(abs(counters["page_faults"] - by_rusage), 0.05 * by_rusage + 50)

    def test_an_interruption_ends_the_command_too(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            note = Path(folder) / "pid"
            script = f"echo $$ > {note}.new; mv {note}.new {note}; sleep 60; true"
            line = [launch.launcher(), "--", "sh", "-c", script]
            process = subprocess.Popen(line, stdout=subprocess.PIPE)
            deadline = time.monotonic() + 20
            while not note.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=20)
            self.assertEqual((process.returncode, said), (130, b""))
            self.assertFalse(Path(f"/proc/{note.read_text().strip()}").exists())

    def test_a_command_is_pinned(self) -> None:
        cpu = min(os.sched_getaffinity(0))
        program = f"import os; assert os.sched_getaffinity(0) == {{{cpu}}}"
        cell = command(sys.executable, "-c", program)
        self.assertEqual(sample.run(cell, SYSTEM, 0, timeout_s=20, cpus=str(cpu))[0].status, "ok")

    def test_malformed_arguments_are_refused(self) -> None:
        for words in (
            ["--cpus", "1-"],
            ["--cpus", "x"],
            ["--cpus", "3-1"],
            ["--cpus", "99999"],
            ["--sample-ms", "0"],
            ["--timeout", "soon"],
            ["--set", "NAME"],
            ["--what", "ever"],
        ):
            with self.subTest(words=words):
                line = [launch.launcher(), *words, "--", "true"]
                self.assertEqual(subprocess.run(line, capture_output=True).returncode, 2)


class TheEnvironment(unittest.TestCase):
    def test_nothing_of_the_caller_steers_an_allocator(self) -> None:
        steering = {
            *("LD_PRELOAD", "BRIMFUL_CONF", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES", "PYTHONMALLOC"),
            *("MIMALLOC_VERBOSE", "TCMALLOC_STATS", "_RJEM_MALLOC_CONF", "MALLOC_CONF"),
        }
        with mock.patch.dict(os.environ, dict.fromkeys(steering, "x") | {"HARMLESS": "y"}):
            clean = launch.clean_environment()
        self.assertEqual(clean.keys() & steering, set())
        self.assertEqual(clean["HARMLESS"], "y")

    def test_the_allocators_settings_arrive(self) -> None:
        cell = command("sh", "-c", '[ "$MALLOC_ARENA_MAX" = 2 ] && sleep 0.1')
        with mock.patch.dict(os.environ, {"MALLOC_ARENA_MAX": "9"}):
            self.assertEqual(taken(cell).status, Status.FAILED)
            set_so = replace(wanted(), settings={"MALLOC_ARENA_MAX": "2"})
            self.assertEqual(taken(cell, set_so).status, Status.OK)

    def test_the_machine_is_described_and_not_named(self) -> None:
        facts = machine.environment()
        for key in ("cpu", "kernel", "libc", "thp", "cgroup", "rseq", "commit", "date"):
            self.assertTrue(facts[key], key)
        self.assertGreater(facts["memory_mib"], 0)
        text = str(facts)
        for private in {os.uname().nodename, str(Path.home()), str(ROOT)} - {"/"}:
            self.assertNotIn(private, text)


HEAP = '{"acquisitions": 9, "contended": 3, "sleeps": 1, "wait_ns": 250, "busy": 2}'
STATS = 'brimful-stats: {"pid": 7, "locks": {"heap": ' + HEAP + "}}\n"


class LockCounters(unittest.TestCase):
    def counted(self, said: str, result: str = RESULT) -> Contention:
        cell = workload(result, f"say {said}" if said else "")
        return sample.lock_counters(cell, wanted(), timeout_s=20)

    def test_they_are_read_from_standard_error(self) -> None:
        found = self.counted(f"a warning\n{STATS}another\n")
        self.assertEqual((found.cell, found.allocator, found.missing), ("w", "test", ""))
        self.assertEqual((found.operations, found.processes), (5, 1))
        self.assertEqual(found.locks, {"heap": LockCounts(9, 3, 1, 250, 2)})

    def test_those_of_several_processes_are_summed(self) -> None:
        more = STATS.replace('"heap"', '"central"').replace("9", "4")
        found = self.counted(STATS + STATS + more)
        self.assertEqual(found.processes, 3)
        self.assertEqual(found.locks["heap"], LockCounts(18, 6, 2, 500, 4))
        self.assertEqual(found.locks["central"].acquisitions, 4)

    def test_what_else_a_kind_of_lock_says_is_left_aside(self) -> None:
        more = STATS.replace('"acquisitions"', '"classes": {"64": {}}, "acquisitions"')
        self.assertEqual(self.counted(more).locks, {"heap": LockCounts(9, 3, 1, 250, 2)})

    def test_without_them_the_reason_stands_there(self) -> None:
        for said, reason in (
            ("", "printed no lock counters"),
            ("nothing of that kind\n", "printed no lock counters"),
            (STATS[:40], "not JSON"),
            (STATS + STATS[:40], "not JSON"),
            ("brimful-stats: []", "without locks"),
            ('brimful-stats: {"locks": {}}', "without locks"),
            ('brimful-stats: {"locks": {"heap": 7}}', "no acquisitions of the locks of kind heap"),
            (STATS.replace('"busy": 2', '"busy": "2"'), "no busy of the locks of kind heap"),
            (STATS.replace('"busy": 2', '"busy": true'), "no busy of the locks of kind heap"),
            (STATS.replace('"busy": 2', '"busy": -2'), "printed -2 busy"),
            (STATS.replace('"busy": 2', '"busy": NaN'), "printed nan busy"),
        ):
            with self.subTest(said=said):
                found = self.counted(said)
                self.assertIn(reason, found.missing)
                self.assertEqual((found.locks, found.processes), ({}, 0))

    def test_a_run_that_failed_or_counts_no_operations_has_none(self) -> None:
        exited = sample.lock_counters(workload(how="exit"), wanted(), timeout_s=20)
        self.assertIn("exit code 1", exited.missing)
        idle = self.counted(STATS, RESULT.replace('"operations": 5', '"operations": 0'))
        self.assertIn("counts no operations", idle.missing)
        served = sample.lock_counters(
            workload(RESULT.replace("%s", "/lib/libother.so")), wanted(), timeout_s=20
        )
        self.assertIn("malloc was served by", served.missing)

    def test_they_are_asked_for_beside_the_settings_of_the_allocator(self) -> None:
        self.assertEqual(contention.asked_for({}), {"BRIMFUL_CONF": "print_stats:json"})
        asked = contention.asked_for({"BRIMFUL_CONF": "front_end:thread", "X": "y"})
        self.assertEqual(asked, {"BRIMFUL_CONF": "front_end:thread,print_stats:json", "X": "y"})
        heard = launch.run(workload(how="conf"), replace(wanted(), settings=asked), launch.How(20))
        self.assertEqual(heard.errors, "front_end:thread,print_stats:json")

    def test_they_are_shown_per_operation(self) -> None:
        run = Contention(
            "w", "test", 5e6, 1, {"a": LockCounts(9, 5, 1, 250, 2), "b": LockCounts(1)}
        )
        self.assertEqual(
            contention.per_operation(run),
            {
                "lock_contended_per_million": 1,
                "lock_busy_per_million": 0.4,
                "lock_acquisitions_per_million": 2,
                "lock_wait_ns_per_operation": 5e-5,
            },
        )
        self.assertEqual(contention.contended_by_kind(run), {"a": 1, "b": 0})


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
class InstructionsByCallgrind(unittest.TestCase):
    def test_they_are_counted_under_the_right_library(self) -> None:
        cell = replace(workload(), threads=1)
        counted = sample.instructions_by_callgrind(cell, wanted())
        assert counted is not None
        self.assertGreater(counted.metrics["instructions"], 10_000)
        self.assertEqual(counted.instructions_by, "callgrind")
        self.assertEqual(counted.served_by, (os.path.realpath(Built.library),))

    def test_a_program_that_is_started_or_become_is_counted_too(self) -> None:
        alone = replace(workload(), threads=1)
        line = (*alone.command[:2], "")
        for more in (("env", *line), ("sh", "-c", '"$0" "$1"; true', *line)):
            counts = [
                sample.instructions_by_callgrind(replace(alone, command=command), wanted())
                for command in (line, more)
            ]
            assert counts[0] is not None and counts[1] is not None
            by_itself, below = (count.metrics["instructions"] for count in counts if count)
            self.assertGreaterEqual(below, by_itself * 0.9, more)

    def test_threads_or_a_failure_give_no_count(self) -> None:
        self.assertIsNone(sample.instructions_by_callgrind(replace(workload(), threads=2), SYSTEM))
        self.assertIsNone(sample.instructions_by_callgrind(workload(how="exit"), SYSTEM))


if __name__ == "__main__":
    unittest.main()
