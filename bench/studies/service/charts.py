# SPDX-License-Identifier: MIT
"""The chart of a service's resident memory over time."""

from __future__ import annotations

import altair as alt

from brimful.bench import allocators
from brimful.bench.charts import look, parts
from brimful.bench.study.model import Data


def chart(found: Data) -> alt.TopLevelMixin:
    names = list(found)
    known = [one for one in allocators.known() if one.name in names]
    styles = look.styles(known)
    rows = [
        {"allocator": name, "at": at, "mib": mib, "width": styles[name].width}
        for name in names
        for at, mib in found[name][0]["curve"]
    ]
    lines = alt.Chart(parts.data(rows)).mark_line(aria=False)
    encoded = lines.encode(
        x=alt.X("at:Q", axis=parts.quiet_axis("seconds")),
        y=alt.Y("mib:Q", axis=parts.quiet_axis("resident, MiB")),
        strokeWidth=parts.width(),
        **parts.series(names, styles),
    )
    return encoded.properties(width=640, height=300).configure(**look.config())
