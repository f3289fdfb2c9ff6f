# SPDX-License-Identifier: MIT
"""How each rival's sources become one preloadable library.

Where the authors' own build can run on what the package carries, it runs unchanged (CMake, make,
configure); where it cannot, the flags are those of the authors' release build. Two things are the
same for all, because they are about where the program runs and not about the allocator: nothing is
compiled for this machine's CPU only (no -march=native), and the caller's CFLAGS and its like do not
reach the compilers. The C compiler is gcc except where the authors recommend or default to clang.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

JOBS = str(os.cpu_count() or 1)
STEP_SECONDS = 1200
# What a caller's environment may hold that would change how a library is built.
FOREIGN = {
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "LIBS",
    "LD_PRELOAD",
    "VARIANT",
} | {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MALLOC_CONF", "GLIBC_TUNABLES"}


class BuildError(Exception):
    """A rival cannot be built; the message says why in one sentence."""


class Shell:
    """Runs the steps of one build; everything they print goes to the build's log."""

    def __init__(self, log: Path, work: Path) -> None:
        self.log = log
        self.work = work  # an empty folder that the build may fill
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")

    def run(
        self,
        command: Sequence[str | Path],
        cwd: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Run one step at low priority; BuildError if it cannot start, fails or never ends."""
        line = [str(word) for word in command]
        kept = {k: v for k, v in os.environ.items() if k not in FOREIGN}
        # Compilers stamp this second instead of the present one: the same sources, the same checksum.
        environment = {**kept, "LC_ALL": "C", "SOURCE_DATE_EPOCH": "0", **(variables or {})}
        if shutil.which(line[0]) is None:
            raise BuildError(f"{line[0]} is not installed")
        try:
            done = subprocess.run(
                ["nice", *line],
                cwd=cwd or self.work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=STEP_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise BuildError(f"{line[0]} took longer than {STEP_SECONDS} s") from None
        with self.log.open("a") as log:
            log.write(f"$ {' '.join(line)}\n{done.stdout}\n")
        if done.returncode != 0:
            raise BuildError(f"{line[0]} failed: {first_error(done.stdout)}")


def first_error(output: str) -> str:
    """The line of a build's output that says best what went wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\b(error|Error|ERROR)\b", line)]
    return (errors or lines[-1:] or ["it printed nothing"])[0][:200]


def copied(source: Path, shell: Shell) -> Path:
    """A copy of `source` for builds that write beside their sources."""
    target = shell.work / "source"
    shutil.copytree(source, target)
    return target


def one_match(folder: Path, pattern: str) -> Path:
    """The only path that matches, or BuildError: the package is not laid out as the recipe knows."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise BuildError(f"{len(found)} files match {pattern} in the sources, one was expected")
    return found[0]


def portable_paths(source: Path, shell: Shell) -> list[str]:
    """Flags that keep this machine's folders out of the library: its checksum is the same anywhere."""
    return [f"-ffile-prefix-map={folder}=." for folder in (source, shell.work)]


# --- the recipes --------------------------------------------------------------------------------


def mimalloc2(source: Path, library: Path, shell: Shell) -> None:
    """The crate leaves out a part of CMake's files; these are the flags that they lead to."""
    root = source / "c_src" / "mimalloc" / "v2"
    listed = re.search(r"set\(mi_sources\s+([^)]*)\)", (root / "CMakeLists.txt").read_text())
    if listed is None:
        raise BuildError("mimalloc's CMakeLists.txt does not list its sources any more")
    flags = ["-std=gnu11", "-O3", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-fno-builtin-malloc"]
    flags += ["-ftls-model=initial-exec", "-DMI_BUILD_RELEASE", "-DMI_MALLOC_OVERRIDE"]
    flags += ["-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT", f"-I{root / 'include'}"]
    flags += portable_paths(source, shell)
    sources = [root / name for name in listed[1].split()]
    shell.run(["gcc", *flags, "-shared", "-o", library, *sources, "-lpthread", "-lrt", "-latomic"])


def mimalloc3(source: Path, library: Path, shell: Shell) -> None:
    mimalloc3_variant(source, library, shell, secure=False)


def mimalloc3_secure(source: Path, library: Path, shell: Shell) -> None:
    mimalloc3_variant(source, library, shell, secure=True)


def mimalloc3_variant(source: Path, library: Path, shell: Shell, *, secure: bool) -> None:
    """Secure is the authors' own build: guard pages, encoded free lists, random places."""
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DMI_BUILD_TESTS=OFF", "-DMI_BUILD_STATIC=OFF"]
    options += ["-DMI_BUILD_OBJECT=OFF", "-DMI_OVERRIDE=ON", "-DCMAKE_C_COMPILER=gcc"]
    options.append(f"-DCMAKE_C_FLAGS={' '.join(portable_paths(source, shell))}")
    options.append(f"-DMI_SECURE={'ON' if secure else 'OFF'}")
    built = shell.work / "build"
    shell.run(["cmake", "-G", "Ninja", "-S", source / "mimalloc", "-B", built, *options])
    shell.run(["cmake", "--build", built, "-j", JOBS])
    name = "libmimalloc-secure.so" if secure else "libmimalloc.so"
    shutil.copyfile((built / name).resolve(), library)


def snmalloc(source: Path, library: Path, shell: Shell) -> None:
    snmalloc_variant(source, library, shell, "snmallocshim")


def snmalloc_checks(source: Path, library: Path, shell: Shell) -> None:
    snmalloc_variant(source, library, shell, "snmallocshim-checks")


def snmalloc_variant(source: Path, library: Path, shell: Shell, shim: str) -> None:
    """Upstream's shims, one of them with its checks. Its authors measure and recommend clang."""
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DSNMALLOC_BUILD_TESTING=OFF"]
    options += ["-DSNMALLOC_STATIC_LIBRARY=OFF"]
    options += ["-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++"]
    options.append(f"-DCMAKE_CXX_FLAGS={' '.join(portable_paths(source, shell))}")
    built = shell.work / "build"
    shell.run(["cmake", "-G", "Ninja", "-S", source / "upstream", "-B", built, *options])
    shell.run(["cmake", "--build", built, "-j", JOBS, "--target", shim])
    shutil.copyfile(built / f"lib{shim}.so", library)


def jemalloc(source: Path, library: Path, shell: Shell) -> None:
    """The crate keeps the generated configure script beside the sources that it belongs to.

    Debug information is left out, which halves the time and changes no instruction.
    """
    root = copied(source / "jemalloc", shell)
    shutil.copyfile(source / "configure" / "configure", root / "configure")
    version = one_match(source.parent, "tikv-jemalloc-sys-*").name.partition("+")[2]
    options = ["--disable-doc", f"--with-version={version}"]
    variables = {"CC": "gcc", "CXX": "g++", "EXTRA_CFLAGS": "-g0", "EXTRA_CXXFLAGS": "-g0"}
    shell.run(["sh", "configure", *options], cwd=root, variables=variables)
    shell.run(["make", "-j", JOBS, "build_lib_shared"], cwd=root)
    shutil.copyfile(root / "lib" / "libjemalloc.so.2", library)


def rpmalloc(source: Path, library: Path, shell: Shell) -> None:
    """Flags of the target "rpmallocwrap" in its own build, which uses clang."""
    root = source / "rpmalloc" / "rpmalloc"
    flags = [
        "-std=c11",
        "-O3",
        "-funroll-loops",
        "-fomit-frame-pointer",
        "-fPIC",
        "-D_GNU_SOURCE=1",
    ]
    flags += ["-DENABLE_PRELOAD=1", "-DENABLE_OVERRIDE=1", "-fno-builtin-malloc", "-w"]
    shell.run(["clang", *flags, "-shared", "-o", library, root / "rpmalloc.c", "-lpthread", "-ldl"])


def hardened(source: Path, library: Path, shell: Shell) -> None:
    hardened_variant(source, library, shell, "default")


def hardened_light(source: Path, library: Path, shell: Shell) -> None:
    hardened_variant(source, library, shell, "light")


def hardened_variant(source: Path, library: Path, shell: Shell, variant: str) -> None:
    """Its own Makefile; compilers older than gcc 14 know C23 by the name it had as a draft."""
    root = copied(source / "vendor" / "hardened-malloc", shell)
    makefile = root / "Makefile"
    makefile.write_text(makefile.read_text().replace("-std=c23", "-std=c2x"))
    options = [f"VARIANT={variant}", "CONFIG_NATIVE=false", "CONFIG_WERROR=false"]
    shell.run(["make", "-j", JOBS, "CC=gcc", "CXX=g++", *options], cwd=root)
    shutil.copyfile(one_match(root, "out*/libhardened_malloc*.so"), library)


def isoalloc(source: Path, library: Path, shell: Shell) -> None:
    root = copied(source / "isoalloc", shell)
    (root / "build").mkdir(exist_ok=True)
    shell.run(["make", "library"], cwd=root)
    shutil.copyfile(root / "build" / "libisoalloc.so", library)


def hoard(source: Path, library: Path, shell: Shell) -> None:
    """The flags of its GNUmakefile for Linux; GNU's dialect, because newer libstdc++ refuse it else."""
    root = source / "Hoard" / "src"
    folders = ["", "include", "include/util", "include/hoard", "include/superblocks", "Heap-Layers"]
    sources = ["source/libhoard.cpp", "source/unixtls.cpp", "Heap-Layers/wrappers/gnuwrapper.cpp"]
    flags = ["-std=gnu++11", "-O3", "-fno-builtin-malloc", "-fPIC", "-DNDEBUG", "-D_REENTRANT=1"]
    flags += ["-w", *(f"-I{root / folder}" for folder in folders)]
    files = [root / name for name in sources]
    libraries = ["-Bsymbolic", "-ldl", "-lpthread"]
    shell.run(["g++", *flags, "-shared", "-o", library, *files, *libraries])


# What a program may find in Google's tcmalloc. Its abseil stays inside: a program that has another
# version of abseil must not be bound to this one by the preload.
TCMALLOC_EXPORTS = """{
  global:
    malloc; free; calloc; realloc; reallocarray; memalign; aligned_alloc; posix_memalign; valloc;
    pvalloc; cfree; malloc_usable_size; malloc_size; mallopt; mallinfo; mallinfo2; malloc_stats;
    sdallocx; nallocx; free_sized; free_aligned_sized; _Zn*; _Zd*; MallocExtension_*;
  local: *;
};
"""


def tcmalloc(source: Path, library: Path, shell: Shell) -> None:
    """Bazel's -c opt by hand: the crate has no build files, but its build script lists the sources.

    8 KiB pages are upstream's default. The crate's patch (huge page hints) is not applied.
    """
    script = (source / "build.rs").read_text()
    names = re.findall(r'"(c_src/(?:abseil-cpp|tcmalloc)/[^"]+\.(?:cc|S))"', script)
    if len(names) < 100:
        raise BuildError("the crate's build script does not list tcmalloc's sources any more")
    names.append("c_src/tcmalloc/tcmalloc/tcmalloc.cc")
    flags = ["-O2", "-DNDEBUG", "-fPIC", "-ftls-model=initial-exec", "-fno-omit-frame-pointer"]
    flags += ["-DTCMALLOC_INTERNAL_8K_PAGES", "-w", *portable_paths(source, shell)]
    flags += [f"-I{source / 'c_src' / name}" for name in ("abseil-cpp", "tcmalloc")]
    objects = [shell.work / f"{number}.o" for number in range(len(names))]

    def compile_one(name: str, target: Path) -> None:
        dialect = ["-std=c++17"] if name.endswith(".cc") else []
        shell.run(["g++", *dialect, *flags, "-c", source / name, "-o", target])

    with ThreadPoolExecutor(int(JOBS)) as pool:
        list(pool.map(compile_one, names, objects))
    exports = shell.work / "exports.map"
    exports.write_text(TCMALLOC_EXPORTS)
    options = [f"-Wl,--version-script={exports}", "-Wl,-z,defs", "-pthread"]
    shell.run(["g++", "-shared", "-O2", *options, "-o", library, *objects])
