#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`prof PID` on redis, python3, java, node and postgres, attached after their start: functions by name.

A profile of each is read by the real `go tool pprof`. A program that is not installed is skipped.
Run by hand it prints what was found (`test_prof_real_long.py -v`).
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BRIMFUL = ROOT / "brimful"
LIBRARY = ROOT / "build" / "release" / "libbrimful.so"
OBSERVER = ROOT / "build" / "release" / "brimful-observer"

PYTHON = """
import json, time
def build(n):
    return [{"key": str(i), "text": "x" * 600} for i in range(n)]
def serve():
    while True:
        json.loads(json.dumps(build(300)))
serve()
"""
JAVA = """
import java.nio.ByteBuffer;
import java.util.zip.Deflater;
public class Squeezer {
  static int squeeze(byte[] in) {
    Deflater deflater = new Deflater();
    deflater.setInput(in);
    deflater.finish();
    int length = deflater.deflate(new byte[in.length * 2]);
    deflater.end();
    return length;
  }
  public static void main(String[] words) throws Exception {
    byte[] in = new byte[20000];
    for (long sum = 0;; Thread.sleep(2)) {
      for (int i = 0; i < 50; i++) sum += squeeze(in) + ByteBuffer.allocateDirect(20000).capacity();
    }
  }
}
"""
NODE = """
const zlib = require('zlib'); const keep = [];
function makeBuffers(n) { for (let i = 0; i < n; i++) keep[i % 100] = Buffer.allocUnsafeSlow(20000 + i); }
function compress() { return zlib.deflateSync(Buffer.alloc(20000, 'abc')); }
function serve() { makeBuffers(50); for (let i = 0; i < 20; i++) compress(); setTimeout(serve, 2); }
serve();
"""


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise unittest.SkipTest(f"{program} is not installed")


