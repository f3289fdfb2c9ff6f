#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A rival that cannot be measured is a declared entry with its reason, and stops no other.

Real compilers and the real probe run here on allocators of a few lines; nothing is fetched. The
small allocators hand everything on to glibc, each with the fault that its test needs.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from rivals import build, catalog, probing, recipes, sources  # noqa: E402
from rivals.catalog import Crate, Debian, Nowhere, Rival, Sdist, Sources  # noqa: E402

ORIGIN = Crate("some-crate", "1.0.0", "0" * 64)
ALLOCATOR = r"""
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
void* __libc_malloc(size_t); void __libc_free(void*); void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t); void* __libc_memalign(size_t, size_t);
void* malloc(size_t n) { return MALLOC(n); }
void free(void* p) { __libc_free(p); }
void* calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void* realloc(void* p, size_t n) { return __libc_realloc(p, n); }
void* aligned_alloc(size_t a, size_t n) { return a > LARGEST ? NULL : __libc_memalign(a, n); }
int posix_memalign(void** p, size_t a, size_t n) {
  *p = a > LARGEST ? NULL : __libc_memalign(a, n);
  return *p ? 0 : ENOMEM;
}
size_t malloc_usable_size(void* p) { return p ? ((size_t*)p)[-1] / 16 * 16 - 8 : 0; }
#ifdef PER_CPU
_Bool MallocExtension_Internal_GetPerCpuCachesActive(void) { return PER_CPU; }
#endif
"""


def recipe(*defines: str, source: str = ALLOCATOR) -> catalog.Recipe:
    """A recipe that compiles `source` with these macros."""

    def make(_: Path, library: Path, shell: recipes.Shell) -> None:
        text = shell.work / "allocator.c"
        text.write_text(source)
        defaults = ["-DMALLOC=__libc_malloc", "-DLARGEST=((size_t)1<<40)"]
        kept = [word for word in defaults if not any(word[:9] == given[:9] for given in defines)]
        shell.run(["gcc", "-O1", "-w", "-fPIC", "-shared", *kept, *defines, "-o", library, text])

    return make


def no_fetch(_: Sources, folder: Path, shell: recipes.Shell) -> Path:
    return folder


GOOD = Rival("good", "Good", ORIGIN, "1.0", recipe())


class Workbench(unittest.TestCase):
    """A temporary folder to build in, and the command to run on it."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name) / "rivals"
        self.said = ""

    def run_build(
        self, *rivals: Rival, arguments: tuple[str, ...] = (), fetch: build.Fetch = no_fetch
    ) -> int:
        """One run of the command on a table of `rivals`, in a fresh workshop."""
        workshop = build.Workshop(self.folder, fetch, libraries=self.folder / "debian")
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                return build.main(arguments, workshop, rivals)
        finally:
            self.said = output.getvalue()

    def entry(self, name: str) -> dict[str, Any]:
        """The manifest's entry of that name; there must be exactly one."""
        entries = json.loads((self.folder / "manifest.json").read_text())
        (found,) = [entry for entry in entries if entry["name"] == name]
        return dict(found)


