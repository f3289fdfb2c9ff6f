# SPDX-License-Identifier: MIT
"""The chart of populate by its levels."""

from __future__ import annotations

from typing import Literal

import altair as alt

from brimful.bench.charts import look
from brimful.bench.charts.parts import data as inline
from brimful.bench.charts.parts import quiet_axis
from brimful.bench.study.model import Data
from studies.populate import study


def chart(rows: Data) -> alt.TopLevelMixin:
    fixed = ("#7b838e", "#0072b2", "#a8458f", "#d1410c", "#00875f", "#86234f")
    found = [
        {"row": name, "setting": setting, "panel": panel, "value": value}
        for name, row in rows.items()
        for setting in study.SETTINGS
        for panel, value in (
            ("time", study.ratio(row, setting).median),
            ("faults", study.share(row, setting)),
        )
    ]

    def panel(name: str, title: str, kind: Literal["log", "linear"]) -> alt.Chart:
        mine = [entry for entry in found if entry["panel"] == name]
        return (
            alt.Chart(inline(mine))
            .mark_point(filled=True, size=60, opacity=0.9)
            .encode(
                x=alt.X("value:Q", scale=alt.Scale(type=kind, nice=False), axis=quiet_axis(title)),
                y=alt.Y("row:N", sort=list(rows), axis=quiet_axis("")),
                color=alt.Color(
                    "setting:N",
                    sort=list(study.SETTINGS),
                    scale=alt.Scale(domain=list(study.SETTINGS), range=list(fixed)),
                    legend=alt.Legend(title="populate", symbolType="circle"),
                ),
            )
            .properties(width=300, height=24 * len(rows))
        )

    both = alt.hconcat(
        # `all` can cost many times the time of the others, who must stay apart in the chart.
        panel("time", "CPU time, off = 1", "log"),
        panel("faults", "times the program was stopped by a fault, off = 1", "linear"),
        spacing=30,
    )
    return both.configure(**look.config())
