# SPDX-License-Identifier: MIT
"""The full screen: keys, signals, and the terminal as it was when it ends, however that happens.

One loop waits for three things, a line of the observer, a key, and a signal, and draws when one of
them changed something. Keys come from standard input in cbreak mode: Ctrl-C and Ctrl-Z stay the
terminal's.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import termios
import time
import tty
from types import FrameType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from . import views
from .observe import Observer, Process

_ESCAPE_WAIT_S = 0.05  # for what follows an ESC that begins a key's sequence
_SEQUENCES = {
    "[A": "up",
    "[B": "down",
    "[C": "enter",
    "[D": "back",
    "[5~": "page up",
    "[6~": "page down",
    "OA": "up",
    "OB": "down",
    "OC": "enter",
    "OD": "back",
}
_KEYS = {"k": "up", "j": "down", "\r": "enter", "\n": "enter", "\x7f": "back", " ": "p", "?": "h"}


class Screen:
    """`brimful top` on a terminal. `pids` empty: every process that runs brimful."""

    def __init__(self, pids: list[int], interval: float, console: Console) -> None:
        self._pids = pids
        self._interval = interval
        self._console = console
        self._observer = Observer(pids, interval)
        self._look: dict[str, Any] | None = None
        self._paused: dict[str, Any] | None = None  # what is shown while paused
        self._selected = 0
        self._opened = pids[0] if len(pids) == 1 else 0  # the process that is shown; 0: the list
        self._last_of_opened: Process | None = None
        self._order = {"list": "rss", "classes": "waste"}
        self._scroll = 0
        self._shows_help = False
        self._message = ""
        self._message_until = 0.0
        self._gone: dict[int, str] = {}
        self._has_ended = False  # the observer: all of `pids` have
        self._is_done = False

    def run(self) -> int:
        """Until it is left; returns the exit code. Raises KeyboardInterrupt for Ctrl-C."""
        keyboard = sys.stdin.fileno()
        before = termios.tcgetattr(keyboard)
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        old_wake = signal.set_wakeup_fd(wake_write)
        old = {
            number: signal.signal(number, handler)
            for number, handler in (
                (signal.SIGWINCH, _nothing),
                (signal.SIGTERM, _terminated),
                (signal.SIGHUP, _terminated),
                (signal.SIGTSTP, _nothing),
            )
        }
        live = Live(console=self._console, screen=True, auto_refresh=False)
        try:
            tty.setcbreak(keyboard)
            live.start()
            while not self._is_done:
                self._draw(live)
                waits_for = [keyboard, wake_read, *([] if self._has_ended else [self._observer])]
                timeout = (
                    max(0.0, self._message_until - time.monotonic()) if self._message else None
                )
                ready = select.select(waits_for, [], [], timeout)[0]
                if wake_read in ready and signal.SIGTSTP in os.read(wake_read, 4096):
                    self._suspend(live, keyboard, before)
                if self._observer in ready:
                    self._take_looks()
                if keyboard in ready:
                    self._take_keys(keyboard)
        finally:
            live.stop()
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
            signal.set_wakeup_fd(old_wake)
            for number, handler in old.items():
                signal.signal(number, handler)
            os.close(wake_read)
            os.close(wake_write)
            self._observer.close()
        return 0

    # --- what comes in ---------------------------------------------------------------------------

    def _suspend(self, live: Live, keyboard: int, before: list[Any]) -> None:
        """Ctrl-Z: the shell gets its terminal as it was."""
        live.stop()
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
        os.kill(os.getpid(), signal.SIGSTOP)
        tty.setcbreak(keyboard)
        live.start()

    def _take_looks(self) -> None:
        looks = self._observer.read()
        if looks is None:
            self._has_ended = True
            return
        for look in looks:
            for error in look["errors"]:
                self._gone[error["pid"]] = error["error"]
                self._say(error["error"])
            self._look = look
        shown = views.in_order(self._shown(), self._order["list"])
        if shown and self._selected not in (one["pid"] for one in shown):
            self._selected = shown[0]["pid"]

    def _take_keys(self, keyboard: int) -> None:
        typed = os.read(keyboard, 4096).decode(errors="replace")
        if not typed:
            self._is_done = True  # the terminal is gone
        if typed == "\x1b" and select.select([keyboard], [], [], _ESCAPE_WAIT_S)[0]:
            typed += os.read(keyboard, 4096).decode(errors="replace")
        while typed and not self._is_done:
            key, typed = _next_key(typed)
            self._press(key)

    def _press(self, key: str) -> None:
        if self._shows_help and key != "q":
            self._shows_help = False
            return
        if key == "q":
            self._is_done = True
        elif key == "h":
            self._shows_help = True
        elif key == "p":
            self._paused = None if self._paused else self._look
        elif key == "s":
            self._sort()
        elif key == "w":
            self._write()
        elif key in ("up", "down", "page up", "page down"):
            self._move(key)
        elif key == "enter" and not self._opened and self._selected:
            self._opened, self._scroll = self._selected, 0
        elif key == "back" and self._opened and len(self._pids) != 1:
            self._opened, self._last_of_opened = 0, None

    def _sort(self) -> None:
        table = "classes" if self._opened else "list"
        orders = list(views.CLASS_ORDERS if self._opened else views.LIST_ORDERS)
        self._order[table] = orders[(orders.index(self._order[table]) + 1) % len(orders)]
        self._scroll = 0

    def _move(self, key: str) -> None:
        step = {"up": -1, "down": 1, "page up": -10, "page down": 10}[key]
        if self._opened:
            most = (
                max(0, len(self._last_of_opened["heap"]["classes"]) + 12)
                if self._last_of_opened
                else 0
            )
            self._scroll = max(0, min(self._scroll + step, most))
            return
        order = [one["pid"] for one in views.in_order(self._shown(), self._order["list"])]
        if not order:
            return
        at = order.index(self._selected) if self._selected in order else 0
        self._selected = order[max(0, min(at + step, len(order) - 1))]

    def _write(self) -> None:
        shown = self._paused or self._look
        if shown is None:
            return
        if self._opened:
            shown = shown | {"processes": [self._last_of_opened] if self._last_of_opened else []}
        name = f"brimful-top-{time.strftime('%Y%m%dT%H%M%S')}.json"
        try:
            with open(name, "w", encoding="utf-8") as file:
                json.dump(shown, file)
            self._say(f"written to {os.path.abspath(name)}")
        except OSError as error:
            self._say(f"{name}: {error.strerror}")

    # --- what goes out ---------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        self._message, self._message_until = text, time.monotonic() + 5

    def _shown(self) -> list[Process]:
        look = self._paused or self._look
        return look["processes"] if look is not None else []

    def _draw(self, live: Live) -> None:
        width, height = self._console.size
        if self._message and time.monotonic() >= self._message_until:
            self._message = ""
        body = self._body(width, height - 1)[: height - 1]
        body += [Text()] * (height - 1 - len(body))
        live.update(Group(*body, self._foot(width)), refresh=True)

    def _body(self, width: int, height: int) -> list[Text]:
        if self._shows_help:
            return views.help_text(width)
        for one in self._shown():
            if one["pid"] == self._opened:
                self._last_of_opened = one
        if self._opened:
            one_process = self._last_of_opened
            if one_process is None:
                return [Text(self._gone.get(self._opened, "looking…"))]
            head: list[Text] = []
            is_there = any(one["pid"] == self._opened for one in self._shown())
            if not is_there:
                why = self._gone.get(self._opened, f"process {self._opened} has ended")
                head = [Text(f"{why}; this was its last look", style="red", no_wrap=True)]
                head[0].truncate(width)
            order = self._order["classes"]
            rows = height - len(head)
            return head + views.process(one_process, order, self._scroll, width, rows)
        if self._look is None:
            return [Text("looking…")]
        shown = self._shown()
        if not shown:
            if self._pids:
                return [Text(text) for text in self._gone.values()]
            text = views.nobody()
            return [Text(text[at : at + width]) for at in range(0, len(text), width)]
        return views.processes(shown, self._selected, self._order["list"], width, height)

    def _foot(self, width: int) -> Text:
        order = self._order["classes" if self._opened else "list"]
        paused = "PAUSED  " if self._paused else ""
        text = self._message or f"{paused}q quit  h help  s sort: {order}  p pause  w write"
        line = Text(text, style="reverse" if self._message or self._paused else "dim", no_wrap=True)
        line.truncate(width)
        return line


def _next_key(typed: str) -> tuple[str, str]:
    """The first key of what was typed, by name, and the rest."""
    if typed[0] != "\x1b":
        return _KEYS.get(typed[0], typed[0]), typed[1:]
    for sequence, name in _SEQUENCES.items():
        if typed.startswith(sequence, 1):
            return name, typed[1 + len(sequence) :]
    if len(typed) > 1 and typed[1] in "[O":  # a key that means nothing here
        end = 2
        while end < len(typed) and not ("@" <= typed[end] <= "~"):
            end += 1
        return "", typed[end + 1 :]
    return "back", typed[1:]


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """The wake-up pipe says it."""


def _terminated(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
