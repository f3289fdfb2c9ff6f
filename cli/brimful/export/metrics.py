# SPDX-License-Identifier: MIT
"""Which figure of a look is which metric: one table, and the families that come of it.

Names are as Prometheus asks for (prometheus.io/docs/practices/naming): a unit at the end, bytes and
seconds, `_total` behind what only grows. Every metric of a process has its number and its name as
labels, `pid` and `comm`; those of size classes have `class`, the bytes of an object.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric

from .look import Look, Process

WHO = ("pid", "comm")


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric, and the keys that lead to its value in what the observer says of a process."""

    name: str
    path: str
    help: str
    is_counter: bool = False
    factor: float = 1.0


FIGURES = (
    Figure("brimful_heap_resident_bytes", "heap.resident", "Resident memory of the heap."),
    Figure(
        "brimful_heap_live_bytes", "heap.live", "Of the resident memory: live objects and blocks."
    ),
    Figure(
        "brimful_heap_free_in_slabs_bytes",
        "heap.free_in_slabs",
        "Of the resident memory: free objects, and what is left at the ends of slabs and blocks.",
    ),
    Figure(
        "brimful_heap_free_runs_bytes",
        "heap.free_runs",
        "Of the resident memory: free runs that have not gone back to the system yet.",
    ),
    Figure(
        "brimful_heap_metadata_bytes", "heap.metadata", "Of the resident memory: headers, tables."
    ),
    Figure(
        "brimful_heap_allocated_bytes",
        "heap.allocated",
        "Live objects and blocks at their sizes, touched or not.",
    ),
    Figure("brimful_heap_hugepage_bytes", "heap.hugepages", "Of the heap: backed by hugepages."),
    Figure("brimful_heap_swapped_bytes", "heap.swap", "Of the heap: swapped out."),
    Figure(
        "brimful_heap_moving_bytes",
        "heap.moving_bytes",
        "Slabs that changed at each look, so that the figures above may be off by so much.",
    ),
    Figure("brimful_heap_live_objects", "heap.live_objects", "Live objects of size classes."),
    Figure("brimful_heap_live_blocks", "heap.live_blocks", "Live blocks above the size classes."),
    Figure("brimful_reserved_bytes", "pages.reserved", "Address space that is reserved."),
    Figure("brimful_committed_bytes", "pages.committed", "Address space in use, or used before."),
    Figure("brimful_used_bytes", "pages.used", "Address space of slabs and blocks."),
    Figure("brimful_dirty_bytes", "pages.dirty", "Free memory that will go back to the system."),
    Figure("brimful_muzzy_bytes", "pages.muzzy", "Of dirty: the system may take it (purge:free)."),
    Figure(
        "brimful_purged_bytes", "pages.purged", "Memory given back to the system.", is_counter=True
    ),
    Figure("brimful_purges", "pages.purges", "Calls that gave memory back.", is_counter=True),
    Figure(
        "brimful_refaulted_bytes",
        "pages.refaulted",
        "Memory that was asked for again within 10 s of going back.",
        is_counter=True,
    ),
    Figure("brimful_limit_bytes", "limits.hard", "The limit, above which malloc fails; 0: none."),
    Figure(
        "brimful_soft_limit_bytes", "limits.soft", "Above it free memory goes at once; 0: none."
    ),
    Figure(
        "brimful_limit_refusals",
        "limits.refusals",
        "Requests that were refused for the limit.",
        is_counter=True,
    ),
    Figure(
        "brimful_memory_short",
        "limits.memory_is_short",
        "1 while the system is short of memory, so that free memory goes back at once.",
    ),
    Figure(
        "brimful_misuse_reports",
        "misuse.reports",
        "Reports of misuse that the program survived (misuse:warn, misuse:hook).",
        is_counter=True,
    ),
    Figure(
        "brimful_mallocs",
        "calls.mallocs",
        "Calls that allocated. An estimate: hits are counted where objects are handed to them in groups.",
        is_counter=True,
    ),
    Figure(
        "brimful_frees", "heap.frees", "Calls that freed. An estimate, as mallocs.", is_counter=True
    ),
    Figure("brimful_contexts", "contexts", "Contexts, of CPUs or threads, that hold free objects."),
    Figure("brimful_sample_interval_bytes", "sampling.interval", "Bytes between samples; 0: off."),
    Figure(
        "brimful_samples", "sampling.taken", "Allocations sampled for profiles.", is_counter=True
    ),
    Figure("brimful_process_resident_bytes", "process.rss", "Resident memory of the process."),
    Figure(
        "brimful_process_proportional_bytes",
        "process.pss",
        "The same, with pages that are shared divided by how many share them.",
    ),
    Figure("brimful_process_swapped_bytes", "process.swap", "Swapped out."),
    Figure("brimful_process_threads", "process.threads", "Threads."),
    Figure(
        "brimful_process_cpu_seconds",
        "process.processor_seconds",
        "Processor time of the process.",
        is_counter=True,
    ),
)

