#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""All that is printed as JSON is as share/schema/brimful.schema.json says, which describes each field.

Environment: BRIMFUL_BUILD, the folder of the build.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BRIMFUL_BUILD", ROOT / "build/release")).resolve()
LIBRARY = BUILD / "libbrimful.so"
OBSERVER = BUILD / "brimful-observer"
SCHEMA = json.loads((ROOT / "share/schema/brimful.schema.json").read_text())
SKIP = 77
PLAIN = os.environ | {"BRIMFUL_OBSERVER": str(OBSERVER)}
PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void* held[100];
static void* churn(void* unused) {
  for (int i = 0; i < 20000; i++) free(malloc(64 + i % 4000));
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, churn, NULL);
  pthread_join(thread, NULL);
  for (int i = 0; i < 100; i++) held[i] = malloc(5000);
  void* volatile lost = NULL;
  for (int i = 0; i < 50; i++) lost = malloc(100);
  lost = NULL;
  static void *large, *huge;
  large = malloc(200000);
  huge = malloc((size_t)6 << 30);
  free(malloc(1 << 20));
  printf("%p %p %p %p\\n", held[3], large, huge, (void*)main);
  fflush(stdout);
  char byte;
  return read(0, &byte, 1) < 0;
}
"""


def described(name: str) -> dict[str, Any]:
    """The part of the schema that is about one form of output."""
    part = {key: value for key, value in SCHEMA.items() if key != "anyOf"}
    return part | {"$ref": f"#/$defs/{name}"}


def undescribed(schema: dict[str, Any], value: Any, path: str) -> list[str]:
    """Fields of a value that the schema does not name."""
    while "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if isinstance(value, list):
        return [f for v in value for f in undescribed(schema["items"], v, path + "[]")]
    if not isinstance(value, dict):
        return []
    if "patternProperties" in schema:
        (part,) = schema["patternProperties"].values()
        return [f for v in value.values() for f in undescribed(part, v, path + ".*")]
    if "properties" not in schema:
        return []
    known = schema["properties"]
    faults = [f"{path}.{key}" for key in value if key not in known]
    for key in value.keys() & known.keys():
        faults += undescribed(known[key], value[key], f"{path}.{key}")
    return faults


class Schema(unittest.TestCase):
    folder: Path
    process: subprocess.Popen[str]
    addresses: list[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="brimful-schema-"))
        source = cls.folder / "program.c"
        source.write_text(PROGRAM)
        program = cls.folder / "program"
        command = ["gcc", "-O1", "-fno-builtin", "-pthread", str(source), "-o", str(program)]
        subprocess.run(command, check=True)
        environment = os.environ | {
            "LD_PRELOAD": str(LIBRARY),
            "BRIMFUL_CONF": "prof:4K,print_stats:json",
        }
        pipe = subprocess.PIPE
        cls.process = subprocess.Popen(
            [program], stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment
        )
        assert cls.process.stdout is not None
        cls.addresses = cls.process.stdout.readline().split()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.process.kill()
        cls.process.communicate()
        shutil.rmtree(cls.folder)

    def fits(self, name: str, text: str) -> dict[str, Any]:
        """Checks an output against its part of the schema, and against the whole."""
        from jsonschema import Draft202012Validator

        value: dict[str, Any] = json.loads(text)
        for schema in (described(name), SCHEMA):
            faults = [
                f"{list(error.absolute_path)}: {error.message[:200]}"
                for error in Draft202012Validator(schema).iter_errors(value)
            ]
            self.assertEqual(faults, [], name)
        self.assertEqual(undescribed(described(name), value, name), [])
        return value

    def run_tool(self, *arguments: object) -> str:
        done = subprocess.run(
            list(map(str, arguments)), capture_output=True, text=True, env=PLAIN, timeout=60
        )
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout

    def brimful(self, *arguments: object) -> str:
        return self.run_tool(ROOT / "brimful", *arguments)

    def test_the_schema_is_one_and_refuses_what_is_none(self) -> None:
        from jsonschema import Draft202012Validator

        Draft202012Validator.check_schema(SCHEMA)
        whole = Draft202012Validator(SCHEMA)
        self.assertFalse(whole.is_valid({}))
        self.assertFalse(
            whole.is_valid({"schema": "brimful-stats-2", "processes": [], "errors": []})
        )
        self.assertTrue(
            whole.is_valid({"schema": "brimful-stats-1", "processes": [], "errors": []})
        )

    def test_statistics_of_processes(self) -> None:
        self.fits("stats", self.run_tool(OBSERVER, "stats", self.process.pid))
        self.fits("stats", self.run_tool(OBSERVER, "stats", "--light", self.process.pid))
        self.fits("stats", self.brimful("top", "--once", "--json", self.process.pid))

    def test_a_heap_and_addresses_in_it(self) -> None:
        seen = self.fits("inspect", self.brimful("inspect", "--json", self.process.pid))
        for address in (*self.addresses, "0x10", hex(seen["hugepages"][0]["address"])):
            self.fits(
                "address",
                self.brimful("inspect", "--json", "--address", address, self.process.pid),
            )

    def test_leaks_and_their_differences(self) -> None:
        one, two = self.folder / "one.json", self.folder / "two.json"
        one.write_text(self.brimful("leaks", "--json", self.process.pid))
        report = self.fits("leaks", one.read_text())
        self.assertGreaterEqual(report["lost"]["count"], 40)
        report["groups"] = report["groups"][1:]
        two.write_text(json.dumps(report))
        changes = self.fits("leaks_diff", self.brimful("leaks", "diff", "--json", one, two))
        self.assertTrue(changes["changes"])

    def test_profiles(self) -> None:
        for view in ("in-use", "allocated", "lifetimes"):
            options = ("--seconds", "0.2", "--json", "--view", view)
            self.fits("prof", self.brimful("prof", self.process.pid, *options))

    def test_statistics_that_the_library_prints(self) -> None:
        command = f"{LIBRARY!s}"
        done = subprocess.run(
            ["/usr/bin/python3", "-c", "x = [bytearray(9999) for i in range(99)]"],
            env=os.environ | {"LD_PRELOAD": command, "BRIMFUL_CONF": "print_stats:json"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.fits("statistics", done.stderr.removeprefix("brimful-stats: "))


if __name__ == "__main__":
    try:
        import jsonschema  # noqa: F401
    except ImportError:
        print("skip: python3-jsonschema is not installed")
        sys.exit(SKIP)
    if not OBSERVER.exists():
        print(f"skip: no observer at {OBSERVER}")
        sys.exit(SKIP)
    unittest.main()