@unittest.skipUnless(shutil.which("gcc"), "gcc is not installed")
class TheManifest(Workbench):
    def test_a_sound_library_is_listed_with_its_checksum(self) -> None:
        self.assertEqual(self.run_build(GOOD), 0, self.said)
        entry = self.entry("good")
        self.assertIsNone(entry["missing"])
        self.assertEqual(entry["library"], str(self.folder / "libgood.so"))
        self.assertEqual(entry["sha256"], build.sha256(self.folder / "libgood.so"))
        self.assertEqual(entry["origin"], "crate some-crate 1.0.0")
        self.assertIn("GCC", entry["compiler"])
        self.assertIn(entry["sha256"][:12], self.said)

    def test_a_missing_package_is_named_and_the_others_are_built(self) -> None:
        absent = Rival("absent", "Absent", Debian("libabsent1", "*/libabsent.so.1"))
        self.assertEqual(self.run_build(absent, GOOD), 1)
        self.assertEqual(
            self.entry("absent")["missing"], "Debian package libabsent1 is not installed"
        )
        self.assertIsNone(self.entry("absent")["library"])
        self.assertIsNone(self.entry("good")["missing"])

    def test_a_debian_library_is_the_newest_that_matches(self) -> None:
        self.assertEqual(self.run_build(GOOD), 0, self.said)
        for version in ("9", "22"):
            target = self.folder / "debian" / f"llvm-{version}" / "liballocator.so"
            target.parent.mkdir(parents=True)
            shutil.copyfile(self.folder / "libgood.so", target)
        rival = Rival("deb", "Deb", Debian("libdeb", "llvm-*/liballocator.so"))
        self.assertEqual(self.run_build(rival), 0, self.said)
        self.assertIn("llvm-22", self.entry("deb")["library"])

    def test_a_failing_build_leaves_its_reason_and_stops_no_other(self) -> None:
        broken = Rival("broken", "Broken", ORIGIN, "1", recipe(source="#error no such luck\n"))
        self.assertEqual(self.run_build(broken, GOOD), 1)
        self.assertIn("no such luck", self.entry("broken")["missing"])
        self.assertIsNone(self.entry("broken")["sha256"])
        self.assertIsNone(self.entry("good")["missing"])
        self.assertIn("no such luck", (self.folder / "logs" / "broken.log").read_text())

    def test_a_failing_fetch_leaves_its_reason(self) -> None:
        def offline(origin: Sources, folder: Path, shell: recipes.Shell) -> Path:
            raise recipes.BuildError("cargo failed: no network")

        self.assertEqual(self.run_build(GOOD, fetch=offline), 1)
        self.assertEqual(self.entry("good")["missing"], "cargo failed: no network")

    def test_a_recipe_that_breaks_in_an_unforeseen_way_stops_no_other(self) -> None:
        def careless(_: Path, library: Path, shell: recipes.Shell) -> None:
            shutil.copyfile(shell.work / "never-made.so", library)

        self.assertEqual(self.run_build(Rival("c", "C", ORIGIN, "1", careless), GOOD), 1)
        self.assertRegex(self.entry("c")["missing"], "FileNotFoundError: .*never-made.so")
        self.assertIsNone(self.entry("good")["missing"])

    def test_a_library_that_does_not_serve_malloc_is_refused(self) -> None:
        idle = Rival("idle", "Idle", ORIGIN, "1", recipe(source="int nothing;\n"))
        self.assertEqual(self.run_build(idle), 1)
        self.assertIn("does not serve malloc", self.entry("idle")["missing"])
        self.assertIsNone(self.entry("idle")["library"])

    def test_a_library_that_serves_only_some_calls_is_refused(self) -> None:
        text = ALLOCATOR.replace("void* calloc(", "void* other(")
        partial = Rival("partial", "Partial", ORIGIN, "1", recipe(source=text))
        self.assertEqual(self.run_build(partial), 1)
        self.assertEqual(self.entry("partial")["missing"], "the library does not serve calloc")

    def test_a_file_that_cannot_be_preloaded_is_refused(self) -> None:
        def text_file(_: Path, library: Path, shell: recipes.Shell) -> None:
            library.write_text("no library\n")

        self.assertEqual(self.run_build(Rival("text", "Text", ORIGIN, "1", text_file)), 1)
        self.assertIn("does not serve malloc", self.entry("text")["missing"])

    def test_an_allocator_that_misaligns_is_refused(self) -> None:
        shifted = "-DMALLOC(n)=((char*)__libc_malloc((n)+8)+8)"
        text = ALLOCATOR.replace("__libc_free(p);", "")
        odd = Rival("odd", "Odd", ORIGIN, "1", recipe(shifted, source=text))
        self.assertEqual(self.run_build(odd), 1)
        self.assertIn("malloc misaligned", self.entry("odd")["missing"])

    def test_an_allocator_whose_blocks_overlap_is_refused(self) -> None:
        text = ALLOCATOR.replace("return MALLOC(n);", "static char all[1 << 20]; return all;")
        text = text.replace("__libc_free(p);", "")
        same = Rival("same", "Same", ORIGIN, "1", recipe(source=text))
        self.assertEqual(self.run_build(same), 1)
        self.assertIn("a block lost its contents", self.entry("same")["missing"])

    def test_a_crash_is_a_reason_that_names_the_stage(self) -> None:
        text = ALLOCATOR.replace("return __libc_realloc(p, n);", "__builtin_trap();")
        crashing = Rival("crash", "Crash", ORIGIN, "1", recipe(source=text))
        self.assertEqual(self.run_build(crashing), 1)
        self.assertRegex(self.entry("crash")["missing"], "signal 4 while checking realloc")

    def test_a_limit_of_alignment_is_told_but_does_not_disqualify(self) -> None:
        limited = Rival("limited", "Limited", ORIGIN, "1", recipe("-DLARGEST=32768"))
        self.assertEqual(self.run_build(limited), 0, self.said)
        (limit,) = self.entry("limited")["limits"]
        self.assertIn("65536", limit)

    def test_the_front_end_that_ran_is_recorded(self) -> None:
        rival = Rival("cpu", "Cpu", ORIGIN, "1", recipe("-DPER_CPU=1"), mode="per-CPU caches")
        self.assertEqual(self.run_build(rival), 0, self.said)
        self.assertEqual(self.entry("cpu")["mode"], "per-CPU caches")

    def test_another_front_end_than_promised_is_refused(self) -> None:
        rival = Rival("cpu", "Cpu", ORIGIN, "1", recipe("-DPER_CPU=0"), mode="per-CPU caches")
        self.assertEqual(self.run_build(rival), 1)
        self.assertEqual(
            self.entry("cpu")["missing"], "it runs with per-thread caches, not per-CPU caches"
        )
        self.assertEqual(self.entry("cpu")["mode"], "per-thread caches")

    def test_a_known_flaw_is_declared_without_failing_the_run(self) -> None:
        text = ALLOCATOR.replace("return __libc_realloc(p, n);", "__builtin_trap();")
        flawed = Rival("f", "F", ORIGIN, "1", recipe(source=text), flaw="its realloc aborts")
        self.assertEqual(self.run_build(flawed), 0, self.said)
        self.assertRegex(self.entry("f")["missing"], "^its realloc aborts; .*signal 4")

    def test_one_that_is_not_to_be_had_is_declared_without_failing_the_run(self) -> None:
        self.assertEqual(self.run_build(Rival("gone", "Gone", Nowhere("nobody has it"))), 0)
        self.assertEqual(self.entry("gone")["missing"], "nobody has it")

    def test_configurations_share_one_build_and_keep_their_settings(self) -> None:
        compiled = []
        compile_good = recipe("-DPER_CPU=1")

        def counting(source: Path, library: Path, shell: recipes.Shell) -> None:
            compiled.append(library.name)
            compile_good(source, library, shell)

        first = Rival("a", "A", ORIGIN, "1", counting, library="both", settings={"X": "1"})
        second = Rival("b", "B", ORIGIN, "1", counting, library="both")
        self.assertEqual(self.run_build(first, second), 0, self.said)
        self.assertEqual(compiled, ["libboth.so"])
        self.assertEqual(self.entry("a")["settings"], {"X": "1"})
        self.assertEqual(self.entry("a")["library"], self.entry("b")["library"])


