#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# CPython's own tests for multiprocessing with forked and with spawned workers: fork while threads run, shared heaps,
# queues with feeder threads.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/_python_tests.sh"

find_python
prove_python
run_module test.test_multiprocessing_fork WithProcessesTestQueue WithProcessesTestPool WithProcessesTestHeap WithProcessesTestLock
run_module test.test_multiprocessing_spawn WithProcessesTestQueue WithProcessesTestHeap
