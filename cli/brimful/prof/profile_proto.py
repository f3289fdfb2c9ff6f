# SPDX-License-Identifier: MIT
"""pprof's message types (profile.proto of github.com/google/pprof), made from a table.

python3-protobuf builds classes from descriptors as well as from generated code; a table of the numbers
needs no compiler of protobuf when brimful is built, and no generated file that must fit its version.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# Message: field, number, type; `[]` behind a type is "repeated".
_MESSAGES: dict[str, list[tuple[str, int, str]]] = {
    "Profile": [
        ("sample_type", 1, "ValueType[]"),
        ("sample", 2, "Sample[]"),
        ("mapping", 3, "Mapping[]"),
        ("location", 4, "Location[]"),
        ("function", 5, "Function[]"),
        ("string_table", 6, "string[]"),
        ("drop_frames", 7, "int64"),
        ("keep_frames", 8, "int64"),
        ("time_nanos", 9, "int64"),
        ("duration_nanos", 10, "int64"),
        ("period_type", 11, "ValueType"),
        ("period", 12, "int64"),
        ("comment", 13, "int64[]"),
        ("default_sample_type", 14, "int64"),
    ],
    "ValueType": [("type", 1, "int64"), ("unit", 2, "int64")],
    "Sample": [("location_id", 1, "uint64[]"), ("value", 2, "int64[]"), ("label", 3, "Label[]")],
    "Label": [
        ("key", 1, "int64"),
        ("str", 2, "int64"),
        ("num", 3, "int64"),
        ("num_unit", 4, "int64"),
    ],
    "Mapping": [
        ("id", 1, "uint64"),
        ("memory_start", 2, "uint64"),
        ("memory_limit", 3, "uint64"),
        ("file_offset", 4, "uint64"),
        ("filename", 5, "int64"),
        ("build_id", 6, "int64"),
        ("has_functions", 7, "bool"),
        ("has_filenames", 8, "bool"),
        ("has_line_numbers", 9, "bool"),
        ("has_inline_frames", 10, "bool"),
    ],
    "Location": [
        ("id", 1, "uint64"),
        ("mapping_id", 2, "uint64"),
        ("address", 3, "uint64"),
        ("line", 4, "Line[]"),
        ("is_folded", 5, "bool"),
    ],
    "Line": [("function_id", 1, "uint64"), ("line", 2, "int64"), ("column", 3, "int64")],
    "Function": [
        ("id", 1, "uint64"),
        ("name", 2, "int64"),
        ("system_name", 3, "int64"),
        ("filename", 4, "int64"),
        ("start_line", 5, "int64"),
    ],
}
_PACKAGE = "perftools.profiles"


def profile_class() -> Any:
    """The class of the message Profile."""
    kinds = descriptor_pb2.FieldDescriptorProto
    scalars = {
        "int64": kinds.TYPE_INT64,
        "uint64": kinds.TYPE_UINT64,
        "bool": kinds.TYPE_BOOL,
        "string": kinds.TYPE_STRING,
    }
    file = descriptor_pb2.FileDescriptorProto(
        name="profile.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            plain = kind.removesuffix("[]")
            entry = message.field.add(name=field, number=number)
            entry.label = kinds.LABEL_REPEATED if kind != plain else kinds.LABEL_OPTIONAL
            if plain in scalars:
                entry.type = scalars[plain]
            else:
                entry.type = kinds.TYPE_MESSAGE
                entry.type_name = f".{_PACKAGE}.{plain}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.Profile")
    if hasattr(message_factory, "GetMessageClass"):  # from protobuf 4.22 on
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)
