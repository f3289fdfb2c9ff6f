#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nginx under the allocator, loaded over a unix socket.

    serve_nginx.py --text corpus.txt --pages 60 --requests 14000

Pages of 4 to 30 KiB are cut from the text. A connection asks for 25 of them at once and closes; every
other answer is compressed. One worker serves, and a master looks after it, as installed. The client
counts the answers as they come, and unpacks and compares those of the first round when the clock has
stopped.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import signal
import socket
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import serving

BATCH = 25
SMALLEST, STEP = 4096, 450  # bytes of page 0; each further page is so much longer
GOOD = b"HTTP/1.1 200 OK\r\n"
SETTINGS = """\
daemon off;
{user}
worker_processes 1;
pid {folder}/pid;
error_log stderr warn;
events {{ worker_connections 64; }}
http {{
  types {{ text/plain txt; }}
  access_log {folder}/access.log;
  gzip on;
  gzip_types text/plain;
  gzip_http_version 1.0;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen unix:{folder}/socket;
    root {folder}/pages;
  }}
}}
"""


def start(arguments: argparse.Namespace, folder: Path) -> serving.Server:
    text = arguments.text.read_bytes()
    (folder / "pages").mkdir()
    for number in range(arguments.pages):
        size = SMALLEST + STEP * number
        (folder / "pages" / f"{number}.txt").write_bytes(text[number * STEP :][:size])
    # Told nothing, a root's nginx gives its workers to a user who may not enter the folder.
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(SETTINGS.format(folder=folder, user=user))
    command = ["/usr/sbin/nginx", "-e", "stderr", "-p", str(folder), "-c", "nginx.conf"]
    return serving.Server(command, folder)


def request(number: int, last: bool) -> bytes:
    packed = b"Accept-Encoding: gzip\r\n" if number % 2 else b""
    end = b"Connection: close\r\n" if last else b""
    return b"GET /%d.txt HTTP/1.1\r\nHost: bench\r\n%b%b\r\n" % (number, packed, end)


def answers(path: Path, asked: bytes) -> bytes:
    """Everything that one connection gives."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(serving.CLIENT_S)
        try:
            connection.connect(str(path))
            connection.sendall(asked)
            parts = list(iter(lambda: connection.recv(1 << 20), b""))
        except OSError as error:
            raise serving.ServingError(f"nginx: {error}") from None
    return b"".join(parts)


def bodies(told: bytes) -> list[bytes]:
    """The pages in the answers of a connection, unpacked."""
    found, at = [], 0
    while at < len(told):
        end = told.index(b"\r\n\r\n", at) + 4
        head = told[at:end]
        length = re.search(rb"Content-Length: (\d+)", head)
        if length:
            at = end + int(length[1])
            body = told[end:at]
        else:
            body, at = _unchunked(told, end)
        packed = b"Content-Encoding: gzip" in head
        found.append(zlib.decompress(body, wbits=31) if packed else body)
    return found


def _unchunked(told: bytes, at: int) -> tuple[bytes, int]:
    """The pieces from `at` on, joined, and where they end."""
    parts = []
    while True:
        begin = told.index(b"\r\n", at) + 2
        size = int(told[at : begin - 2], 16)
        parts.append(told[begin : begin + size])
        at = begin + size + 2
        if size == 0:
            return b"".join(parts), at


def load(arguments: argparse.Namespace, server: serving.Server, folder: Path) -> dict[str, Any]:
    numbers = [number % arguments.pages for number in range(arguments.requests)]
    connections = [numbers[at : at + BATCH] for at in range(0, len(numbers), BATCH)]
    asked = [
        b"".join(request(number, at == len(one) - 1) for at, number in enumerate(one))
        for one in connections
    ]
    server.wait_until(functools.partial(_accepts, folder / "socket"))
    first, round_length = [], -(-arguments.pages // BATCH)
    begin = time.perf_counter()
    for at, one in enumerate(asked):
        told = answers(folder / "socket", one)
        if told.count(GOOD) != len(connections[at]):
            raise serving.ServingError("nginx did not answer every request")
        if at < round_length:
            first.append(told)
    seconds = time.perf_counter() - begin
    for numbers_asked, told in zip(connections, first, strict=False):
        wanted = [(folder / "pages" / f"{number}.txt").read_bytes() for number in numbers_asked]
        if bodies(told) != wanted:
            raise serving.ServingError("nginx gave another page than was asked for")
    os.kill(int((folder / "pid").read_text()), signal.SIGQUIT)
    return {"operations": arguments.requests, "seconds": seconds, "extra": {}}


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--requests", type=int, required=True)
    arguments = parser.parse_args()
    return serving.main(
        "nginx", functools.partial(start, arguments), functools.partial(load, arguments)
    )


if __name__ == "__main__":
    sys.exit(main())
