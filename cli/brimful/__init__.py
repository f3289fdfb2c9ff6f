# SPDX-License-Identifier: MIT
"""Command-line side of brimful, the drop-in malloc.

`run` starts a program under the allocator; it is on the path of every process that somebody starts
this way, so nothing it needs may import more than os, sys and signal. Everything else may use typer
and rich, and is imported only when it is asked for.
"""

__version__ = "0.1.0"
