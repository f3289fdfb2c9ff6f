# SPDX-License-Identifier: MIT
"""What one sees while the bench runs: a bar with the time left, or plain lines without a terminal."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from .engine import Progress as Step

PLAIN_EVERY_S = 10.0


def clock(seconds: float) -> str:
    """Minutes and seconds, as on a kitchen clock."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Display:
    """A context manager that is also the engine's listener.

    The time left is what is left of the budget: rows usually settle before it is spent, but when is
    what the measurement itself finds out.
    """

    def __init__(self, console: Console, budget_s: float) -> None:
        self._console = console
        self._budget_s = budget_s
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[rows]}  at most {task.fields[left]} left"),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._said_s = 0.0

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._task = self._bar.add_task("starting", total=self._budget_s, rows="", left="")
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._bar.stop()

    def __call__(self, step: Step) -> None:
        rows = f"{step.cells_done} of {step.cells} rows settled"
        left = clock(step.left_s)
        if self._task is not None:
            text = f"{step.what}: {step.cell} · {step.allocator}"
            self._bar.update(
                self._task,
                completed=step.elapsed_s,
                description=f"{text:<58.58}",
                rows=rows,
                left=left,
            )
        elif time.monotonic() - self._said_s > PLAIN_EVERY_S:
            self._said_s = time.monotonic()
            self._console.print(f"{step.what}: {step.cell}; {rows}; at most {left} left")