@unittest.skipUnless(shutil.which("gcc"), "gcc is not installed")
class RunningAgain(Workbench):
    def counted(self) -> tuple[Rival, list[str]]:
        compiled: list[str] = []
        compile_good = recipe()

        def counting(source: Path, library: Path, shell: recipes.Shell) -> None:
            compiled.append(library.name)
            compile_good(source, library, shell)

        return Rival("good", "Good", ORIGIN, "1", counting), compiled

    def test_what_is_up_to_date_is_not_built_again(self) -> None:
        rival, compiled = self.counted()
        for _ in range(2):
            self.assertEqual(self.run_build(rival), 0, self.said)
        self.assertEqual(len(compiled), 1)
        self.assertEqual(self.run_build(rival, arguments=("--force",)), 0)
        self.assertEqual(len(compiled), 2)

    def test_a_library_that_was_changed_is_built_again(self) -> None:
        rival, compiled = self.counted()
        self.run_build(rival)
        with (self.folder / "libgood.so").open("ab") as library:
            library.write(b"x")
        self.assertEqual(self.run_build(rival), 0, self.said)
        self.assertEqual(len(compiled), 2)
        self.assertEqual(self.entry("good")["sha256"], build.sha256(self.folder / "libgood.so"))

    def test_building_some_keeps_the_others_entries(self) -> None:
        other = Rival("other", "Other", ORIGIN, "1", recipe())
        third = Rival("third", "Third", ORIGIN, "1", recipe())
        self.run_build(GOOD, other, third, arguments=("good",))
        self.assertIn("not built yet", self.entry("other")["missing"])
        self.run_build(GOOD, other, third, arguments=("other",))
        self.assertIsNone(self.entry("good")["missing"])
        self.assertIsNone(self.entry("other")["missing"])
        self.assertIn("not built yet", self.entry("third")["missing"])

    def test_a_name_that_is_not_in_the_table_is_one_line_and_exit_code_two(self) -> None:
        with self.assertRaises(SystemExit) as caught:
            self.run_build(GOOD, arguments=("nobody",))
        self.assertEqual(caught.exception.code, 2)
        self.assertEqual(self.said, "build.py: no rival nobody (--list shows them)\n")

    def test_the_list_builds_nothing(self) -> None:
        self.assertEqual(self.run_build(GOOD, arguments=("--list",)), 0)
        self.assertIn("crate some-crate 1.0.0", self.said)
        self.assertFalse(self.folder.exists())


