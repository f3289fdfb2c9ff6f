# SPDX-License-Identifier: MIT
"""Real programs as rows: what people run, on input of a size that takes some seconds.

They are Debian's packages, and what Debian builds in another way than their users do, built from the
authors' sources (bench/programs/build_programs.py); `make real-programs` brings both. One that is
absent is a row that says so. Input is made once, the same on every machine, by
bench/programs/make_inputs.py into build/bench/inputs/, or lies beside it as a script. Wall time is
compared, of servers the time that their client saw (see launch about drivers).

Compute-bound programs hardly notice their allocator, and that is what these rows are for: they say
what a gain in the synthetic rows is worth. How much of each lies in the allocator at all is what the
study `share` measures.

    row            one row: what it needs, where its input lies
    servers        redis, PostgreSQL, memcached, nginx
    databases      those that run inside the process
    interpreters   Lua, Python, Ruby, Perl, PHP, Node, Java
    tools          compilers, solvers, converters, renderers, git
"""

from __future__ import annotations

from ..model import Cell
from . import databases, interpreters, servers, tools
from .row import input_folder, make_inputs

__all__ = ["cells", "input_folder"]


def cells() -> list[Cell]:
    """One row for each program and way of using it, those that cannot run here included."""
    problem = make_inputs()
    return [
        *servers.rows(),
        *databases.rows(),
        *interpreters.rows(problem),
        *tools.rows(problem),
    ]
