# SPDX-License-Identifier: MIT
"""HTML without surprises: whatever is not markup already is escaped, always.

Names, versions and reasons come from libraries, programs and the command line, so any of them may
hold a "<script>". Markup is a type of its own; a plain string that gets into an element is text.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def markup(content: object) -> Markup:
    """Anything as HTML: markup as it is, all else escaped."""
    return content if isinstance(content, Markup) else Markup(escape(str(content)))


def join(parts: Iterable[object], between: str = "") -> Markup:
    return Markup(escape(between).join(markup(part) for part in parts))


def element(name: str, *content: object, **attributes: str | bool) -> Markup:
    """An element; `class_` is class, `data_x` is data-x, True an attribute without a value."""
    written = "".join(
        f" {_attribute(key)}" if value is True else f' {_attribute(key)}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not False
    )
    return Markup(f"<{name}{written}>{join(content)}</{name}>")


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def paragraph(*content: object, **attributes: str | bool) -> Markup:
    return element("p", *content, **attributes)


def bullets(items: Iterable[object]) -> Markup:
    return element("ul", *(element("li", item) for item in items))


def table(
    caption: str,
    heads: Iterable[str],
    rows: Iterable[tuple[Iterable[object], str]],
    numbers: Iterable[int] = (),
) -> Markup:
    """A table that scrolls sideways by itself. A row is its fields and a class ("" for none).

    The first field of a row is its heading; `numbers` are the columns to align on the right.
    """
    right = set(numbers)

    def field(place: int, content: object) -> Markup:
        kind = "number" if place in right else False
        if place == 0:
            return element("th", content, scope="row", class_=kind)
        return element("td", content, class_=kind)

    head = [
        element("th", text, scope="col", class_="number" if place in right else False)
        for place, text in enumerate(heads)
    ]
    body = [
        element(
            "tr", *(field(place, one) for place, one in enumerate(fields)), class_=kind or False
        )
        for fields, kind in rows
    ]
    inner = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    return element("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)