class FetchedSources(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.shell = recipes.Shell(self.folder / "log", self.folder)

    def unpack(self, folder: str, checksum: str) -> Path:
        """As cargo leaves a crate."""
        target = self.folder / "some-crate" / "vendor" / folder
        target.mkdir(parents=True)
        (target / ".cargo-checksum.json").write_text(json.dumps({"package": checksum}))
        return target

    def test_a_crate_that_is_there_is_not_fetched_again(self) -> None:
        target = self.unpack("some-crate-1.0.0+meta", ORIGIN.sha256)
        self.assertEqual(sources.fetch(ORIGIN, self.folder, self.shell), target)
        self.assertEqual(self.shell.log.read_text(), "")

    def test_another_checksum_than_the_tables_is_refused(self) -> None:
        self.unpack("some-crate-1.0.0", "f" * 64)
        with self.assertRaisesRegex(recipes.BuildError, "another checksum"):
            sources.fetch(ORIGIN, self.folder, self.shell)

    def test_an_archive_with_another_checksum_is_refused(self) -> None:
        sdist = Sdist("some-package", "1.0", "0" * 64)
        (self.folder / "some-package").mkdir()
        (self.folder / "some-package" / "some_package-1.0.tar.gz").write_bytes(b"other")
        with self.assertRaisesRegex(recipes.BuildError, "another checksum"):
            sources.fetch(sdist, self.folder, self.shell)


class TheTable(unittest.TestCase):
    def test_names_are_unique_and_fit_for_file_names(self) -> None:
        names = [rival.name for rival in catalog.RIVALS]
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertRegex(name, "^[a-z0-9-]+$")

    def test_what_has_sources_has_a_recipe_and_a_version(self) -> None:
        for rival in catalog.RIVALS:
            has_sources = isinstance(rival.origin, Crate | Sdist)
            self.assertEqual(rival.recipe is not None, has_sources, rival.name)
            self.assertEqual(bool(rival.version), has_sources, rival.name)

    def test_rivals_that_share_a_build_have_one_origin_and_recipe(self) -> None:
        made: dict[str, Callable[..., None] | None] = {}
        for rival in catalog.RIVALS:
            self.assertEqual(made.setdefault(rival.build_name(), rival.recipe), rival.recipe)


class TheFirstError(unittest.TestCase):
    def test_is_the_line_that_says_error(self) -> None:
        output = "cc -c a.c\na.c:1:2: error: no\nmake: *** [a.o] Error 1\n"
        self.assertEqual(recipes.first_error(output), "a.c:1:2: error: no")

    def test_is_the_last_line_if_none_says_so(self) -> None:
        self.assertEqual(recipes.first_error("one\ntwo\n"), "two")

    def test_exists_even_without_output(self) -> None:
        self.assertEqual(recipes.first_error(""), "it printed nothing")


class TheVerdict(unittest.TestCase):
    def test_a_path_through_a_link_is_the_same_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            real, link = Path(folder) / "lib.so.1", Path(folder) / "lib.so"
            real.touch()
            link.symlink_to(real)
            said = [f"serves malloc {real}", "sound"]
            self.assertEqual(probing.judge(link, "", 0, said, "").fault, "")

    def test_silence_is_no_proof(self) -> None:
        self.assertIn("does not serve", probing.judge(Path("/x.so"), "", 0, [], "").fault)


if __name__ == "__main__":
    unittest.main()
