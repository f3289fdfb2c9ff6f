#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# python3 with every small object on malloc (PYTHONMALLOC=malloc): dictionaries, sorting, JSON both ways, threads that make
# and drop object graphs, child processes by fork.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need python3
# The shims of version managers are shell scripts, which would be preloaded in its place.
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
cat > "$work/program.py" << 'PROGRAM'
import json
import multiprocessing
import sys
import threading

library = sys.argv[1]
assert any(library in line for line in open("/proc/self/maps")), "not loaded"


def graph(seed, count):
    nodes = [{"id": i, "name": f"node {i} of {seed}", "next": []} for i in range(count)]
    for i, node in enumerate(nodes):
        node["next"].append((i * 7919 + seed) % count)
    return nodes


def check(seed):
    nodes = graph(seed, 20000)
    again = json.loads(json.dumps(nodes))
    assert again == nodes
    again.sort(key=lambda node: node["name"])
    assert len({node["name"] for node in again}) == 20000
    return sum(node["next"][0] for node in again)


expected = 20000 * 19999 // 2
results = []
threads = [threading.Thread(target=lambda s=s: results.append(check(s))) for s in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert results == [expected] * 3, results
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(check, range(3)) == [expected] * 3
blob = bytearray()
for i in range(20000):
    blob += b"x" * (i % 997)
assert len(blob) == sum(i % 997 for i in range(20000))
print("all right")
PROGRAM
run() {
  equal "python3's answer" "all right" \
    "$(with_library env PYTHONMALLOC=malloc "$python" "$work/program.py" "$library")"
}
with_both_front_ends run
equal "python3's answer with its own small-object allocator" "all right" \
  "$(with_library "$python" "$work/program.py" "$library")"
