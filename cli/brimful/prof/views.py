# SPDX-License-Identifier: MIT
"""Five questions to the same samples; each answer is an amount for each stack."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .samples import Recording, Sample, standard_error
from .stacks import Amount, Found, Stack, plain


@dataclass(slots=True)
class View(Found):
    """An answer, and how sure it is."""

    samples: int = 0
    error: float = 0.0  # standard error of the sum of bytes
    lifetimes: dict[Stack, float] | None = (
        None  # median seconds by plain stack, in the view of that name
    )


def _sum(name: str, meaning: str, samples: Iterable[Sample]) -> View:
    chosen = list(samples)
    view = View(name, meaning, samples=len(chosen), error=standard_error(chosen))
    for sample in chosen:
        view.amounts.setdefault(sample.stack, Amount()).add(sample.amount)
    return view


def _since(recording: Recording) -> str:
    when = "" if recording.complete else f" in these {recording.seconds:.3g} s"
    return f"was allocated{when}"


def in_use(recording: Recording) -> View:
    """What had not been freed when the recording ended."""
    # Where sampling was on before we came, objects of then are known as well, but not all of them.
    live = (s for s in recording.samples if s.freed_ns == 0)
    return _sum("in-use", f"not freed at the end, of what {_since(recording)}", live)


def allocated(recording: Recording) -> View:
    """All that was allocated, whether it was freed or not."""
    begin = 0 if recording.complete else recording.began_ns
    return _sum(
        "allocated",
        f"all that {_since(recording)}",
        (s for s in recording.samples if s.allocated_ns >= begin),
    )


def lifetimes(recording: Recording) -> View:
    """What was allocated and freed again while it was watched, with how long it lived."""
    freed = [
        s
        for s in recording.samples
        if s.freed_ns and (recording.complete or s.allocated_ns >= recording.began_ns)
    ]
    view = _sum("lifetimes", f"freed again, of what {_since(recording)}", freed)
    ages: dict[Stack, list[float]] = {}
    for sample in freed:
        ages.setdefault(plain(sample.stack), []).append(
            (sample.freed_ns - sample.allocated_ns) / 1e9
        )
    view.lifetimes = {stack: statistics.median(found) for stack, found in ages.items()}
    return view


def growth(recording: Recording) -> View:
    """What came minus what went between the two moments."""
    came = [
        s for s in recording.samples if s.allocated_ns >= recording.began_ns and s.freed_ns == 0
    ]
    went = [s for s in recording.samples if s.allocated_ns < recording.began_ns <= s.freed_ns]
    view = _sum("growth", f"came and stayed, less what went, in {recording.seconds:.3g} s", came)
    for sample in went:
        view.amounts.setdefault(sample.stack, Amount()).add(sample.amount, -1)
    view.samples += len(went)
    view.error = standard_error(came + went)
    return view


def peak(recording: Recording) -> View:
    """What was in use at the moment at which most was."""
    events = [(s.allocated_ns, s.amount.bytes) for s in recording.samples]
    events += [(s.freed_ns, -s.amount.bytes) for s in recording.samples if s.freed_ns]
    now = most = 0.0
    moment = recording.began_ns
    for at, change in sorted(events):
        now += change
        if now > most:
            most, moment = now, at
    live = (
        s
        for s in recording.samples
        if s.allocated_ns <= moment and (s.freed_ns == 0 or s.freed_ns > moment)
    )
    after = max(0.0, (moment - recording.began_ns) / 1e9)
    return _sum("peak", f"in use {after:.3g} s after the beginning, when most was", live)


VIEWS: dict[str, Callable[[Recording], View]] = {
    "in-use": in_use,
    "allocated": allocated,
    "lifetimes": lifetimes,
    "growth": growth,
    "peak": peak,
}


def by_class(samples: Iterable[Sample]) -> dict[int, Amount]:
    """The sum for each usable size."""
    result: dict[int, Amount] = {}
    for sample in samples:
        result.setdefault(sample.usable, Amount()).add(sample.amount)
    return result
