#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each `pairs with` comment in src/ names an order that is needed: without it a scenario goes wrong.

For each comment the accesses of its statement are made relaxed (a fence is left out), in all places
where the compiler has put them, and the scenario that orders.toml names is explored: it must find a
fault. Where there is no such scenario, orders.toml says why not.

    orders.py PROGRAM           explore (PROGRAM: the scenarios, protocols.cpp)
    orders.py --check           only whether orders.toml and the comments agree: no entry without
                                a comment, no comment without an entry
    orders.py PROGRAM --search  for comments without an entry: which scenario finds a fault
    orders.py PROGRAM --weaker  for seq_cst and acq_rel: whether half of it would suffice
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("orders.toml")
COMMENT = re.compile(r"//.*\bpairs with:\s*(.*)$")
FAULT = 1
# From the weakest. The numbers are those of the __atomic builtins.
HALVES = {"acquire": 2, "release": 3, "acq_rel": 4}


@dataclass
class Order:
    """A comment, and the rows (from 1) of the statement that it is about."""

    file: str
    row: int
    text: str
    rows: range
    sites: list[str] = field(default_factory=list)


def statement(code: list[str], row: int) -> range:
    """Rows (from 0) of the statement at `row`, or of the next one below where there is no code."""
    first = row
    while first < len(code) and not code[first].strip():
        first += 1
    last = first
    while last < len(code) - 1 and not re.search(r"[;{}]\s*$", code[last]):
        last += 1
    if first == row:
        while first > 0 and code[first - 1].strip() and not re.search(r"[;{}:]\s*$", code[first - 1]):
            first -= 1
    return range(first, last + 1)


def orders_in(path: Path, name: str) -> list[Order]:
    """The comments of a file; those of one text are numbered."""
    lines = path.read_text(encoding="utf-8").split("\n")
    code = [re.sub(r"//.*", "", line) for line in lines]
    found = []
    seen: dict[str, int] = defaultdict(int)
    for row, line in enumerate(lines):
        match = COMMENT.search(line)
        if not match:
            continue
        text = match[1].strip()
        seen[text] += 1
        if seen[text] > 1:
            text += f" #{seen[text]}"
        rows = statement(code, row)
        found.append(Order(name, row + 1, text, range(rows.start + 1, rows.stop + 1)))
    return found


def all_orders() -> list[Order]:
    files = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in (".h", ".cpp"))
    return [o for path in files for o in orders_in(path, path.relative_to(ROOT / "src").as_posix())]


def disagreements(orders: list[Order], table: dict) -> list[str]:
    wrong = []
    known = {(o.file, o.text) for o in orders}
    for order in orders:
        if entry_of(order, table) is None:
            wrong.append(f"src/{order.file}:{order.row}: no entry in orders.toml: {order.text}")
    for file, entries in table.items():
        for text in entries:
            if text == "*":
                if not any(o.file == file for o in orders):
                    wrong.append(f"orders.toml: no comment in src/{file}")
            elif (file, text) not in known:
                wrong.append(f"orders.toml: no such comment in src/{file}: {text}")
    return wrong


def entry_of(order: Order, table: dict) -> str | dict | None:
    entries = table.get(order.file, {})
    return entries.get(order.text, entries.get("*"))


