#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""redis-server under the allocator, loaded by redis-benchmark over a unix socket.

    serve_redis.py --tests set,get --size 64 --keys 100000 --requests 300000 [--server PROGRAM]

Nothing is written to disk and no port is opened. The time is that of the requests as
redis-benchmark reports it, summed over the tests, without its own start. Each test's µs per request
are in `extra`. Without --server it is Debian's, which is linked with jemalloc (build_programs.py
builds one that is not).
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
import sys
from pathlib import Path
from typing import Any

import serving

CLIENTS = 20
PIPELINE = 16  # requests per round trip, or the socket is what is measured


def start(program: str, folder: Path) -> serving.Server:
    command = [program, "--port", "0", "--unixsocket", str(folder / "socket"), "--save", ""]
    command += ["--appendonly", "no", "--loglevel", "warning", "--dir", str(folder)]
    return serving.Server(command, folder)


def load(arguments: argparse.Namespace, server: serving.Server, folder: Path) -> dict[str, Any]:
    socket = str(folder / "socket")
    server.wait_until((folder / "socket").exists)
    count = arguments.requests
    said = serving.client(
        [
            *("redis-benchmark", "-s", socket, "-c", str(CLIENTS), "-P", str(PIPELINE), "--csv"),
            *("-d", str(arguments.size), "-r", str(arguments.keys), "-n", str(count)),
            *("-t", arguments.tests),
        ]
    )
    rates = {
        row["test"].split()[0].lower(): float(row["rps"])
        for row in csv.DictReader(io.StringIO(said))
    }
    if set(rates) != set(arguments.tests.split(",")) or min(rates.values()) <= 0:
        raise serving.ServingError(f"redis-benchmark ran {', '.join(rates) or 'nothing'}")
    serving.client(["redis-cli", "-s", socket, "shutdown", "nosave"])
    return {
        "operations": count * len(rates),
        "seconds": sum(count / rate for rate in rates.values()),
        "extra": {f"{test}_us": 1e6 / rate for test, rate in rates.items()},
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tests", required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--server", default="redis-server")
    arguments = parser.parse_args()
    begin = functools.partial(start, arguments.server)
    return serving.main("redis", begin, functools.partial(load, arguments))


if __name__ == "__main__":
    sys.exit(main())