CLASSES = (
    Figure("brimful_class_live_objects", "live", "Live objects of the size class."),
    Figure("brimful_class_free_objects", "free", "Free objects in slabs of the size class."),
    Figure("brimful_class_slabs", "slabs", "Slabs of the size class."),
    Figure("brimful_class_resident_bytes", "resident", "Resident memory of the class's slabs."),
    Figure("brimful_class_live_bytes", "live_bytes", "Of that: live objects."),
)

LOCKS = (
    Figure("brimful_lock_acquisitions", "acquisitions", "Times locks were taken.", True),
    Figure("brimful_lock_contended", "contended", "Of those: somebody else held it.", True),
    Figure("brimful_lock_sleeps", "sleeps", "Times a thread slept for a lock.", True),
    Figure("brimful_lock_wait_seconds", "wait_ns", "Time waited for locks.", True, 1e-9),
)


def families(look: Look) -> Iterator[Metric]:
    """All metrics of a look."""
    yield _info(look)
    started = GaugeMetricFamily(
        "brimful_process_start_time_seconds", "When the process started, Unix time.", labels=WHO
    )
    for process in look.processes:
        started.add_metric(_who(process), round(process.started, 2))
    yield started
    for figure in FIGURES:
        family = _family(figure, WHO)
        for process in look.processes:
            value = _value(process.seen, figure.path)
            if value is not None:
                family.add_metric(_who(process), value * figure.factor)
        yield family
    yield from _by_part(look, CLASSES, "class", _classes)
    yield from _by_part(look, LOCKS, "lock", lambda seen: seen.get("locks", {}))
    events = Figure("brimful_events", "", "What slow paths did (src/slots/events.h).", True)
    family = _family(events, (*WHO, "event"))
    for process in look.processes:
        for name, count in process.seen.get("events", {}).items():
            family.add_metric((*_who(process), name), count)
    yield family
    yield from _about_us(look)


def _who(process: Process) -> tuple[str, str]:
    return str(process.pid), process.comm


def _family(figure: Figure, labels: tuple[str, ...]) -> Metric:
    kind = CounterMetricFamily if figure.is_counter else GaugeMetricFamily
    return kind(figure.name, figure.help, labels=labels)


def _value(seen: dict[str, Any], path: str) -> float | None:
    """The figure that the path leads to; None where it was not to be had."""
    at: Any = seen
    for key in path.split("."):
        if not isinstance(at, dict) or key not in at:
            return None
        at = at[key]
    return float(at)


def _classes(seen: dict[str, Any]) -> dict[str, Any]:
    return {str(use["bytes"]): use for use in seen.get("heap", {}).get("classes", [])}


def _by_part(look: Look, figures: tuple[Figure, ...], label: str, parts: Any) -> Iterator[Metric]:
    for figure in figures:
        family = _family(figure, (*WHO, label))
        for process in look.processes:
            for name, part in parts(process.seen).items():
                value = _value(part, figure.path)
                if value is not None:
                    family.add_metric((*_who(process), name), value * figure.factor)
        yield family


def _info(look: Look) -> Metric:
    family = InfoMetricFamily("brimful", "Version and mode of the library.", labels=WHO)
    for process in look.processes:
        keys = {"version": "version", "front_end": "front_end"}
        about = {name: str(process.seen.get(key, "")) for name, key in keys.items()}
        about["tier"] = str(process.seen.get("options", {}).get("tier", ""))
        family.add_metric(_who(process), about)
    return family


def _about_us(look: Look) -> Iterator[Metric]:
    for name, text, value in (
        ("brimful_export_processes", "Processes that were read.", len(look.processes)),
        ("brimful_export_unreadable_processes", "That could not be read.", len(look.errors)),
        ("brimful_export_duration_seconds", "Time that the look took.", look.took_s),
    ):
        yield GaugeMetricFamily(name, text, value=value)
