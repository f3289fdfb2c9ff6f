#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`brimful export`: what it says of a process, to a parser of its text, promtool and a real Prometheus.

Environment: BRIMFUL_BUILD, the folder of the build.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BRIMFUL_BUILD", ROOT / "build/release")).resolve()
LIBRARY = BUILD / "libbrimful.so"
OBSERVER = BUILD / "brimful-observer"
DASHBOARD = ROOT / "share/grafana/brimful.json"
SKIP = 77
PLAIN = os.environ | {"BRIMFUL_OBSERVER": str(OBSERVER)}
HELD_OBJECTS = 5000
PROGRAM = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  static void* held[5000];
  for (int i = 0; i < 5000; i++) held[i] = memset(malloc(1000), 1, 1000);
  for (int i = 0; i < 5000; i++) free(malloc(1000));
  void* large = memset(malloc(1000000), 1, 1000000);
  if (write(1, "x", 1) != 1) return 1;
  char byte;
  while (read(0, &byte, 1) == 1) free(malloc(1000));
  return held[0] == NULL || large == NULL;
}
"""

sys.path.insert(0, str(ROOT / "cli"))


class Held:
    """A process that holds 5000 objects of 1000 bytes and a block, and does nothing."""

    def __init__(self, program: Path) -> None:
        pipe = subprocess.PIPE
        environment = os.environ | {"LD_PRELOAD": str(LIBRARY), "BRIMFUL_CONF": "limit:1G"}
        self.process = subprocess.Popen([program], stdin=pipe, stdout=pipe, env=environment)
        assert self.process.stdout is not None
        assert self.process.stdout.read(1) == b"x"
        self.pid = self.process.pid

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def export(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "brimful"), "export", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=PLAIN | variables, timeout=60
    )


@contextlib.contextmanager
def served(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server, and its address."""
    command = [str(ROOT / "brimful"), "export", "--listen", "127.0.0.1:0", *map(str, arguments)]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=PLAIN
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        found = re.search(r"http://\S+/metrics", line)
        assert found, line
        yield server, found[0]
    finally:
        server.kill()
        server.communicate()


def fetch(url: str, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
        return str(answer.read().decode())


def samples(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Name and labels to value, as the client library's parser reads them."""
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class WithProgram(unittest.TestCase):
    folder: Path
    program: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="brimful-export-"))
        source = cls.folder / "held.c"
        source.write_text(PROGRAM)
        cls.program = cls.folder / "held"
        subprocess.run(
            ["gcc", "-O1", "-fno-builtin", str(source), "-o", str(cls.program)], check=True
        )

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(cls.folder)


