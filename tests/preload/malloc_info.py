#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""malloc_info() as real programs read it: the same readers on glibc's output and on ours.

Each reader is one way that is in use: an XML library (memory reports of Python services), searches for
keys behind the last heap (netdata), regular expressions that expect attributes in one order, lines
counted from the end, numbers taken by their position (HMAT). All have to get every figure, from both.

Environment: BRIMFUL_LIB, the library.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("BRIMFUL_LIB", ROOT / "build/release/libbrimful.so")).resolve()
HELD = 40 << 20  # one block of its own mapping under glibc, of a window under brimful
FREED = 2000


def asked() -> str:
    """In the child: the XML, while so much is held and so much was freed."""
    libc = ctypes.CDLL(None)
    for name in ("malloc", "open_memstream"):
        getattr(libc, name).restype = ctypes.c_void_p
    libc.free.argtypes = libc.fclose.argtypes = [ctypes.c_void_p]
    libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
    libc.malloc(HELD)
    for block in [libc.malloc(600) for _ in range(FREED)][::2]:
        libc.free(block)
    text, size = ctypes.c_char_p(), ctypes.c_size_t()
    stream = libc.open_memstream(ctypes.byref(text), ctypes.byref(size))
    assert libc.malloc_info(0, stream) == 0
    libc.fclose(stream)
    assert text.value is not None
    return text.value.decode()


def by_tree(text: str) -> dict[str, int]:
    root = ElementTree.fromstring(text)
    found = {f"{e.tag} {e.get('type')}": int(e.get("size", "")) for e in root if e.tag != "heap"}
    for heap in root.findall("heap"):
        int(heap.attrib["nr"])
        for wanted in ("total fast", "total rest", "system current"):
            tag, kind = wanted.split()
            assert any(e.get("type") == kind for e in heap.findall(tag)), wanted
        for size in heap.findall("sizes/size"):
            assert int(size.attrib["count"]) * int(size.attrib["from"]) <= int(size.attrib["total"])
    return found


def by_search(text: str) -> dict[str, int]:
    summary = text[text.rindex("</heap>") :]
    found = {}
    for key in ("total fast", "total rest", "total mmap", "system current"):
        tag, kind = key.split()
        at = summary.index(f'<{tag} type="{kind}"')
        found[key] = int(re.match(r"\d+", summary[summary.index('size="', at) + 6 :])[0])  # type: ignore[index]
    return found


def by_expression(text: str) -> dict[str, int]:
    heaps = re.findall(r'<heap nr="(\d+)">\n(.*?)</heap>', text, re.DOTALL)
    assert heaps and text.startswith('<malloc version="1">\n')
    for _, body in heaps:
        assert len(re.findall(r'<total type="(?:fast|rest)" count="\d+" size="\d+"/>', body)) == 2
        assert re.search(r'<system type="current" size="(\d+)"/>\n<system type="max"', body)
    totals = re.findall(r'^<total type="(\w+)" count="\d+" size="(\d+)"/>$', text, re.MULTILINE)
    return {f"total {kind}": int(size) for kind, size in totals[-3:]}


def by_lines(text: str) -> dict[str, int]:
    rows = text.split("\n")
    current = re.fullmatch(r'<system type="current" size="(\d+)"/>', rows[-6])
    assert current and rows[-2:] == ["</malloc>", ""]
    return {"system current": int(current[1])}


def by_position(text: str) -> dict[str, int]:
    numbers = [int(size) for size in re.findall(r'"(\d+)"/>', text)[-4:]]
    names = ("system current", "system max", "aspace total", "aspace mprotect")
    return dict(zip(names, numbers, strict=True))


READERS = (by_tree, by_search, by_expression, by_lines, by_position)
ELEMENTS = {
    *("total fast", "total rest", "total mmap"),
    *("system current", "system max", "aspace total", "aspace mprotect"),
}


class MallocInfo(unittest.TestCase):
    texts: dict[str, str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.texts = {}
        for name, preload in (("glibc", ""), ("brimful", str(LIBRARY))):
            done = subprocess.run(
                [sys.executable, __file__, "--ask"],
                env=os.environ | {"LD_PRELOAD": preload},
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            cls.texts[name] = json.loads(done.stdout)

    def test_every_reader_gets_the_same_from_the_same_text(self) -> None:
        for name, text in self.texts.items():
            whole = by_tree(text)
            self.assertEqual(set(whole), ELEMENTS, name)
            for reader in READERS:
                found = reader(text)
                self.assertEqual(found, {key: whole[key] for key in found}, f"{name} {reader}")

    def test_what_is_in_use_is_what_the_program_holds(self) -> None:
        for name, text in self.texts.items():
            found = by_tree(text)
            free = found["total fast"] + found["total rest"]
            used = found["system current"] + found["total mmap"] - free
            self.assertGreaterEqual(used, HELD, name)
            self.assertLess(used, HELD + (16 << 20), name)
            self.assertGreaterEqual(free, FREED // 2 * 600, name)
            self.assertGreaterEqual(found["system max"], found["system current"], name)
            self.assertGreaterEqual(found["aspace total"], found["system current"], name)

    def test_the_allocator_says_who_it_is(self) -> None:
        own = ElementTree.fromstring(self.texts["brimful"]).find("heap/brimful")
        assert own is not None
        self.assertGreaterEqual(int(own.attrib["live"]), HELD)
        self.assertNotIn("brimful", self.texts["glibc"])


if __name__ == "__main__":
    if sys.argv[1:] == ["--ask"]:
        print(json.dumps(asked()))
    else:
        unittest.main()
