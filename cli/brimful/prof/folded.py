# SPDX-License-Identifier: MIT
"""Folded stacks: `outermost;…;innermost bytes`, a line for each stack, as flame graph tools read them."""

from __future__ import annotations

from collections.abc import Mapping

from .stacks import Amount, Stack, functions


def lines(amounts: Mapping[Stack, Amount]) -> list[str]:
    """The most bytes first; stacks of the same names are one line."""
    sums: dict[str, float] = {}
    for stack, amount in amounts.items():
        # A semicolon separates here, and a line break ends: neither may stand in a name.
        names = [name.replace(";", ":").replace("\n", " ") for name in functions(stack)]
        key = ";".join(reversed(names)) or "[no stack]"
        sums[key] = sums.get(key, 0.0) + amount.bytes
    ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    return [f"{key} {round(value)}" for key, value in ordered if round(value) != 0]
