#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# CPython's own tests for json, threading and subprocess, every object on malloc.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/_python_tests.sh"

find_python
prove_python
run_module test.test_json
run_module test.test_threading ThreadTests LockTests BarrierTests SemaphoreTests ThreadingExceptionTests
run_module test.test_subprocess POSIXProcessTestCase CommandTests ContextManagerTests
