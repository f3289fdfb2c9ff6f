# SPDX-License-Identifier: MIT
"""The allocators that brimful is compared with: where they come from, how each is built and proved.

`build.py` is the command; `catalog.py` is the table of rivals, and adding one means adding a line
there (and, if it needs building, a function in `recipes.py`). The result is build/rivals/: one
preloadable library for each, and manifest.json, which is all that the harness reads.
"""
