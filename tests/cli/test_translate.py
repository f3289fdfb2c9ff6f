#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`brimful translate`: each setting's counterpart is one that the library takes, and does the same; of
those that have none, what they are set for is seen to hold without them.

    tests/cli/test_translate.py write    puts the table of rules into docs/guide/translate.md

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
LAUNCHER = ROOT / "brimful"
PAGE = ROOT / "docs/guide/translate.md"
SKIP = 77
PLAIN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("LD_", "BRIMFUL_", "MALLOC_", "MIMALLOC_", "TCMALLOC_"))
}

sys.path.insert(0, str(ROOT / "cli"))
from brimful.translate import rules  # noqa: E402

# A value for each setting that has a counterpart, and what the library must have then; choices are numbered
# as in docs/guide/options.md.
EXAMPLES: dict[str, tuple[str, dict[str, int]]] = {
    "MALLOC_TRIM_THRESHOLD_": ("0", {"purge_delay_ms": 0}),
    "MALLOC_CHECK_": ("3", {"tier": 1}),
    "glibc.malloc.hugetlb": ("1", {"thp": 1}),
    "percpu_arena": ("disabled", {"front_end": 2}),
    "dirty_decay_ms": ("5000", {"purge_delay_ms": 5000}),
    "muzzy_decay_ms": ("700", {"purge": 1, "muzzy_delay_ms": 700}),
    "background_thread": ("true", {"background_thread": 1}),
    "thp": ("never", {"thp": 2}),
    "tcache": ("false", {"cache": 2}),
    "prof": ("true", {"prof": 512 << 10}),
    "lg_prof_sample": ("17", {"prof": 1 << 17}),
    "prof_prefix": ("FOLDER/heap", {"prof": 512 << 10}),
    "prof_leak": ("true", {"leaks": 1}),
    "stats_print": ("true", {"print_stats": 1}),
    "xmalloc": ("true", {"on_exhaustion": 3}),
    "TCMALLOC_RELEASE_RATE": ("0", {"purge_delay_ms": -1}),
    "TCMALLOC_AGGRESSIVE_DECOMMIT": ("1", {"purge_delay_ms": 0}),
    "TCMALLOC_SAMPLE_PARAMETER": ("524288", {"prof": 524288}),
    "TCMALLOC_HEAP_LIMIT_MB": ("64", {"limit": 64 << 20}),
    "TCMALLOC_MEMFS_MALLOC_PATH": ("/mnt", {"hugetlb": 1}),
    "HEAPPROFILE": ("FOLDER/heap", {"prof": 512 << 10}),
    "HEAPCHECK": ("normal", {"leaks": 1}),
    "MIMALLOC_PURGE_DELAY": ("10", {"purge_delay_ms": 10}),
    "MIMALLOC_PURGE_DECOMMITS": ("0", {"purge": 1}),
    "MIMALLOC_ALLOW_LARGE_OS_PAGES": ("1", {"thp": 1}),
    "MIMALLOC_RESERVE_HUGE_OS_PAGES": ("4", {"hugetlb": 2}),
    "MIMALLOC_RESERVE_OS_MEMORY": ("1048576", {"reserve": 1 << 30}),
    "MIMALLOC_SHOW_STATS": ("1", {"print_stats": 1}),
    "MIMALLOC_VERBOSE": ("1", {"verbose": 1}),
    "MIMALLOC_GUARDED_SAMPLE_RATE": ("4000", {"guards": 4000}),
}
# options NAME…: prints those that are in force. Else what settings without a counterpart are about: how much
# memory stays after 32 threads and large blocks, with `mallopt` after the answers of mallopt().
PROGRAM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long resident_kib(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  fscanf(file, "%*s %ld", &pages);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}
static void* churn(void* bytes) {
  enum { kObjects = 20000 };
  void** objects = calloc(kObjects, sizeof *objects);
  for (int i = 0; i < kObjects; i++) objects[i] = memset(malloc((size_t)bytes), 1, (size_t)bytes);
  for (int i = 0; i < kObjects; i++) free(objects[i]);
  free(objects);
  return NULL;
}
static int print_options(char** names) {
  int (*get)(const char*, void*, size_t*) = dlsym(RTLD_DEFAULT, "brimful_get");
  for (; *names != NULL; names++) {
    char name[64];
    long value = 0;
    size_t size = sizeof value;
    snprintf(name, sizeof name, "brimful.%s", *names);
    if (get(name, &value, &size) != 0) return 1;
    printf("%ld\\n", value);
  }
  return 0;
}
int main(int count, char** arguments) {
  if (count > 1 && strcmp(arguments[1], "options") == 0) return print_options(arguments + 2);
  if (count > 1 && strcmp(arguments[1], "mallopt") == 0) {
    const int known[] = {M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX, M_CHECK_ACTION,
                         M_PERTURB, M_ARENA_TEST,     M_ARENA_MAX};
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++) printf("%d ", mallopt(known[i], 1));
    printf("%d %d\\n", mallopt(M_TRIM_THRESHOLD, 0), mallopt(12345, 1));
  }
  const long before = resident_kib();
  void* large[8];
  for (int i = 0; i < 8; i++) large[i] = memset(malloc(4 << 20), 1, 4 << 20);
  for (int i = 0; i < 8; i++) free(large[i]);
  pthread_t threads[32];
  for (int i = 0; i < 32; i++) pthread_create(&threads[i], NULL, churn, (void*)(long)(16 + 8 * i));
  for (int i = 0; i < 32; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 100; i++) {
    free(malloc(100));
    usleep(1000);
  }
  printf("%ld\\n", resident_kib() - before);
  return 0;
}
"""


def table() -> str:
    """The rules as the page shows them."""
    lines = []
    for family in dict.fromkeys(rule.family for rule in rules.RULES):
        lines += ["", f"**{family}**", "", "| setting | here | why |", "|---|---|---|"]
        for rule in rules.RULES:
            if rule.family == family:
                lines.append(f"| `{rule.name}` | {rule.options or 'nothing'} | {rule.why} |")
    return "\n".join(lines) + "\n"


def page_with(text: str) -> str:
    """The page with that table in it."""
    begin, end = "test_translate.py write -->\n", "<!-- end of rules -->"
    page = PAGE.read_text()
    return page[: page.index(begin) + len(begin)] + text + "\n" + page[page.index(end) :]


def translate(
    *settings: str, code: int = 0, environment: dict[str, str] | None = None
) -> dict[str, Any]:
    """What `brimful translate --json` says."""
    result = subprocess.run(
        [LAUNCHER, "translate", "--json", *settings],
        env=PLAIN | (environment or {}),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == code, result.stdout + result.stderr
    found: dict[str, Any] = json.loads(result.stdout or "{}")
    return found


class Rules(unittest.TestCase):
    """The table by itself."""

    def test_the_page_has_the_rules(self) -> None:
        self.assertEqual(PAGE.read_text(), page_with(table()), f"{__file__} write")

    def test_each_rule_that_has_a_counterpart_has_an_example(self) -> None:
        self.assertEqual(
            [rule.name for rule in rules.RULES if rule.options is not None], list(EXAMPLES)
        )

    def test_values_that_mean_nothing(self) -> None:
        for setting in ("dirty_decay_ms=soon", "prof=maybe", "thp=sometimes", "nonsense=1"):
            found = translate(setting, code=1)
            self.assertFalse(found["settings"][0]["is_known"])

    def test_lists_parameters_and_the_environment(self) -> None:
        found = translate("MALLOC_CONF=narenas:2,dirty_decay_ms:1", "M_TRIM_THRESHOLD=-1")
        self.assertEqual(found["conf"], "purge_delay_ms:-1")
        found = translate("GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.pthread.rseq=0")
        self.assertEqual([one["setting"] for one in found["settings"]], ["glibc.malloc.arena_max"])
        found = translate(environment={"MIMALLOC_VERBOSE": "1", "MALLOC_ARENA_MAX": "2"})
        self.assertEqual(found["conf"], "verbose:1")
        self.assertEqual(translate(code=2), {})

    def test_what_it_says_is_as_the_schema_says(self) -> None:
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is missing")
        schema = json.loads((ROOT / "share/schema/brimful.schema.json").read_text())
        part = {key: value for key, value in schema.items() if key != "anyOf"}
        jsonschema.validate(translate("narenas=1"), part | {"$ref": "#/$defs/translate"})


class Effects(unittest.TestCase):
    """What the library does with the counterparts, and without them."""

    folder: Path
    program: Path

    @classmethod
    def setUpClass(cls) -> None:
        if not LIBRARY.exists():
            raise unittest.SkipTest(f"{LIBRARY} is not built")
        cls.folder = Path(tempfile.mkdtemp(prefix="brimful-translate-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        source, cls.program = cls.folder / "program.c", cls.folder / "program"
        source.write_text(PROGRAM)
        command = [
            "gcc",
            "-O1",
            "-w",
            "-fno-builtin",
            "-o",
            str(cls.program),
            str(source),
            "-pthread",
        ]
        subprocess.run(command, check=True)

    def run_program(self, *words: str, conf: str = "") -> subprocess.CompletedProcess[str]:
        variables = PLAIN | {"LD_PRELOAD": str(LIBRARY), "BRIMFUL_CONF": conf}
        command = [str(self.program), *words]
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)

    def test_the_library_has_what_the_setting_asks_for(self) -> None:
        for name, (value, wanted) in EXAMPLES.items():
            (answer,) = rules.translate(name, value.replace("FOLDER", str(self.folder)))
            done = self.run_program("options", *wanted, conf=answer.options)
            with self.subTest(name):
                self.assertNotRegex(done.stderr, r"unknown option|can't be")
                self.assertEqual([int(line) for line in done.stdout.split()], [*wanted.values()])

    def test_a_profile_is_written_where_the_prefix_says(self) -> None:
        (answer,) = rules.translate("HEAPPROFILE", str(self.folder / "heap"))
        self.run_program(conf=answer.options + ",prof:1K")
        self.assertEqual(len(list(self.folder.glob("heap.*"))), 1)

    def test_32_threads_and_large_blocks_leave_nothing_behind(self) -> None:
        """What arenas, thresholds and caches of threads are bounded for."""
        done = self.run_program(conf="purge_delay_ms:10,print_stats:json")
        self.assertLess(int(done.stdout), 12 << 10)
        found = json.loads(done.stderr.removeprefix("brimful-stats: "))
        if found["front_end"] == "percpu":
            self.assertLessEqual(found["contexts"], os.cpu_count() or 1)

    def test_mallopt_does_what_the_page_says(self) -> None:
        done = self.run_program("mallopt", conf="purge_delay_ms:-1")
        accepted, kib = done.stdout.splitlines()
        self.assertEqual(accepted, "1 1 1 1 1 1 1 1 0")
        kept = int(self.run_program(conf="purge_delay_ms:-1").stdout)
        self.assertLess(int(kib), kept // 2)


if __name__ == "__main__":
    if sys.argv[1:] == ["write"]:
        PAGE.write_text(page_with(table()))
        sys.exit(0)
    unittest.main()
