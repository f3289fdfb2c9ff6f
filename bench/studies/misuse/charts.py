# SPDX-License-Identifier: MIT
"""The matrix as a picture: kinds of faults against allocators, blue where a fault is stopped."""

from __future__ import annotations

import altair as alt

from brimful.bench.charts import look
from brimful.bench.charts.parts import data as inline
from brimful.bench.charts.parts import quiet_axis
from studies.misuse.matrix import KINDS, Matrix


def chart(matrix: Matrix) -> alt.TopLevelMixin:
    kinds = {kind: title for kind, title in KINDS.items() if matrix.cases(kind)}
    found = []
    for kind, title in kinds.items():
        for name in matrix.names:
            share = matrix.cell(kind, name).share()
            # Steps in place of a scale of colours: each has a colour of its own in the dark, too.
            step = (
                3
                if share is None
                else (0 if share == 1 else 1 if share >= 0.5 else 4 if share else 6)
            )
            found.append({"kind": title, "name": name, "step": look.HEAT[step]})
    colour = alt.Color(
        "step:N",
        scale=None,
        legend=None,
    )
    base = alt.Chart(inline(found)).encode(
        x=alt.X("name:N", sort=matrix.names, axis=quiet_axis("", orient="top", labelAngle=-50)),
        y=alt.Y("kind:N", sort=list(kinds.values()), axis=quiet_axis("")),
    )
    marks = base.mark_rect(stroke=look.PAPER, strokeWidth=2).encode(color=colour)
    sized = marks.properties(width=34 * len(matrix.names), height=22 * len(kinds))
    return sized.configure(**look.config())
