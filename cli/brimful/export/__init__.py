# SPDX-License-Identifier: MIT
"""`brimful export`: the heaps of running processes as metrics of Prometheus (docs/guide/monitoring.md).

look.py      one look at the processes, by the observer, which reads them from outside
metrics.py   which figure of a look is which metric: one table
command.py   who asks: a server on loopback, or the terminal
"""
