# SPDX-License-Identifier: MIT
"""`brimful bench study`: measurements that are no rows of the bench, each in a folder of its own.

A study is a folder `bench/studies/NAME/` of a checkout: `study.py` says what it is and how it is
measured, its programs, goals, tables and charts lie beside it. Whoever asks where a figure of a page
is from finds the study's name in the comment above it, and everything else in that folder.

From the inside out (each module imports only those above it):

    model       what a study is: its options, its parts, its pages
    records     what a study measured, in the envelope of docs/bench-format.md
    pages       figures and charts in the pages of docs/, between two comments
    contenders  which allocators take part
    hugepages   the system's transparent hugepages while something runs
    registry    the studies of this checkout
    runs        studies that are several runs of `brimful bench`
    command     the command line
"""
