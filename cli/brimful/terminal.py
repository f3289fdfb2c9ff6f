# SPDX-License-Identifier: MIT
"""Ending well whatever happens to the terminal: no traceback for what is nobody's mistake here.

Ctrl-C, a reader that went away (`| head`), a full disk and a closed standard output can strike at
any line; so they are dealt with once, around everything, and not where a line happens to be. A text
that the terminal's character set lacks letters for (a Latin-1 locale, `PYTHONIOENCODING=ascii`) is
shown with question marks in their place: a table with `?` for `×` is better than none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

EXIT_FAILURE = 1
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells say it
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE


def guarded(name: str, main: Callable[[], int]) -> int:
    """The exit code of `main()`, or of what ended it; `name` is who says so on standard error."""
    _prepare()
    try:
        code = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        _give_up_output()
        code = EXIT_BROKEN_PIPE
    except OSError as error:
        _give_up_output()
        where = f": {error.filename}" if error.filename else ""
        _say(f"{name}: {error.strerror or error}{where}\n")
        code = EXIT_FAILURE
    return code


def _prepare() -> None:
    """Streams that can be written to, with whatever letters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (it lives as long as we do)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _give_up_output() -> None:
    """Nothing more goes out: what is still buffered would fail again as the interpreter ends."""
    try:
        sys.stdout.flush()
    except OSError:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError:
            pass  # a stream without a descriptor: nothing of ours to flush


def _say(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        pass  # nobody is left to tell
