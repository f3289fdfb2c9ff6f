#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memcached under the allocator, loaded over a unix socket.

    serve_memcached.py --keys 40000 --rounds 24

A round sets every key to a value of 10 to 2000 bytes (each power of two as likely), gets it, and
deletes one in four. All requests and the replies to them are made before the clock starts; the
client compares every byte, so a lost or damaged value fails the row. Nothing is evicted: the limit is
far above the values. Requests go out in batches, or the socket is what is measured.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import socket
import sys
import time
from pathlib import Path
from typing import Any

import serving

BATCH = 32  # keys
LIMIT_MIB = 512
THREADS = 2
VARIANTS = 2  # of values: each key's length changes from round to round


def start(folder: Path) -> serving.Server:
    command = ["memcached", "-s", str(folder / "socket"), "-m", str(LIMIT_MIB), "-t", str(THREADS)]
    command.append("-A")  # it ends when a client says so
    if os.geteuid() == 0:
        command += ["-u", "root"]  # it refuses to be root unless it is told to
    return serving.Server(command, folder)


def batches(keys: int, generator: random.Random) -> list[tuple[bytes, bytes]]:
    """Requests and the replies to them, of one round."""
    order = generator.sample(range(keys), keys)
    made = []
    for begin in range(0, keys, BATCH):
        asked, told = [], []
        chosen = order[begin : begin + BATCH]
        for key in chosen:
            size = min(2000, 10 + int(2 ** generator.uniform(0, 11)))
            value = b"%07d" % key + b"v" * size
            asked.append(b"set key:%d 0 0 %d\r\n%b\r\n" % (key, len(value), value))
            told.append(b"STORED\r\n")
            asked.append(b"get key:%d\r\n" % key)
            told.append(b"VALUE key:%d 0 %d\r\n%b\r\nEND\r\n" % (key, len(value), value))
        for key in chosen[:: VARIANTS * 2]:
            asked.append(b"delete key:%d\r\n" % key)
            told.append(b"DELETED\r\n")
        made.append((b"".join(asked), b"".join(told)))
    return made


def exchange(connection: socket.socket, asked: bytes, told: bytes) -> None:
    """Sends and compares. Raises ServingError."""
    connection.sendall(asked)
    parts, missing = [], len(told)
    while missing > 0:
        part = connection.recv(missing)
        if not part:
            raise serving.ServingError("memcached closed the connection")
        parts.append(part)
        missing -= len(part)
    if b"".join(parts) != told:
        raise serving.ServingError("memcached gave another answer than was stored")


def load(arguments: argparse.Namespace, server: serving.Server, folder: Path) -> dict[str, Any]:
    generator = random.Random(5)
    rounds = [batches(arguments.keys, generator) for _ in range(VARIANTS)]
    server.wait_until((folder / "socket").exists)
    seconds = 0.0
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(serving.CLIENT_S)
        try:
            connection.connect(str(folder / "socket"))
            for number in range(arguments.rounds):
                begin = time.perf_counter()
                for asked, told in rounds[number % VARIANTS]:
                    exchange(connection, asked, told)
                seconds += time.perf_counter() - begin
            connection.sendall(b"shutdown\r\n")
            connection.recv(1)
        except OSError as error:
            raise serving.ServingError(f"memcached: {error}") from None
    count = arguments.rounds * arguments.keys * 2
    return {"operations": count, "seconds": seconds, "extra": {}}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    arguments = parser.parse_args()
    return serving.main("memcached", start, functools.partial(load, arguments))


if __name__ == "__main__":
    sys.exit(main())
