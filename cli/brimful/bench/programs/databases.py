# SPDX-License-Identifier: MIT
"""Databases inside the process that uses them."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Cell
from .row import row, script


def rows() -> Iterator[Cell]:
    yield from _rocksdb()
    yield from _sqlite()


def _rocksdb() -> Iterator[Cell]:
    for name, benchmarks, threads, count, shows in (
        ("rocksdb-write", "fillrandom,overwrite", 1, 100_000, "keys and values made and compacted"),
        ("rocksdb-read", "fillseq,readrandom,readseq", 2, 60_000, "blocks into and out of a cache"),
    ):
        command = ["db_bench", f"--benchmarks={benchmarks}", "--db=db", f"--num={count}"]
        command += [f"--threads={threads}", "--value_size=200", "--cache_size=4194304", "--seed=1"]
        command += ["--write_buffer_size=4194304", "--compression_type=lz4"]
        title = f"RocksDB: db_bench {benchmarks.replace(',', ', ')}"
        title += f", {threads} threads" if threads > 1 else ""
        yield row(name, title, shows, ("rocksdb-tools",), command, threads=0)


def _sqlite() -> Iterator[Cell]:
    command = ["sqlite3", ":memory:", f".read {script('queries.sql')}"]
    shows = "a malloc for each node of a statement and each page of the cache"
    title = "SQLite: a shop in memory, filled, indexed, joined, searched"
    yield row("sqlite3", title, shows, ("sqlite3",), command)
