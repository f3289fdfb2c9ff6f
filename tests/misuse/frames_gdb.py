# SPDX-License-Identifier: MIT
"""A script for gdb: steps through the calls of frames.c, by instruction where they are in assembly.

From each instruction the way out has to lead to `caller`: that is what a debugger shows of a core, wherever
the program was stopped, and what profilers see that interrupt it. Compilers see to their own code; that
is only entered and left. Prints how many instructions were seen, and where the way was lost.
"""

import gdb  # type: ignore[import-untyped]  # there is one inside of gdb only

MOST_STEPS = 3000
MOST_FRAMES = 40


def is_assembly(frame: gdb.Frame) -> bool:
    """Code of the library that was written by hand: it has no lines, or those of a .S file."""
    table = frame.find_sal().symtab
    return table is None or table.filename.endswith(".S")


def way_out(frame: gdb.Frame) -> list[gdb.Frame]:
    """The frames from this one to `caller`, or as far as the way leads."""
    frames = [frame]
    while frames[-1].name() != "caller" and len(frames) < MOST_FRAMES and frames[-1].older():
        frames.append(frames[-1].older())
    return frames


gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("break caller")
gdb.execute("run")
seen: set[int] = set()
lost: dict[str, str] = {}
for _ in range(MOST_STEPS):
    gdb.execute("stepi", to_string=True)
    newest = gdb.newest_frame()
    if newest.name() == "main":
        break
    way = way_out(newest)
    if newest.pc() not in seen and way[-1].name() != "caller":
        lost[hex(newest.pc())] = " < ".join(str(frame.name()) for frame in way)
    if is_assembly(newest):
        seen.add(newest.pc())
        continue
    back = next((frame for frame in way if is_assembly(frame) or frame.name() == "caller"), None)
    if back is not None and back.pc() != newest.pc():
        gdb.execute(f"tbreak *{back.pc()}", to_string=True)
        gdb.execute("continue", to_string=True)
for place, names in lost.items():
    print(f"lost {place} {names}")
print(f"frames: {len(seen)} instructions in assembly, {len(lost)} lost")
gdb.execute("kill")
