# SPDX-License-Identifier: MIT
"""A flame graph as one page of HTML that needs nothing else: no network, no server, no other file.

The tree of calls is put into flame.html as JSON; the page draws it, zooms into what is clicked, searches,
and shows the exact numbers of what the mouse or the keyboard is on. For a difference, what is in the tree
is what has grown.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Mapping
from importlib import resources
from typing import Any

from .stacks import Amount, Stack


def tree(amounts: Mapping[Stack, Amount]) -> dict[str, Any]:
    """Nested {n: name, o: objects, b: bytes, f: "file:line", c: callees}; what isn't positive is left out."""
    root: dict[str, Any] = {"n": "all", "o": 0.0, "b": 0.0, "f": "", "c": {}}
    for stack, amount in amounts.items():
        if amount.bytes <= 0:
            continue
        node = root
        node["o"] += amount.objects
        node["b"] += amount.bytes
        for location in reversed(stack):
            for line in reversed(location.lines):
                place = f"{line.file}:{line.line}" if line.file and line.line else line.file
                child = node["c"].setdefault(
                    line.function,
                    {
                        "n": line.function,
                        "o": 0.0,
                        "b": 0.0,
                        "f": place or location.module,
                        "c": {},
                    },
                )
                child["o"] += amount.objects
                child["b"] += amount.bytes
                node = child
    return _listed(root)


def _listed(root: dict[str, Any]) -> dict[str, Any]:
    """Callees as lists, numbers whole. A loop, because stacks may be deeper than Python's own."""
    pending = [root]
    while pending:
        node = pending.pop()
        node["o"], node["b"] = round(node["o"], 1), round(node["b"])
        node["c"] = sorted(node["c"].values(), key=lambda child: child["n"])
        pending += node["c"]
    return root


def page(title: str, meaning: str, amounts: Mapping[Stack, Amount]) -> str:
    """The whole page."""
    frame = resources.files(__package__).joinpath("flame.html").read_text(encoding="utf-8")
    sys.setrecursionlimit(
        max(sys.getrecursionlimit(), 100_000)
    )  # json goes as deep as the stacks are
    # `</script>` in a name would end the data.
    data = json.dumps(tree(amounts), ensure_ascii=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    values = {"TITLE": html.escape(title), "MEANING": html.escape(meaning), "DATA": data}
    return re.sub("@([A-Z]+)@", lambda match: values[match[1]], frame)
