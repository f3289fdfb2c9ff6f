# SPDX-License-Identifier: MIT
"""`brimful top`: the heaps of running programs, on one screen, once a second.

From the inside out:

    observe     brimful-observer stats, its lines as they come, and what happened between two of them
    layout      figures as text: sizes, rates, bars
    views       the list of processes, one process, the help: lines for a width and a height
    screen      the terminal: keys, signals, its state before and after
    command     the options; one picture, a stream of JSON, or the screen

The processes run nothing for it and are not stopped. Calls of malloc and free are nowhere counted:
their rates are estimates, and carry a `~`.
"""
