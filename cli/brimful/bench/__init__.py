# SPDX-License-Identifier: MIT
"""`brimful bench`: compares allocators on this machine and says how sure it is.

The rules that all of it follows, because a figure that breaks one of them is worth nothing: every
sample is a fresh process; allocators take turns in an order drawn anew for each round, so that drift
of the machine hits all alike; samples of one round are compared with each other (paired ratios), and
the median of those is given with a bootstrap interval; one allocator runs twice in every round, and
what that pair differs by is the noise floor; a run that failed, crashed, hung or did not have its
allocator is a failed cell with its reason, never a number and never a gap.

From the inside out (each module imports only those above it):

    model         what a result file says: allocators, cells, samples, and nothing that computes
    statistics    medians, paired ratios, intervals, verdicts, the noise floor
    machine       the facts about this machine that a figure depends on
    building      compiling what the bench runs
    allocators    what can be compared here: glibc, brimful, and what `make rivals` has built
    contention    contended locks: what brimful prints of them, and what that is per operation
    catalog       the workloads: ours (bench/workloads/*.toml), real programs, the user's command
    programs      the real programs among them
    proof         which allocator a process had
    launch        one process, started by bench/micro/measure.c
    sample        what became of it: figures, or a status with its reason
    counted       ten hot rows by instructions inside the library
    tables        the shape of everything that is computed from samples
    engine        rounds: who runs when, and when it is enough
    progress      what one sees meanwhile
    checkpoint    a league on disk: it can be stopped anywhere
    passes        which row of it is measured next, and how often
    summary       the tables of a result: rows, league, noise floor, losses
    wording       how a figure is written
    league        those tables in the terminal
    markdown      those tables for a page such as docs/evaluation.md
    concurrency   the figures about threads that meet, for the same page
    charts, report   the same as pictures, and the one HTML file
    gate, compare    B against A, and how that is printed
    interpreter   where the packages are that all this needs
    options       what the words of a command line mean
    league_progress, league_command   `brimful bench league`
    command       the command line
"""
