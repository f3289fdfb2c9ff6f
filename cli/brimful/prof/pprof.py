# SPDX-License-Identifier: MIT
"""Profiles in pprof's format, as Go and jemalloc write those of the heap.

Sample types are alloc_objects, alloc_space, inuse_objects and inuse_space, as everywhere; a view of
another kind (peak, growth, lifetimes) adds two of its own behind them. All values are unsampled: they
estimate what the program did, not what was sampled. The default is what was looked at.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .profile_proto import profile_class
from .samples import FormatError, Recording
from .stacks import Amount, Line, Location, Stack
from .views import View, allocated, in_use

_NAMES = {"in-use": "inuse", "allocated": "alloc", "lifetimes": "freed"}


@dataclass(slots=True)
class Profile:
    """What is read back from a file: for each sample type of bytes the amounts, and the default."""

    default: str
    amounts: dict[str, dict[Stack, Amount]]


class _Writer:
    """Numbers strings, functions, mappings and locations as they come up."""

    def __init__(self, recording: Recording) -> None:
        self.profile: Any = profile_class()()
        self.recording = recording
        self.strings: dict[str, int] = {}
        self.functions: dict[tuple[str, str], int] = {}
        self.mappings: dict[str, int] = {}
        self.locations: dict[Location, int] = {}
        self.string("")

    def string(self, text: str) -> int:
        if text not in self.strings:
            self.strings[text] = len(self.strings)
            self.profile.string_table.append(text)
        return self.strings[text]

    def function(self, line: Line) -> int:
        key = (line.function, line.file)
        if key not in self.functions:
            self.functions[key] = len(self.functions) + 1
            self.profile.function.add(
                id=self.functions[key],
                name=self.string(line.function),
                system_name=self.string(line.function),
                filename=self.string(line.file),
            )
        return self.functions[key]

    def mapping(self, path: str) -> int:
        if not path:
            return 0
        if path not in self.mappings:
            # Addresses are the file's own, so the mappings of different files would overlap; pprof only
            # wants to know that names are there and need not be looked up.
            self.mappings[path] = len(self.mappings) + 1
            self.profile.mapping.add(
                id=self.mappings[path],
                filename=self.string(path),
                build_id=self.string(self.recording.build_ids.get(path, "")),
                has_functions=True,
                has_filenames=True,
                has_line_numbers=True,
                has_inline_frames=True,
            )
        return self.mappings[path]

    def location(self, location: Location) -> int:
        if location not in self.locations:
            self.locations[location] = len(self.locations) + 1
            entry = self.profile.location.add(
                id=self.locations[location],
                mapping_id=self.mapping(location.module),
                address=location.address,
            )
            for line in location.lines:
                entry.line.add(function_id=self.function(line), line=line.line)
        return self.locations[location]


def encode(recording: Recording, view: View) -> bytes:
    """The file's content, compressed."""
    columns: list[tuple[str, Mapping[Stack, Amount]]] = [
        ("alloc", allocated(recording).amounts),
        ("inuse", in_use(recording).amounts),
    ]
    shown = _NAMES.get(view.name, view.name)
    if shown not in ("alloc", "inuse"):
        columns.append((shown, view.amounts))
    writer = _Writer(recording)
    profile = writer.profile
    for name, _amounts in columns:
        for kind, unit in (("objects", "count"), ("space", "bytes")):
            profile.sample_type.add(type=writer.string(f"{name}_{kind}"), unit=writer.string(unit))
    everywhere = dict.fromkeys(stack for _, amounts in columns for stack in amounts)
    nothing = Amount()
    for stack in everywhere:
        values: list[int] = []
        for _, amounts in columns:
            amount = amounts.get(stack, nothing)
            values += [round(amount.objects), round(amount.bytes)]
        profile.sample.add(
            location_id=[writer.location(location) for location in stack], value=values
        )
    profile.time_nanos = int(recording.began_unix * 1e9)
    profile.duration_nanos = recording.ended_ns - recording.began_ns
    profile.period_type.type = writer.string("space")
    profile.period_type.unit = writer.string("bytes")
    profile.period = recording.interval
    profile.default_sample_type = writer.string(f"{shown}_space")
    profile.comment.append(writer.string(f"brimful prof: {recording.program} ({view.meaning})"))
    return gzip.compress(profile.SerializeToString())


def write(path: str, recording: Recording, view: View) -> None:
    """Writes the file; whoever reads `path` meanwhile sees the old one or the new one."""
    fresh = f"{path}.{os.getpid()}.tmp"
    try:
        with open(fresh, "wb") as file:
            file.write(encode(recording, view))
        os.replace(fresh, path)
    except OSError:
        if os.path.exists(fresh):
            os.unlink(fresh)
        raise


def is_profile(path: str) -> bool:
    """Whether the file begins as one of pprof does (they are always compressed)."""
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def read(path: str) -> Profile:
    """Reads a profile of the heap. Raises FormatError where it is none."""
    message = profile_class()()
    try:
        with gzip.open(path) as file:
            message.ParseFromString(file.read())
    except (gzip.BadGzipFile, EOFError, ValueError) as error:
        raise FormatError(f"{path} is not a profile: {error}") from None
    except Exception as error:  # protobuf's own DecodeError has moved between its versions
        if type(error).__name__ != "DecodeError":
            raise
        raise FormatError(f"{path} is not a profile of pprof: {error}") from None
    return _decoded(message, path)


def _decoded(message: Any, path: str) -> Profile:
    strings = list(message.string_table)
    functions = {f.id: (strings[f.name], strings[f.filename]) for f in message.function}
    files = {m.id: strings[m.filename] for m in message.mapping}
    locations = {
        entry.id: Location(
            tuple(Line(*functions[line.function_id], line.line) for line in entry.line),
            entry.address,
            files.get(entry.mapping_id, ""),
        )
        for entry in message.location
    }
    types = [strings[t.type] for t in message.sample_type]
    amounts: dict[str, dict[Stack, Amount]] = {}
    for name in (t.removesuffix("_space") for t in types if t.endswith("_space")):
        size = types.index(f"{name}_space")
        count = types.index(f"{name}_objects") if f"{name}_objects" in types else None
        column = amounts.setdefault(name, {})
        for sample in message.sample:
            stack = tuple(locations[number] for number in sample.location_id)
            objects = sample.value[count] if count is not None else 0
            if sample.value[size] or objects:
                column.setdefault(stack, Amount()).add(Amount(objects, sample.value[size]))
    if not amounts:
        raise FormatError(f"{path} is not a profile of a heap: it counts {', '.join(types)}")
    default = strings[message.default_sample_type].removesuffix("_space")
    return Profile(default if default in amounts else next(iter(amounts)), amounts)
