#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`brimful top`: on a terminal (a pty), as one picture, as JSON, and what bad input gets."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BRIMFUL = ROOT / "brimful"
LIBRARY = ROOT / "build" / "release" / "libbrimful.so"
OBSERVER = ROOT / "build" / "release" / "brimful-observer"
PATIENCE_S = 60.0  # under any load
sys.path.insert(0, str(ROOT / "cli"))

from brimful.top import layout, observe, views  # noqa: E402

PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  static void* volatile kept[5000];
  for (int i = 0; i < 5000; i++) kept[i] = memset(malloc(16 + i % 2000), 1, 16);
  write(1, "x", 1);
  for (unsigned n = 1;; n = n * 1664525U + 1013904223U) {
    free(kept[n % 5000]);
    kept[n % 5000] = malloc(16 + (n >> 16) % 2000);
    if (n % 1024 == 0) usleep(1000);
  }
}
"""


def clean(**extra: str) -> dict[str, str]:
    left_out = ("LD_PRELOAD", "BRIMFUL_CONF", "NO_COLOR", "COLUMNS", "LINES")
    kept = {key: value for key, value in os.environ.items() if key not in left_out}
    return kept | {"BRIMFUL_OBSERVER": str(OBSERVER), "TERM": "xterm"} | extra


def top(*arguments: object, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BRIMFUL), "top", *map(str, arguments)],
        env=clean(**extra),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


class Terminal:
    """`brimful top` on a terminal of its own."""

    def __init__(
        self, *arguments: object, columns: int = 80, lines: int = 24, folder: str = "."
    ) -> None:
        command = [str(BRIMFUL), "top", *map(str, arguments)]
        self.output = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
                os.chdir(folder)
                os.execve(command[0], command, clean())
            finally:
                os._exit(127)
        self.before = termios.tcgetattr(self.fd)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def _read(self) -> bool:
        if not select.select([self.fd], [], [], 0.1)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.output += data
        return bool(data)

    def picture(self) -> list[str]:
        """The last picture that was drawn as a whole."""
        frames = self.output.split(b"\x1b[H")
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frames[-1].decode(errors="replace"))
        return [line.rstrip() for line in text.replace("\r", "").split("\n")]

    def wait_for(self, text: str, absent: bool = False) -> list[str]:
        return self.wait_until(lambda lines: (text in "\n".join(lines)) != absent, text)

    def wait_until(self, holds: Callable[[list[str]], bool], what: str = "") -> list[str]:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            alive = self._read()
            if holds(self.picture()):
                return self.picture()
            if not alive:
                break
        raise AssertionError(f"no {what!r} in {self.picture()}")

    def wait_for_more(self) -> None:
        before = len(self.output)
        self.wait_until(lambda _: len(self.output) > before, "another picture")

    def wait_for_old_screen(self) -> None:
        self.wait_until(lambda _: self.output.rstrip().endswith(b"\x1b[?1049l"), "the old screen")

    def end(self) -> int:
        """Its exit code."""
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


@unittest.skipUnless(OBSERVER.exists(), "brimful-observer is not built (libdw-dev, libiberty-dev)")
@unittest.skipUnless(LIBRARY.exists(), "the release library is not built")
@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class Top(unittest.TestCase):
    folder: Path
    program: Path
    running: subprocess.Popen[bytes]

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="brimful-top-"))
        (cls.folder / "busy.c").write_text(PROGRAM)
        cls.program = cls.folder / "busy"  # shown as "busy"
        command = ["cc", "-O1", "-fno-builtin", str(cls.folder / "busy.c"), "-o", str(cls.program)]
        subprocess.run(command, check=True)
        cls.running = cls.start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.running.kill()
        cls.running.communicate()
        shutil.rmtree(cls.folder)

    @classmethod
    def start(cls) -> subprocess.Popen[bytes]:
        environment = clean(LD_PRELOAD=str(LIBRARY), BRIMFUL_CONF="reserve:64M")
        process = subprocess.Popen([cls.program], stdout=subprocess.PIPE, env=environment)
        assert process.stdout is not None
        process.stdout.read(1)
        return process

    @contextlib.contextmanager
    def terminal(self, *arguments: object, **how: Any) -> Iterator[Terminal]:
        terminal = Terminal(*arguments, **how)
        try:
            yield terminal
        finally:
            terminal.close()

    # --- on a terminal ---------------------------------------------------------------------------

    def test_it_shows_the_list_then_a_process_and_quits(self) -> None:
        with self.terminal() as terminal:
            lines = terminal.wait_for(" busy")
            self.assertIn("PID", lines[0])
            while f"{self.running.pid} " not in self.reversed_line(terminal):
                terminal.press("\x1b[B")
                terminal.wait_for_more()
            terminal.press("\r")
            lines = terminal.wait_for("free in slabs")
            self.assertTrue(lines[0].startswith(str(self.running.pid)))
            terminal.wait_for("malloc/s ~")
            terminal.wait_until(lambda lines: not any("malloc/s -" in line for line in lines))
            terminal.press("s")
            terminal.wait_for("sort: live")
            terminal.press("h")
            terminal.wait_for("estimates")
            terminal.press("x")
            terminal.wait_for("free in slabs")
            terminal.press("\x1b")
            terminal.wait_for("COMMAND")
            terminal.press("q")
            self.assertEqual(terminal.end(), 0)
            self.assert_as_before(terminal)

    @staticmethod
    def reversed_line(terminal: Terminal) -> str:
        found = re.findall(rb"\x1b\[7m([^\x1b]*)", terminal.output.split(b"\x1b[H")[-1])
        return found[0].decode() if found else ""

    def assert_as_before(self, terminal: Terminal) -> None:
        self.assertTrue(terminal.output.rstrip().endswith(b"\x1b[?1049l"), terminal.output[-60:])
        self.assertIn(b"\x1b[?25h", terminal.output[-60:])

    def test_ctrl_c_and_sigterm_leave_the_terminal_as_it_was(self) -> None:
        for how, code in (("\x03", 130), (None, 143)):
            with self.subTest(how=how), self.terminal() as terminal:
                terminal.wait_for("COMMAND")
                raw = termios.tcgetattr(terminal.fd)
                self.assertFalse(raw[3] & termios.ICANON)
                if how:
                    terminal.press(how)
                else:
                    os.kill(terminal.pid, signal.SIGTERM)
                # While it still has the terminal open: afterwards it can't be asked.
                terminal.wait_for_old_screen()
                self.assertEqual(terminal.end(), code)
                self.assert_as_before(terminal)

    def test_no_line_is_longer_than_a_narrow_terminal(self) -> None:
        for columns, rows in ((40, 24), (40, 10), (20, 5), (200, 60)):
            with (
                self.subTest(columns=columns, rows=rows),
                self.terminal(self.running.pid, columns=columns, lines=rows) as terminal,
            ):
                lines = terminal.wait_for("brimful")
                self.assertLessEqual(max(map(len, lines)), columns)
                self.assertLessEqual(len(lines), rows)
                terminal.press("q")
                self.assertEqual(terminal.end(), 0)

    def test_it_follows_the_size_of_the_terminal(self) -> None:
        with self.terminal(self.running.pid) as terminal:
            terminal.wait_for("RESIDENT")
            terminal.resize(40, 30)
            lines = terminal.wait_for("RESIDENT", absent=True)
            terminal.wait_for("brimful")
            self.assertLessEqual(max(map(len, lines)), 40)

    def test_a_process_that_ends_is_told_and_the_screen_stays(self) -> None:
        process = self.start()
        with process, self.terminal(process.pid, self.running.pid) as terminal:
            terminal.wait_for(str(process.pid))
            while f"{process.pid} " not in self.reversed_line(terminal):
                terminal.press("j" if self.reversed_line(terminal) else "")
                terminal.wait_for_more()
                if f"{process.pid} " not in self.reversed_line(terminal):
                    terminal.press("k")
            terminal.press("\n")
            terminal.wait_for("free in slabs")
            process.kill()
            process.wait()
            lines = terminal.wait_for("has ended")
            self.assertIn("this was its last look", lines[0])
            terminal.press("\x1b[D")
            terminal.wait_for("COMMAND")
            terminal.press("q")
            self.assertEqual(terminal.end(), 0)

    def test_pause_holds_the_picture_and_w_writes_it(self) -> None:
        with self.terminal(
            self.running.pid, "--interval", "0.1", folder=str(self.folder)
        ) as terminal:
            terminal.wait_for("free in slabs")
            terminal.press("p")
            held = terminal.wait_for("PAUSED")
            terminal.press("w")
            terminal.wait_for("written to")
            (file,) = self.folder.glob("brimful-top-*.json")
            (process,) = json.loads(file.read_text())["processes"]
            self.assertEqual(process["pid"], self.running.pid)
            self.assertEqual(terminal.picture()[:-1], held[:-1])
            terminal.press("p")
            terminal.wait_for("PAUSED", absent=True)
            terminal.press("q")
            self.assertEqual(terminal.end(), 0)

    def test_ctrl_z_gives_the_terminal_back_and_fg_goes_on(self) -> None:
        with self.terminal(self.running.pid) as terminal:
            terminal.wait_for("free in slabs")
            os.kill(terminal.pid, signal.SIGTSTP)
            terminal.wait_for_old_screen()
            os.waitpid(terminal.pid, os.WUNTRACED)
            self.assertTrue(termios.tcgetattr(terminal.fd)[3] & termios.ICANON)
            terminal.output = b""
            os.kill(terminal.pid, signal.SIGCONT)
            terminal.wait_for("free in slabs")
            terminal.press("q")
            self.assertEqual(terminal.end(), 0)

    # --- without one -----------------------------------------------------------------------------

    def test_once_prints_one_picture_and_so_it_is_without_a_terminal(self) -> None:
        for arguments in (("--once",), ()):
            done = top(*arguments, COLUMNS="80")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(" busy", done.stdout)
            self.assertNotIn("\x1b", done.stdout)
            self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)
        one = top("--once", self.running.pid, COLUMNS="40")
        self.assertIn("free in slabs", one.stdout)
        self.assertLessEqual(max(map(len, one.stdout.splitlines())), 40)

    def test_json_has_all_figures_and_their_rates(self) -> None:
        done = top("--once", "--json", self.running.pid)
        self.assertEqual(done.returncode, 0, done.stderr)
        look = json.loads(done.stdout)
        (process,) = look["processes"]
        self.assertEqual((look["schema"], look["errors"]), ("brimful-stats-1", []))
        self.assertGreater(process["rates"]["mallocs"], 0)
        self.assertEqual(process["rates"]["purged_bytes"], 0)
        environment = clean()
        command = [str(BRIMFUL), "top", "--json", "--interval", "0.1"]
        with subprocess.Popen(command, env=environment, stdout=-1, text=True) as stream:
            assert stream.stdout is not None
            for _ in range(3):
                pids = [one["pid"] for one in json.loads(stream.stdout.readline())["processes"]]
                self.assertIn(self.running.pid, pids)
            stream.send_signal(signal.SIGINT)
            self.assertEqual(stream.wait(timeout=PATIENCE_S), 130)

    def test_bad_input_gets_one_line(self) -> None:
        ended = subprocess.Popen(["true"])
        ended.wait()
        done = top("--once", ended.pid)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, f"brimful top: there is no process {ended.pid}\n")
        both = top("--once", ended.pid, self.running.pid)
        self.assertEqual(both.returncode, 1)
        self.assertIn(f" {self.running.pid} ", both.stdout)
        for wrong in (["x"], ["--interval", "0"], ["--none"], ["0"]):
            done = top(*wrong)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        done = top("--once", BRIMFUL_OBSERVER="/nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no observer at /nowhere", done.stderr)


def look(**changes: Any) -> dict[str, Any]:
    """A process as the observer says it, as far as rates go."""
    lock = {"acquisitions": 0, "contended": 0, "sleeps": 0, "wait_ns": 0, "busy": 0}
    process: dict[str, Any] = {
        "at_seconds": 10.0,
        "calls": {"mallocs": 1000},
        "pages": {"purged": 0, "refaulted": 0},
        "heap": {"at_seconds": 10.0, "frees": 500},
        "locks": {"heap": dict(lock), "context": dict(lock), "central": {"classes": {}}},
    }
    for path, value in changes.items():
        *folders, last = path.split("__")
        place = process
        for folder in folders:
            place = place[folder]
        place[last] = value
    return process


class Rates(unittest.TestCase):
    def test_are_unknown_at_the_first_look(self) -> None:
        rates = observe.History().rates(look())
        self.assertIsNone(rates["mallocs"])
        self.assertIsNone(rates["frees"])

    def test_are_what_happened_a_second(self) -> None:
        history = observe.History()
        history.rates(look())
        rates = history.rates(
            look(at_seconds=12.0, calls__mallocs=5000, pages__purged=1 << 20, heap__at_seconds=12.0)
            | {"heap": {"at_seconds": 12.0, "frees": 2500}}
        )
        self.assertEqual(rates["mallocs"], 2000)
        self.assertEqual(rates["frees"], 1000)
        self.assertEqual(rates["purged_bytes"], 1 << 19)

    def test_of_frees_stay_those_of_the_last_look_at_the_heap(self) -> None:
        history = observe.History()
        history.rates(look())
        history.rates(look(at_seconds=11.0, heap__at_seconds=11.0, heap__frees=800))
        later = history.rates(look(at_seconds=12.0, heap__at_seconds=11.0, heap__frees=800))
        self.assertEqual(later["frees"], 300)

    def test_of_locks_name_those_that_were_waited_for(self) -> None:
        history = observe.History()
        history.rates(look())
        busy = {"acquisitions": 9, "contended": 4, "sleeps": 1, "wait_ns": 10**9, "busy": 0}
        now = look(at_seconds=12.0, locks__heap=busy)
        self.assertEqual(history.rates(now)["locks"], {"heap": {"waits": 2.0, "waiting": 0.5}})


class Layout(unittest.TestCase):
    def test_figures_fit_their_columns(self) -> None:
        for value in (0, 1, 999, 999.6, 1000, 1023, 99_949, 99_951, 1 << 20, 10**9, 1 << 40):
            self.assertLessEqual(len(layout.size(value)), 6, value)
            self.assertLessEqual(len(layout.number(value)), 6, value)
        self.assertEqual(layout.size(1536), "1.5K")
        self.assertEqual(layout.number(12_345_678), "12.3M")
        self.assertEqual(layout.duration(3 * 86400 + 7200), "3d02h")

    def test_bars_are_as_wide_as_asked_for(self) -> None:
        for share in (-1, 0, 0.5, 1, 2):
            self.assertEqual(len(layout.bar(share, 14)), 14)

    def test_a_program_cant_send_the_terminal_commands_by_its_name(self) -> None:
        self.assertEqual(layout.visible("a\x1b[2Jb\n"), "a?[2Jb?")

    def test_help_fits(self) -> None:
        self.assertLessEqual(max(len(line) for line in views.help_text(40)), 40)


if __name__ == "__main__":
    unittest.main()
