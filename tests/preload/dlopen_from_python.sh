#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The library opened by a running program (python3's ctypes) that keeps its own malloc: brimful_malloc and friends work beside
# it, from several threads, after many libraries with thread-local storage were loaded, and through fork.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need python3
case $(basename "$library") in libbrimful*) ;; *) skip "only brimful has the brimful_ names" ;; esac
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
cat > "$work/program.py" << 'PROGRAM'
import ctypes
import os
import random
import sqlite3  # noqa: F401  more libraries with thread-local storage come first
import ssl  # noqa: F401
import sys
import threading

heap = ctypes.CDLL(sys.argv[1])
heap.brimful_malloc.restype = heap.brimful_realloc.restype = heap.brimful_calloc.restype = ctypes.c_void_p
heap.brimful_malloc.argtypes = [ctypes.c_size_t]
heap.brimful_calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
heap.brimful_realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
heap.brimful_free.argtypes = [ctypes.c_void_p]
heap.brimful_usable_size.restype = ctypes.c_size_t
heap.brimful_usable_size.argtypes = [ctypes.c_void_p]
heap.brimful_version.restype = ctypes.c_char_p
assert heap.brimful_version(), "no version"


def churn(seed):
    order = random.Random(seed)
    held = {}
    for step in range(4000):
        if held and order.random() < 0.5:
            pointer, (size, mark) = held.popitem()
            assert ctypes.string_at(pointer, min(size, 32)) == bytes([mark]) * min(size, 32)
            if step % 3 == 0:
                pointer = heap.brimful_realloc(pointer, size * 2)
                assert ctypes.string_at(pointer, min(size, 32)) == bytes([mark]) * min(size, 32)
            heap.brimful_free(pointer)
            continue
        size = order.choice([1, 24, 100, 1000, 5000, 40000, 300000])
        pointer = heap.brimful_malloc(size) if step % 2 else heap.brimful_calloc(1, size)
        assert pointer and pointer % 16 == 0 and pointer not in held
        assert heap.brimful_usable_size(pointer) >= size
        mark = step % 256
        ctypes.memset(pointer, mark, size)
        held[pointer] = (size, mark)
    for pointer in held:
        heap.brimful_free(pointer)


threads = [threading.Thread(target=churn, args=(i,)) for i in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
kept = heap.brimful_malloc(1000)
child = os.fork()
if child == 0:
    churn(99)
    heap.brimful_free(kept)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0, "the child of a fork"
heap.brimful_free(kept)
churn(100)
print("all right")
PROGRAM
# Without LD_PRELOAD: the interpreter's malloc stays the system's.
for front_end in percpu thread; do
  equal "the answer with $front_end" "all right" "$(timeout 60 env -u LD_PRELOAD BRIMFUL_CONF="front_end:$front_end" \
    "$python" "$work/program.py" "$library" 2>&1)"
done
