# SPDX-License-Identifier: MIT
"""`brimful export`: a server that answers on /metrics, or the same text once."""

from __future__ import annotations

import re
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from .. import locate
from .look import Looker, LookError

EXIT_FAILURE = 1
EXIT_USAGE = 2
DEFAULT_LISTEN = "127.0.0.1:9470"
PAGE = b"""<!doctype html><title>brimful export</title><p>Heaps of this machine's processes:
<a href="metrics">metrics</a>"""


def export(listen: str, is_once: bool, pids: list[int]) -> int:
    """Serve metrics until a signal ends it, or print them; returns the exit code."""
    place = _place(listen)
    if place is None:
        _say(f"--listen {listen}: no ADDRESS:PORT, such as {DEFAULT_LISTEN} or [::1]:9470")
        return EXIT_USAGE
    try:
        import prometheus_client
    except ImportError:
        _say("the package python3-prometheus-client is missing (apt-get install it)")
        return EXIT_FAILURE
    try:
        looker = Looker(locate.observer(), pids)
        registry = prometheus_client.CollectorRegistry(auto_describe=False)
        registry.register(_collector(looker))
        if is_once:
            sys.stdout.write(prometheus_client.generate_latest(registry).decode())
            return EXIT_FAILURE if pids and looker.look().errors else 0
    except (locate.LibraryError, LookError) as error:
        _say(str(error))
        return EXIT_FAILURE
    return _serve(*place, _application(prometheus_client.make_wsgi_app(registry)))


def _place(listen: str) -> tuple[str, int] | None:
    """Address and port; a name without an address is no place, ":9470" would be every address."""
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^\[\]:]+)):(\d{1,5})", listen)
    if found is None or int(found[3]) > 65535:
        return None
    return found[1] or found[2], int(found[3])


def _collector(looker: Looker) -> Any:
    from . import metrics

    class Collector:
        def describe(self) -> list[Any]:
            return []

        def collect(self) -> Iterator[Any]:
            yield from metrics.families(looker.look())

    return Collector()


Start = Callable[..., Any]


def _application(metrics: Callable[[dict[str, Any], Start], Iterable[bytes]]) -> Any:
    """The metrics on their path, a page that leads there, and an error as one line for who asks."""

    def application(environment: dict[str, Any], start: Start) -> Iterable[bytes]:
        path = environment.get("PATH_INFO", "/")
        if path == "/":
            start("200 OK", [("Content-Type", "text/html; charset=utf-8")])
            return [PAGE]
        if path != "/metrics":
            start("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
            return [b"metrics are at /metrics\n"]
        try:
            return metrics(environment, start)
        except LookError as error:
            _say(str(error))
            start("503 Service Unavailable", [("Content-Type", "text/plain; charset=utf-8")])
            return [f"{error}\n".encode()]

    return application


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing of each request."""


def _serve(address: str, port: int, application: Any) -> int:
    from socketserver import ThreadingMixIn

    class Server(ThreadingMixIn, WSGIServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

        def server_bind(self) -> None:
            # WSGIServer would ask a name server who we are.
            from http.server import HTTPServer

            super(HTTPServer, self).server_bind()
            self.server_name, self.server_port = address, self.server_address[1]
            self.setup_environ()

    try:
        server = make_server(address, port, application, Server, _Handler)
    except OSError as error:
        _say(f"cannot listen on {address}:{port}: {error.strerror or error}")
        return EXIT_FAILURE
    signal.signal(signal.SIGTERM, _stop)
    shown = f"[{address}]" if ":" in address else address
    print(f"brimful export: http://{shown}:{server.server_port}/metrics", flush=True)
    try:
        server.serve_forever()
    except SystemExit:
        return 0
    finally:
        server.server_close()
    return 0


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit


def _say(text: str) -> None:
    sys.stderr.write(f"brimful export: {text}\n")
