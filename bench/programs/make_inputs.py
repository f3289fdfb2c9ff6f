#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the input of the real programs, the same bytes on every machine.

    make_inputs.py FOLDER

- corpus.txt: words of a made-up language whose frequencies follow Zipf's law, as those of natural
  languages do, in lines of varied length;
- records.json: a list of records of varied shape, as a service would answer;
- records.xml: the same records as a document;
- puzzle.smt2: a scheduling problem in integer arithmetic without a solution, so that the solver must
  search all of it;
- program.cpp: a large program of functions, classes and templates, which includes nothing;
- history.fi: changes to a few source files, one after the other, as `git fast-import` reads them.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any
from xml.sax import saxutils

WORDS = 6000
TEXT_WORDS = 260_000
RECORDS = 12_000
JOBS = 8
FUNCTIONS = 350
FILES, FILE_LINES, CHANGES = 30, 240, 500


def word(generator: random.Random) -> str:
    syllables = generator.choices(("ka", "to", "ri", "ven", "sol", "mi", "dur", "el"), k=5)
    return "".join(syllables[: generator.randrange(1, 6)]) + generator.choice(("", "n", "s", "th"))


def corpus(generator: random.Random) -> str:
    vocabulary = sorted({word(generator) for _ in range(WORDS)})
    generator.shuffle(vocabulary)
    weights = [1 / (rank + 1) for rank in range(len(vocabulary))]
    words = generator.choices(vocabulary, weights, k=TEXT_WORDS)
    lines, at = [], 0
    while at < len(words):
        length = generator.randrange(3, 18)
        lines.append(" ".join(words[at : at + length]))
        at += length
    return "\n".join(lines) + "\n"


def records(generator: random.Random) -> list[dict[str, Any]]:
    vocabulary = sorted({word(generator) for _ in range(400)})
    return [
        {
            "id": number,
            "name": " ".join(generator.choices(vocabulary, k=2)),
            "scores": [round(generator.random(), 4) for _ in range(generator.randrange(12))],
            "tags": {word: generator.randrange(100) for word in generator.sample(vocabulary, 4)},
            "note": " ".join(generator.choices(vocabulary, k=generator.randrange(40))),
        }
        for number in range(RECORDS)
    ]


def document(made: list[dict[str, Any]]) -> str:
    lines = ["<records>"]
    for record in made:
        name, note = saxutils.escape(record["name"]), saxutils.escape(record["note"])
        lines.append(f'<record id="{record["id"]}"><name>{name}</name>')
        lines += [f"<score>{score}</score>" for score in record["scores"]]
        lines += [f'<tag name="{tag}">{value}</tag>' for tag, value in record["tags"].items()]
        lines.append(f"<note>{note}</note></record>")
    return "\n".join([*lines, "</records>"]) + "\n"


def puzzle(generator: random.Random) -> str:
    """Jobs on one machine that must all end before a deadline that is one unit too early."""
    lengths = [generator.randrange(3, 9) for _ in range(JOBS)]
    lines = ["(set-option :smt.random_seed 1)"]
    lines += [f"(declare-const s{i} Int)" for i in range(JOBS)]
    for i, length in enumerate(lengths):
        lines.append(f"(assert (and (>= s{i} 0) (<= (+ s{i} {length}) {sum(lengths) - 1})))")
        for j in range(i):
            lines.append(
                f"(assert (or (<= (+ s{i} {length}) s{j}) (<= (+ s{j} {lengths[j]}) s{i})))"
            )
    return "\n".join([*lines, "(check-sat)"]) + "\n"


def program(generator: random.Random) -> str:
    """Functions that call earlier ones, on tables and trees of templates instantiated all over."""
    lines = [
        "template <int N> struct Table {",
        "  long cell[N + 4];",
        "  long sum() const { long s = 0; for (long c : cell) s += c; return s; }",
        "  template <class F> void each(F f) { for (long& c : cell) c = f(c); }",
        "};",
        "struct Node { virtual ~Node() {} virtual long value(long x) const = 0; };",
    ]
    operators = ("+", "-", "*", "^", "|", "&")
    for number in range(FUNCTIONS):
        a, b, c = generator.choices(operators, k=3)
        size, by, cases = (generator.randrange(low, 60) for low in (1, 2, 3))
        earlier = generator.randrange(number) if number else None
        call = f"f{earlier}(x {a} {by})" if earlier is not None else "x"
        lines += [
            f"struct N{number} : Node {{",
            f"  Table<{size}> table; const Node* next = nullptr;",
            f"  long value(long x) const override {{ return next ? next->value(x {b} {by}) : table.sum(); }}",
            "};",
            f"long f{number}(long x) {{",
            f"  N{number} node; node.table.each([x](long c) {{ return c {a} (x {c} {size}); }});",
            f"  for (long i = 0; i < x % {by + 1}; i++) {{",
            f"    switch ((x {b} i) % {cases}) {{",
            *(
                f"      case {i}: x = (x {generator.choice(operators)} i) * {i + 3}; break;"
                for i in range(cases % 12)
            ),
            "    }",
            f"    if (x > {size * by}) node.table.cell[i % {size}] {generator.choice(operators)}= x;",
            "  }",
            f"  return node.value({call}) + x;",
            "}",
        ]
    return "\n".join(lines) + "\n"


def history(generator: random.Random) -> str:
    """Each change rewrites some lines of two files; the stream holds these files whole."""
    vocabulary = sorted({word(generator) for _ in range(2000)})

    def line() -> str:
        return " ".join(generator.choices(vocabulary, k=generator.randrange(2, 9)))

    files = [[line() for _ in range(FILE_LINES)] for _ in range(FILES)]
    stream = []
    for number in range(CHANGES):
        message = line()
        stream.append(f"commit refs/heads/main\nmark :{number + 1}")
        stream.append(f"committer A. U. Thor <author@example.org> {1_700_000_000 + number} +0000")
        stream.append(f"data {len(message)}\n{message}")
        # The first change makes all files.
        chosen = range(FILES) if number == 0 else generator.sample(range(FILES), 2)
        for at in chosen:
            for _ in range(generator.randrange(1, 12)):
                files[at][generator.randrange(FILE_LINES)] = line()
            text = "\n".join(files[at]) + "\n"
            stream.append(f"M 100644 inline source/part{at % 7}/{at}.txt\ndata {len(text)}\n{text}")
    return "\n".join([*stream, "done"]) + "\n"


def write(path: Path, text: str) -> None:
    """In one step: who reads meanwhile sees the old file or the new one."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(text)
    os.replace(fresh, path)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: make_inputs.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "corpus.txt", corpus(random.Random(1)))
    made = records(random.Random(2))
    write(folder / "records.json", json.dumps(made) + "\n")
    write(folder / "records.xml", document(made))
    write(folder / "puzzle.smt2", puzzle(random.Random(3)))
    write(folder / "program.cpp", program(random.Random(5)))
    write(folder / "history.fi", history(random.Random(4)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
