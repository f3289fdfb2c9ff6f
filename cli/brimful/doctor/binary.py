# SPDX-License-Identifier: MIT
"""What the file of a program says about who its malloc is (ELF, read by pyelftools).

The dynamic linker gives a name to whoever defines it first: the program, then what is preloaded, then
the libraries. So a program that exports `malloc` keeps its own, and one that merely contains another
allocator uses that for its own calls while its libraries use the preloaded one.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass

# What shows an allocator: names that only it defines, and texts that stay when the names are stripped.
_SYMBOLS = {
    "jemalloc": ("je_malloc", "_rjem_malloc", "_rjem_mallocx", "je_arena_init", "mallocx"),
    "tcmalloc": (
        "tc_malloc",
        "TCMallocInternalMalloc",
        "MallocExtension_Internal_GetNumericProperty",
    ),
    "mimalloc": ("mi_malloc", "_mi_malloc_generic"),
    "snmalloc": ("sn_malloc", "sn_rust_alloc"),
    "rpmalloc": ("rpmalloc", "rpmalloc_initialize"),
    "brimful": ("brimful_malloc",),
}
_TEXTS = {
    "jemalloc": (b"<jemalloc>: ",),
    "tcmalloc": (b"tcmalloc: large alloc", b"TCMALLOC_SAMPLE_PARAMETER"),
    "mimalloc": (b"mimalloc: ",),
    "brimful": (b"BRIMFUL_CONF",),
}


@dataclass(frozen=True)
class Binary:
    """Facts about one ELF file; of one that can't be read, nothing is known and all is False."""

    is_static: bool = False
    is_musl: bool = False
    is_go: bool = False
    is_rust: bool = False
    exports_malloc: bool = False  # by its dynamic symbols: it wins over a preload
    contains_malloc: bool = False  # for itself alone
    allocators: tuple[str, ...] = ()


def look(path: str) -> Binary:
    """Read the file at `path`. Never raises: a file that is no ELF file says nothing."""
    from elftools.common.exceptions import ELFError

    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _look(data)
    except (OSError, ValueError, ELFError):
        return Binary()


def _look(data: mmap.mmap) -> Binary:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    elf = ELFFile(data)
    interpreter = ""
    for segment in elf.iter_segments("PT_INTERP"):
        interpreter = segment.get_interp_name()
    defined: dict[str, set[str]] = {"SHT_DYNSYM": set(), "SHT_SYMTAB": set()}
    sections = set()
    for section in elf.iter_sections():
        sections.add(section.name)
        if isinstance(section, SymbolTableSection) and section["sh_type"] in defined:
            names = defined[section["sh_type"]]
            names |= {s.name for s in section.iter_symbols() if s["st_shndx"] != "SHN_UNDEF"}
    everything = defined["SHT_DYNSYM"] | defined["SHT_SYMTAB"]
    allocators = {name for name, marks in _SYMBOLS.items() if not everything.isdisjoint(marks)} | {
        name for name, texts in _TEXTS.items() if any(data.find(text, 0) >= 0 for text in texts)
    }
    return Binary(
        is_static=elf["e_type"] in ("ET_EXEC", "ET_DYN") and not interpreter,
        is_musl="ld-musl" in interpreter,
        is_go=".go.buildinfo" in sections or ".note.go.buildid" in sections,
        is_rust=data.find(b"/rustc/", 0) >= 0,
        exports_malloc="malloc" in defined["SHT_DYNSYM"],
        contains_malloc="malloc" in defined["SHT_SYMTAB"],
        allocators=tuple(sorted(allocators)),
    )
