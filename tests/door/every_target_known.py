#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each task of `make help` has an entry in _targets.py, so that every_target_long.py can try it."""

from __future__ import annotations

import sys

import _targets


def main() -> int:
    """0 if all have."""
    if not _targets.listed():
        print("make help lists no task")
        return 1
    for name in _targets.unknown():
        print(
            f"make {name} is new: say in SHORTENED of tests/door/_targets.py by what it is shortened"
        )
    return 1 if _targets.unknown() else 0


if __name__ == "__main__":
    sys.exit(main())