@unittest.skipUnless(OBSERVER.exists(), "brimful-observer is not built (libdw-dev, libiberty-dev)")
@unittest.skipUnless(LIBRARY.exists(), "the release library is not built")
class RealPrograms(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="brimful-real-"))
        self.folder.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def environment(self, library: bool = True) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "BRIMFUL_CONF")}
        return kept | ({"LD_PRELOAD": str(LIBRARY)} if library else {})

    @contextlib.contextmanager
    def started(self, *words: str, library: bool = True, **options: Any) -> Iterator[int]:
        log = (self.folder / "log.txt").open("ab")
        process = subprocess.Popen(
            words, env=self.environment(library), stdout=log, stderr=log, cwd=self.folder, **options
        )
        try:
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            log.close()

    def until(self, seconds: float, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() > deadline:
                self.fail((self.folder / "log.txt").read_text(errors="replace")[-2000:])
            time.sleep(0.1)

    def profile(self, process: int, expected: tuple[str, ...]) -> None:
        """Profiles it, finds the expected names in its stacks, and has go read the file."""
        out = self.folder / "heap.pb.gz"
        words = [str(BRIMFUL), "prof", str(process), "--seconds", "3", "--interval", "64k"]
        words += ["--view", "allocated", "--out", str(out), "--json"]
        result = subprocess.run(
            words, env=self.environment(False), capture_output=True, text=True, timeout=120
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        found = json.loads(result.stdout)
        names = {f["name"] for f in found["functions"]}
        if "-v" in sys.argv:
            print(
                f"\n{found['program']}: {found['samples']} samples, {found['bytes'] / 2**20:.1f} MiB"
            )
            for stack in found["stacks"][:3]:
                print(f"  {stack['bytes'] / 2**20:8.1f} MiB  {' < '.join(stack['functions'][:8])}")
        for name in expected:
            self.assertTrue(
                any(name in known for known in names), f"{name} is not in {sorted(names)}"
            )
        # Static functions of a stripped file have no names; who called them does.
        for stack in found["stacks"][:3]:
            named = [n for n in stack["functions"] if "+0x" not in n and not n.startswith("[")]
            self.assertGreaterEqual(2 * len(named), len(stack["functions"]), stack["functions"])
        self.check_with_go(out, max(found["functions"], key=lambda f: f["flat"])["name"])

    def check_with_go(self, profile: Path, name: str) -> None:
        go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
        if go is None:
            print("go is not installed: the profile is not read by `go tool pprof`")
            return
        result = subprocess.run(
            [
                go,
                "tool",
                "pprof",
                "-sample_index=alloc_space",
                "-top",
                "-nodecount=500",
                str(profile),
            ],
            env=self.environment(False),
            capture_output=True,
            text=True,
            timeout=400,  # go builds its pprof when it is asked for the first time
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Type: alloc_space", result.stdout)
        # It leaves out parameters and templates.
        self.assertIn(name.split("(")[0].split("<")[0], result.stdout)

    def test_redis(self) -> None:
        need("redis-server", "redis-cli", "redis-benchmark")
        socket = f"{self.folder}/s"
        with self.started(
            "redis-server", "--port", "0", "--unixsocket", socket, "--save", ""
        ) as server:
            self.until(20, lambda: os.path.exists(socket))
            load = ("redis-benchmark", "-s", socket, "-l", "-q", "-r", "100000", "-d", "300")
            with self.started(*load, "-t", "set,lpush", library=False):
                time.sleep(0.5)
                self.profile(
                    server, ("zmalloc", "setCommand", "readQueryFromClient", "aeMain", "main")
                )

    def test_python(self) -> None:
        (self.folder / "serve.py").write_text(PYTHON)
        with self.started("/usr/bin/python3", "serve.py") as process:
            time.sleep(1)
            names: tuple[str, ...] = ("PyList_Append", "_PyEval_EvalFrameDefault")
            if sys.version_info[:2] == (3, 11):
                names += ("JSONEncoder.iterencode",)  # a function of Python's own
            self.profile(process, names)

    def test_java(self) -> None:
        need("java", "javac")
        (self.folder / "Squeezer.java").write_text(JAVA)
        subprocess.run(["javac", "Squeezer.java"], cwd=self.folder, check=True, timeout=120)
        options = ("-XX:+PreserveFramePointer", "-Xmx200m")
        with self.started("java", *options, "Squeezer") as process:
            time.sleep(4)
            names: tuple[str, ...] = ("deflateInit2_", "Java_java_util_zip_Deflater_init")
            jcmd = shutil.which("jcmd")
            if jcmd is not None:
                done = subprocess.run(
                    [jcmd, str(process), "Compiler.perfmap"], capture_output=True, timeout=60
                )
                if done.returncode == 0:
                    self.addCleanup(Path(f"/tmp/perf-{process}.map").unlink, missing_ok=True)
                    names += ("Squeezer.squeeze",)
            self.profile(process, names)

    def test_node(self) -> None:
        need("node")
        (self.folder / "serve.js").write_text(NODE)
        with self.started("node", "--perf-basic-prof", "serve.js") as process:
            self.addCleanup(Path(f"/tmp/perf-{process}.map").unlink, missing_ok=True)
            time.sleep(2)
            self.profile(process, ("deflateInit2_", "serve", "node::"))

    def test_postgres(self) -> None:
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        folder = found[-1] if found else os.path.dirname(shutil.which("postgres") or "")
        if not folder or not os.path.exists(f"{folder}/initdb"):
            self.skipTest("initdb and postgres are not installed")
        need("psql")
        options: dict[str, Any] = {}
        if os.getuid() == 0:
            try:
                user = pwd.getpwnam("postgres")
            except KeyError:
                user = pwd.getpwnam("nobody")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        data, socket = f"{self.folder}/data", f"{self.folder}"
        subprocess.run(
            [f"{folder}/initdb", "-D", data, "-U", "tester", "--auth=trust", "--no-sync"],
            check=True,
            capture_output=True,
            timeout=120,
            env=self.environment(False),
            cwd=self.folder,
            **options,
        )
        server = (
            f"{folder}/postgres",
            "-D",
            data,
            "-k",
            socket,
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
        )
        query = ["psql", "-h", socket, "-U", "tester", "-d", "postgres", "-At"]
        with self.started(*server, **options):
            self.until(
                30,
                lambda: (
                    subprocess.run([*query, "-c", "SELECT 1"], capture_output=True).returncode == 0
                ),
            )
            work = (
                "SET application_name = 'profiled'; DO $$ BEGIN FOR i IN 1..100000 LOOP "
                "PERFORM count(*) FROM (SELECT md5(g::text) AS m "
                "FROM generate_series(1, 3000) AS g ORDER BY m) AS s; END LOOP; END $$"
            )
            with self.started(*query, "-c", work, library=False):
                find = "SELECT pid FROM pg_stat_activity WHERE application_name = 'profiled'"
                answer = ""
                for _ in range(100):
                    answer = subprocess.run(
                        [*query, "-c", find], capture_output=True, text=True
                    ).stdout
                    if answer.strip():
                        break
                    time.sleep(0.1)
                self.profile(int(answer), ("palloc", "pg_md5_hash", "ExecScan"))


if __name__ == "__main__":
    unittest.main()
