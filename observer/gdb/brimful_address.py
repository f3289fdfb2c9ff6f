# SPDX-License-Identifier: MIT
"""The gdb command `brimful-address EXPRESSION`: what of brimful's heap lies at an address.

    (gdb) source …/share/brimful/gdb/brimful_address.py
    (gdb) brimful-address ptr

It asks `brimful inspect --address`, with the process or the core that gdb looks at: brimful must be in
the PATH, or BRIMFUL say where it is.
"""

import os
import re
import subprocess

import gdb


def _target():
    """What `brimful inspect` takes: the process's number, or the core's path."""
    files = gdb.execute("info files", to_string=True)
    core = re.search(r"core dump file:\s*`([^']+)'", files)
    if core:
        return core.group(1)
    process = gdb.selected_inferior().pid
    if not process:
        raise gdb.GdbError("brimful-address: there is no process and no core")
    return str(process)


class BrimfulAddress(gdb.Command):
    """What of brimful's heap lies at an address: brimful-address EXPRESSION

The object or block, live or free, its start and end, how far into it the address is, its neighbours."""

    def __init__(self):
        super().__init__("brimful-address", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError("brimful-address: an address or an expression is wanted")
        address = int(gdb.parse_and_eval(argument).cast(gdb.lookup_type("unsigned long")))
        command = [os.environ.get("BRIMFUL", "brimful"), "inspect", _target(), "--address", hex(address)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise gdb.GdbError(f"brimful-address: {command[0]}: {error.strerror} (BRIMFUL names it)") from None
        gdb.write(done.stdout)
        if done.returncode != 0:
            raise gdb.GdbError(done.stderr.strip())


BrimfulAddress()
