# SPDX-License-Identifier: MIT
"""Servers: a driver of bench/programs/ starts each under the allocator and loads it.

The client's threads are not counted, and most servers have threads besides the one that serves, so
threads are 0: any number.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ..model import Cell
from .row import REDIS_LIBC, input_file, input_folder, made_program, row, script


def rows() -> Iterator[Cell]:
    yield from _redis()
    yield from _redis_plain()
    yield from _postgres()
    yield from _memcached()
    yield from _nginx()


def _redis() -> Iterator[Cell]:
    # name, tests, bytes of a value, keys, requests of each test
    plans = (
        ("redis-small", "set,get,incr", 32, 100_000, 200_000, "small values: one object per key"),
        ("redis-1k", "set,get", 1024, 50_000, 150_000, "values of 1 KiB, replaced in place"),
        ("redis-16k", "set,get", 16_384, 5_000, 30_000, "values of 16 KiB, replaced in place"),
        ("redis-lists", "lpush,rpush,lpop,rpop", 100, 1, 200_000, "list nodes that grow and go"),
        (
            "redis-sets",
            "sadd,hset,zadd",
            100,
            50_000,
            150_000,
            "tables that are doubled and copied",
        ),
    )
    for name, tests, size, keys, requests, shows in plans:
        command = _redis_command(tests, size, keys, requests)
        title = f"redis-server: {tests.replace(',', ', ')} with values of {size} bytes"
        yield row(
            name, title, shows, ("redis-server", "redis-tools"), command, threads=0, served=True
        )


def _redis_plain() -> Iterator[Cell]:
    """Upstream's redis, built with MALLOC=libc: no jemalloc in it, and none of its hooks."""
    plans = (
        ("small", "set,get,incr", 16, 200_000, 700_000, "small values: one object per key"),
        ("100", "set,get", 100, 200_000, 900_000, "values of 100 bytes, made and freed"),
        ("1k", "set,get", 1024, 100_000, 700_000, "values of 1 KiB, made and freed"),
        ("4k", "set,get", 4096, 50_000, 400_000, "values of a page, made and freed"),
        ("lists", "lpush,rpush,lpop,rpop", 100, 1, 500_000, "list nodes that grow and go"),
    )
    for name, tests, size, keys, requests, shows in plans:
        command = _redis_command(tests, size, keys, requests)
        command += ["--server", str(made_program(REDIS_LIBC))]
        title = f"redis with plain malloc: {tests.replace(',', ', ')}, values of {size} bytes"
        source = "redis 7.0.15 from Debian's source package, MALLOC=libc"
        yield row(
            f"redis-plain-{name}",
            title,
            shows,
            (REDIS_LIBC, "redis-tools"),
            command,
            threads=0,
            served=True,
            source=source,
        )


def _redis_command(tests: str, size: int, keys: int, requests: int) -> list[str]:
    command = [sys.executable, script("serve_redis.py"), "--tests", tests, "--size", str(size)]
    return [*command, "--keys", str(keys), "--requests", str(requests)]


def _postgres() -> Iterator[Cell]:
    for name, kind, transactions in (
        ("postgres-tpcb", "tpcb-like", 750),
        ("postgres-select", "select-only", 6000),
    ):
        template = input_folder() / "postgres"
        command = [sys.executable, script("serve_postgres.py"), "--template", str(template)]
        command += ["--script", kind, "--clients", "4", "--transactions", str(transactions)]
        title = f"PostgreSQL: pgbench {kind}, 4 clients"
        shows = "a process per client, with arenas of its own on top of malloc"
        yield row(name, title, shows, ("postgresql",), command, threads=0, served=True)


def _memcached() -> Iterator[Cell]:
    command = [sys.executable, script("serve_memcached.py"), "--keys", "40000", "--rounds", "18"]
    shows = "slabs of its own: malloc serves connections, threads and the first megabytes"
    title = "memcached: set, get and delete, values of 10 to 2000 bytes"
    yield row("memcached", title, shows, ("memcached",), command, threads=0, served=True)


def _nginx() -> Iterator[Cell]:
    pages, requests = "60", "36000"
    command = [sys.executable, script("serve_nginx.py"), "--text", input_file("corpus.txt")]
    command += ["--pages", pages, "--requests", requests]
    shows = "a pool for each request, 256 KiB for each that is compressed"
    title = "nginx: pages of 4 to 30 KiB, every other one compressed"
    yield row("nginx", title, shows, ("nginx",), command, threads=0, served=True)
