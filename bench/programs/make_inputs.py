#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the input of the real programs, the same bytes on every machine.

    make_inputs.py FOLDER

- corpus.txt: words of a made-up language whose frequencies follow Zipf's law, as those of natural
  languages do, in lines of varied length;
- records.json: a list of records of varied shape, as a service would answer;
- puzzle.smt2: a scheduling problem in integer arithmetic without a solution, so that the solver must
  search all of it.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

WORDS = 6000
TEXT_WORDS = 260_000
RECORDS = 12_000
JOBS = 8


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


def records(generator: random.Random) -> str:
    vocabulary = sorted({word(generator) for _ in range(400)})
    made = [
        {
            "id": number,
            "name": " ".join(generator.choices(vocabulary, k=2)),
            "scores": [round(generator.random(), 4) for _ in range(generator.randrange(12))],
            "tags": {word: generator.randrange(100) for word in generator.sample(vocabulary, 4)},
            "note": " ".join(generator.choices(vocabulary, k=generator.randrange(40))),
        }
        for number in range(RECORDS)
    ]
    return json.dumps(made) + "\n"


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
    write(folder / "records.json", records(random.Random(2)))
    write(folder / "puzzle.smt2", puzzle(random.Random(3)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