class Text(WithProgram):
    def test_says_what_the_process_holds(self) -> None:
        with Held(self.program) as held:
            done = export("--once", held.pid)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = samples(done.stdout)
        who = (("comm", "held"), ("pid", str(held.pid)))

        def of(name: str) -> float:
            return found[f"brimful_{name}"][who]

        parts = ("live", "free_in_slabs", "free_runs", "metadata")
        self.assertEqual(of("heap_resident_bytes"), sum(of(f"heap_{part}_bytes") for part in parts))
        self.assertGreaterEqual(of("heap_allocated_bytes"), HELD_OBJECTS * 1000 + 1000000)
        self.assertLess(of("heap_allocated_bytes"), HELD_OBJECTS * 1200 + 2000000)
        self.assertEqual(of("limit_bytes"), 1 << 30)
        self.assertGreaterEqual(of("mallocs_total"), 2 * HELD_OBJECTS)
        self.assertGreaterEqual(of("frees_total"), HELD_OBJECTS)
        self.assertGreater(of("process_resident_bytes"), of("heap_resident_bytes"))
        self.assertLess(abs(of("process_start_time_seconds") - time.time()), 60)
        by_class = found["brimful_class_live_objects"]
        self.assertGreaterEqual(by_class[(("class", "1024"), *who)], HELD_OBJECTS)
        self.assertIn((*who[:1], ("event", "refill_new"), *who[1:]), found["brimful_events_total"])
        self.assertEqual(found["brimful_export_processes"][()], 1)

    def test_names_are_as_prometheus_asks_for(self) -> None:
        from prometheus_client.parser import text_string_to_metric_families

        with Held(self.program) as held:
            text = export("--once", held.pid).stdout
        if shutil.which("promtool"):
            done = subprocess.run(
                ["promtool", "check", "metrics"], input=text, capture_output=True, text=True
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(done.stdout + done.stderr, "")
        for family in text_string_to_metric_families(text):
            self.assertRegex(family.name, r"^brimful_?[a-z_]*$")
            self.assertTrue(family.documentation, family.name)
            self.assertNotRegex(family.name, r"kilo|_ms|_ns|_kb|millis")
            if family.type == "gauge":
                self.assertFalse(family.name.endswith("_total"), family.name)

    def test_nobody_to_look_at_is_no_fault_and_a_dead_process_is(self) -> None:
        gone = subprocess.Popen(["true"])
        gone.wait()
        done = export("--once", gone.pid)
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(gone.pid), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(samples(done.stdout)["brimful_export_unreadable_processes"][()], 1)

    def test_wrong_words_are_named(self) -> None:
        for arguments, code, text in (
            (["--listen", "nonsense"], 2, "ADDRESS:PORT"),
            (["--listen", ":9470"], 2, "ADDRESS:PORT"),
            (["--listen", "127.0.0.1:99999"], 2, "ADDRESS:PORT"),
            (["zero"], 2, "zero"),
            (["0"], 2, "0"),
        ):
            done = export(*arguments)
            self.assertEqual(done.returncode, code, arguments)
            self.assertIn(text, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_what_is_missing_is_named(self) -> None:
        question = (
            f"import sys; sys.path.insert(0, {str(ROOT / 'cli')!r}); "
            "sys.modules['prometheus_client'] = None; from brimful.export import command; "
            "sys.exit(command.export('127.0.0.1:0', True, []))"
        )
        done = subprocess.run(
            [sys.executable, "-c", question], capture_output=True, text=True, env=PLAIN
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("python3-prometheus-client", done.stderr)
        done = export("--once", BRIMFUL_OBSERVER="/nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("BRIMFUL_OBSERVER", done.stderr)

    def test_counters_never_fall_but_for_a_new_process(self) -> None:
        from brimful.export.look import Look, Looker, Process

        looker = Looker("unused", [])

        def after(started: float, mallocs: int) -> int:
            process = Process(7, "name", started, {"calls": {"mallocs": mallocs}})
            looker._keep_rising(Look([process]))
            return int(process.seen["calls"]["mallocs"])

        self.assertEqual(
            [after(100, 50), after(100.01, 40), after(99.99, 60), after(500, 3)], [50, 50, 60, 3]
        )


class Server(WithProgram):
    def test_answers_and_sees_processes_come_and_go(self) -> None:
        with served() as (_, url):
            self.assertIn("metrics", fetch(url.removesuffix("metrics")))
            with self.assertRaises(urllib.error.HTTPError) as refused:
                fetch(url + "/nothing")
            self.assertEqual(refused.exception.code, 404)
            with Held(self.program) as held:
                who = (("comm", "held"), ("pid", str(held.pid)))
                with ThreadPoolExecutor(4) as pool:
                    texts = list(pool.map(fetch, [url] * 4))
                for text in texts:
                    self.assertIn(who, samples(text)["brimful_heap_live_bytes"])
                accept = "application/openmetrics-text; version=1.0.0"
                self.assertTrue(fetch(url, Accept=accept).endswith("# EOF\n"))
            time.sleep(1.1)  # those who ask within a second of each other get the same look
            self.assertNotIn(who, samples(fetch(url)).get("brimful_heap_live_bytes", {}))

    def test_ends_well_by_signals(self) -> None:
        for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
            with served(os.getpid()) as (server, _):
                server.send_signal(number)
                self.assertEqual(server.wait(20), code)
                assert server.stderr is not None
                self.assertEqual(server.stderr.read().strip(), "")

    def test_a_port_in_use_is_said(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            place = f"127.0.0.1:{taken.getsockname()[1]}"
            done = export("--listen", place)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"cannot listen on {place}", done.stderr)


def expressions() -> list[str]:
    """Every query of the dashboard, for all processes."""
    dashboard = json.loads(DASHBOARD.read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def filled_in(expression: str) -> str:
    return (
        expression.replace("$__rate_interval", "20s").replace("$comm", ".*").replace("$pid", ".*")
    )


class Dashboard(WithProgram):
    def test_every_metric_of_it_is_exported(self) -> None:
        with Held(self.program) as held:
            known = set(samples(export("--once", held.pid).stdout))
        dashboard = json.loads(DASHBOARD.read_text())
        asked = {name for text in expressions() for name in re.findall(r"brimful_[a-z_]+", text)}
        self.assertGreater(len(asked), 15)
        self.assertEqual(asked - known, set())
        variables = [
            v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"
        ]
        self.assertTrue(all("brimful_info" in query for query in variables))
        ids = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed")
class RealPrometheus(WithProgram):
    def answer(self, port: int, query: str) -> list[dict[str, Any]]:
        """What it answers, as soon as that is anything: under load a scrape may fail."""
        words = urllib.parse.urlencode({"query": query})
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                answer = json.loads(fetch(f"http://127.0.0.1:{port}/api/v1/query?{words}"))
            except (urllib.error.URLError, ConnectionError):
                answer = None  # it is not ready
            if answer is not None:
                self.assertEqual(answer["status"], "success", query)
                found: list[dict[str, Any]] = answer["data"]["result"]
                if found:
                    return found
            time.sleep(0.2)
        log = (self.folder / "prometheus.log").read_text()
        raise AssertionError(f"no answer to {query}: {log[-2000:]}")

    def test_scrapes_us_and_answers_every_query_of_the_dashboard(self) -> None:
        port = free_port()
        with Held(self.program) as held, served(held.pid) as (_, url):
            target = urllib.parse.urlsplit(url).netloc
            config = self.folder / "prometheus.yml"
            config.write_text(
                "global: {scrape_interval: 2s, scrape_timeout: 2s}\n"
                f"scrape_configs: [{{job_name: brimful, static_configs: [{{targets: ['{target}']}}]}}]\n"
            )
            with (self.folder / "prometheus.log").open("w") as output:
                prometheus = subprocess.Popen(
                    [
                        "prometheus",
                        f"--config.file={config}",
                        f"--storage.tsdb.path={self.folder}/data",
                        f"--web.listen-address=127.0.0.1:{port}",
                    ],
                    stdout=output,
                    stderr=output,
                )
            try:
                who = f'{{comm="held",pid="{held.pid}"}}'
                live = self.answer(port, f"brimful_heap_live_bytes{who}")
                self.assertGreaterEqual(float(live[0]["value"][1]), HELD_OBJECTS * 1000)
                for expression in expressions():
                    self.answer(port, filled_in(expression))
            finally:
                prometheus.terminate()
                prometheus.wait(30)


if __name__ == "__main__":
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        print("skip: python3-prometheus-client is not installed")
        sys.exit(SKIP)
    if not OBSERVER.exists():
        print(f"skip: no observer at {OBSERVER}")
        sys.exit(SKIP)
    if not shutil.which("prometheus"):
        print("without prometheus, which is not installed: only the text it would read")
    unittest.main()