class Program:
    """The scenarios. An access is named by the address that its call returns to."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.environment = dict(os.environ)
        self.scenarios = self.run("--list")[1].split()
        self.sites: dict[str, list[str]] = {}  # of each scenario
        for name in self.scenarios:
            output = self.run(name, "--sites")[1]
            self.sites[name] = re.findall(r"^site (\w+)$", output, re.M)
        self.places = self.resolve(sorted({s for sites in self.sites.values() for s in sites}))

    def run(self, *arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [self.path, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            env=self.environment,
            check=False,
            timeout=300,
        )
        return done.returncode, done.stdout

    def resolve(self, sites: list[str]) -> dict[str, tuple[str, int]]:
        """File below src/ and row of each site: the innermost frame that is ours."""
        text = "\n".join(hex(int(site, 16) - 1) for site in sites)
        output = subprocess.run(
            ["addr2line", "-a", "-i", "-e", self.path], input=text, capture_output=True, text=True, check=True
        ).stdout
        places: dict[str, tuple[str, int]] = {}
        current = ""
        for line in output.split("\n"):
            if line.startswith("0x"):
                current = f"{int(line, 16) + 1:x}"
                continue
            match = re.match(r"(.*?)(?:/\./|/)src/((?:\w+/)+\w+\.\w+):(\d+)", line)
            if match and current not in places and "/include/c++/" not in line:
                places[current] = (match[2], int(match[3]))
        return places

    def finds(self, order: Order, scenario: str, weaker: int = 0) -> bool:
        sites = [s for s in order.sites if s in self.sites[scenario]]
        if not sites:
            return False
        weaken = [a for s in sites for a in ("--weaken", f"{s}={weaker}")]
        code, output = self.run(scenario, *weaken)
        if code not in (0, FAULT, 2) and code >= 0:
            raise SystemExit(f"{scenario} with {' '.join(weaken)}: exit code {code}\n{output}")
        return code not in (0, 2)


def explore(program: Program, orders: list[Order], table: dict) -> int:
    """Each named scenario finds its fault."""

    def check(order: Order) -> str | None:
        entry = entry_of(order, table)
        if not isinstance(entry, str):
            return None
        if entry not in program.sites:
            return f"src/{order.file}:{order.row}: no scenario {entry}"
        if program.finds(order, entry):
            return ""
        return f"src/{order.file}:{order.row}: {entry} does not need it: {order.text}"

    with ThreadPoolExecutor(2) as pool:
        results = [r for r in pool.map(check, orders) if r is not None]
    wrong = [r for r in results if r]
    print("\n".join(wrong))
    excused = sum(isinstance(entry_of(o, table), dict) for o in orders)
    print(f"{len(orders)} orders: {len(results) - len(wrong)} are needed, {excused} excused, {len(wrong)} wrong")
    return 1 if wrong else 0


def search(program: Program, orders: list[Order], table: dict) -> int:
    def find(order: Order) -> str:
        if not order.sites:
            return "is in no scenario"
        for scenario in program.scenarios:
            if program.finds(order, scenario):
                return scenario
        names = [s for s in program.scenarios if set(order.sites) & set(program.sites[s])]
        return "not found in " + " ".join(names)

    left = [o for o in orders if entry_of(o, table) is None]
    with ThreadPoolExecutor(2) as pool:
        for order, found in zip(left, pool.map(find, left), strict=True):
            print(f"{order.file}:{order.row}: {order.text}: {found}", flush=True)
    return 0


def weaker(program: Program, orders: list[Order], table: dict) -> int:
    for order in orders:
        entry = entry_of(order, table)
        if not isinstance(entry, str):
            continue
        text = (ROOT / "src" / order.file).read_text(encoding="utf-8").split("\n")
        code = "\n".join(text[row - 1] for row in order.rows)
        if "seq_cst" not in code and "acq_rel" not in code:
            continue
        enough = [
            name
            for name, number in HALVES.items()
            if f"_{name}" not in code and not any(program.finds(order, s, number) for s in program.scenarios)
        ]
        if enough:
            print(f"src/{order.file}:{order.row}: would do as {' or '.join(enough)}: {order.text}", flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="the scenarios")
    parser.add_argument("--check", action="store_true", help="the table against the comments, no more")
    parser.add_argument("--search", action="store_true", help="for comments without an entry")
    parser.add_argument("--weaker", action="store_true", help="which orders could be weaker")
    arguments = parser.parse_args()
    table = tomllib.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    orders = all_orders()
    wrong = disagreements(orders, table)
    if arguments.check or not arguments.program:
        print("\n".join(wrong) or f"{len(orders)} orders, each with an entry")
        return 1 if wrong else 0
    program = Program(arguments.program)
    by_place = defaultdict(list)
    for site, place in program.places.items():
        by_place[place].append(site)
    for order in orders:
        order.sites = [s for row in order.rows for s in by_place.get((order.file, row), [])]
    if arguments.search:
        return search(program, orders, table)
    if arguments.weaker:
        return weaker(program, orders, table)
    return explore(program, orders, table)


if __name__ == "__main__":
    sys.exit(main())
