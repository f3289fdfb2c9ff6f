# SPDX-License-Identifier: MIT
"""The chart of traffic and memory against the number of CPUs."""

from __future__ import annotations

import altair as alt

from brimful.bench.charts import look
from brimful.bench.charts.parts import Layered, quiet_axis
from brimful.bench.charts.parts import data as inline
from brimful.bench.study.model import Data
from studies.scaling import study


def chart(result: Data) -> alt.TopLevelMixin:
    names = study.workloads(result)
    colours = ("#0072b2", "#86234f", "#00875f", "#a8458f", "#7d7d1c", "#3b2c94", "#7a5a36")
    traffic, memory = [], []
    for name in names:
        for cpus in study.MACHINES:
            cell = study.Cell(result, cpus, name)
            traffic.append({"workload": name, "at": cpus, "value": cell.transfers()})
            held = sum(
                cell.shipped["loaded"][field]
                for field in ("resident_bytes", "header_bytes", "context_bytes", "table_bytes")
            )
            memory.append({"workload": name, "at": cpus, "value": held / cpus / 1024})

    def panel(rows: list[Data], title: str) -> Layered:
        x = alt.X(
            "at:Q",
            scale=alt.Scale(type="log", base=2, nice=False),
            axis=quiet_axis(
                "CPUs", values=list(study.MACHINES), labelExpr="format(datum.value, ',d')"
            ),
        )
        y = alt.Y("value:Q", scale=alt.Scale(zero=True), axis=quiet_axis(title, tickCount=6))
        colour = alt.Color(
            "workload:N",
            scale=alt.Scale(domain=names, range=list(colours)),
            sort=names,
            legend=alt.Legend(title="workload", symbolType="stroke"),
        )
        base = alt.Chart(inline(rows)).encode(x=x, y=y, color=colour)
        marks = alt.layer(
            base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=30, opacity=1)
        )
        return marks.properties(width=300, height=240)

    both = alt.hconcat(
        panel(traffic, "cache lines from other CPUs, for one operation"),
        panel(memory, "memory held, KiB for each CPU"),
        spacing=30,
    )
    return both.configure(**look.config())
