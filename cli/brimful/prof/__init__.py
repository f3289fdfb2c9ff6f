# SPDX-License-Identifier: MIT
"""`brimful prof`: who allocated what a program holds, from samples of a running process.

From the inside out:

    stacks.py    a stack of calls as a reader sees it, and values for stacks
    samples.py   what brimful-observer saw: samples, each with its stacks, and what each stands for
    views.py     in use, allocated, lifetimes, growth, peak: values for stacks, from samples
    pprof.py     the same as a file of pprof (profile.proto), written and read
    folded.py    a line for each stack
    flame.py     a flame graph as one page of HTML (flame.html is its frame)
    table.py     the terminal
    observe.py   starting brimful-observer, and what it answers
    command.py   the command line
"""
