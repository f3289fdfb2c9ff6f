# SPDX-License-Identifier: MIT
"""What the whole system says about transparent hugepages, for as long as a measurement needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .model import StudyError

SYSTEM = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@contextmanager
def system_says(word: str) -> Iterator[None]:
    """always, madvise or never, until the block ends; "" changes nothing. Raises StudyError."""
    if not word:
        yield
        return
    try:
        before = SYSTEM.read_text().partition("[")[2].partition("]")[0]
        if before != word:
            SYSTEM.write_text(word)
    except OSError as error:
        raise StudyError(f"{SYSTEM} cannot be set: {error.strerror}") from None
    try:
        yield
    finally:
        if before != word:
            SYSTEM.write_text(before)
