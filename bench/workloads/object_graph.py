# SPDX-License-Identifier: MIT
"""A python program with a large object graph: build it, sort it, serialise it, drop it.

Imitates what a service does with one big answer: records of small strings, integers, tuples,
lists and dictionaries that refer to one another are made, indexed, ordered, written as JSON and as
pickle, read back, compared and thrown away, twice. The input is generated from a fixed seed, so
every run does exactly the same work; each round ends with a checksum of its result, so a run that
went wrong shows.

Memory comes from CPython's own pymalloc, which asks malloc only for whole arenas and for objects
above 512 bytes. With PYTHONMALLOC=malloc every object is a malloc of its own.
"""

from __future__ import annotations

import gc
import hashlib
import json
import pickle
import random
from typing import Any

RECORDS = 21_000
ROUNDS = 2


def build(generator: random.Random, count: int) -> list[dict[str, Any]]:
    """Records of varied shape; each refers to a few earlier ones."""
    words = ["".join(generator.choices("abcdefghijklmnop", k=length)) for length in range(3, 60)]
    records: list[dict[str, Any]] = []
    for number in range(count):
        records.append(
            {
                "id": number,
                "name": f"{words[number % 57]}-{generator.getrandbits(40):x}",
                "score": generator.random() * 1000,
                "tags": generator.sample(words, 3),
                "points": [(generator.getrandbits(30), generator.random()) for _ in range(4)],
                "links": [generator.randrange(number) for _ in range(3)] if number else [],
                "note": " ".join(generator.choices(words, k=generator.randrange(1, 12))),
            }
        )
    return records


def index(records: list[dict[str, Any]]) -> dict[str, list[tuple[float, str]]]:
    """Records by tag, each list in order of score."""
    by_tag: dict[str, list[tuple[float, str]]] = {}
    for record in records:
        for tag in record["tags"]:
            by_tag.setdefault(tag, []).append((record["score"], record["name"]))
    for entries in by_tag.values():
        entries.sort()
    return by_tag


def work(seed: int) -> str:
    """One round; returns a checksum of what it computed."""
    records = build(random.Random(seed), RECORDS)
    by_tag = index(records)
    records.sort(key=lambda record: (record["name"][:2], -record["score"]))
    text = json.dumps(records)
    again = json.loads(text)
    packed = pickle.dumps((again, by_tag), protocol=pickle.HIGHEST_PROTOCOL)
    unpacked, by_tag_again = pickle.loads(packed)
    if len(unpacked) != len(records) or by_tag_again != by_tag:
        raise SystemExit("object_graph: what was read back differs from what was written")
    digest = hashlib.sha256(text.encode())
    digest.update(str(sum(len(entries) for entries in by_tag.values())).encode())
    return digest.hexdigest()


def main() -> None:
    gc.freeze()
    for seed in range(ROUNDS):
        print(work(seed))
        gc.collect()


if __name__ == "__main__":
    main()
