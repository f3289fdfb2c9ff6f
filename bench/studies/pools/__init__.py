# SPDX-License-Identifier: MIT
"""The pools (TLSF, page pool, handle pool) and the heaps, against rlsf, talc and general allocators.

From the inside out (each module imports only those above it):

    crates        the two Rust crates, compiled behind the same C functions (workloads/peers/)
    contenders    who takes part
    samples       the programs of workloads/, and one sample of one of them
    experiments   what is run, how often, and what is kept of it
    goals         what is promised, and whether a record keeps it
    tables        a record as tables
    charts        and as pictures
    study         what all of that is to `brimful bench study`
"""
