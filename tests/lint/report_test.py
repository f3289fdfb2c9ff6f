#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tools/run_tests.py on a folder of three tests: reasons, cases, times, the count last, Ctrl-C."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
import unittest

from _tree import TOOLS, Tree

TESTS = """\
add_test(b.unit.some "sh" "-c" "echo 'skip  A.B: no such kernel'; echo '3 passed, 0 failed, 1 skipped'")
add_test(b.cli.python "sh" "-c" "echo 'Ran 4 tests in 0.1s'")
add_test(b.abi.absent "sh" "-c" "echo '--'; echo 'no such machine'; exit 77")
set_tests_properties(b.abi.absent PROPERTIES SKIP_RETURN_CODE 77)
"""


@unittest.skipUnless(shutil.which("ctest"), "ctest is not installed")
class Report(Tree):
    def run_tests(self, *arguments: str) -> tuple[int, str]:
        command = [sys.executable, str(TOOLS / "run_tests.py"), str(self.root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stdout

    def test_prints_reasons_cases_and_the_count_last(self) -> None:
        self.write("CTestTestfile.cmake", TESTS)
        self.write("build-seconds.txt", "700\n")
        code, output = self.run_tests()
        self.assertEqual(code, 0, output)
        self.assertIn("  b.abi.absent: no such machine\n", output)
        self.assertIn("  A.B in b.unit.some: no such kernel\n", output)
        self.assertRegex(output, r"(?m)^  all +[\d.]+ +[\d.]+ +7$")
        self.assertRegex(output, r"Building 700 s, testing \d+ s: .* it would have to lose 10\d s")
        self.assertRegex(output, r"\n100% tests passed, 0 tests failed out of 3\n\Z")
        self.assertFalse((self.root / "build-seconds.txt").exists(), "a second run builds nothing")

    def test_a_failure_is_the_exit_code_and_shown(self) -> None:
        self.write(
            "CTestTestfile.cmake", TESTS + 'add_test(b.abi.bad "sh" "-c" "echo WRONG; exit 1")\n'
        )
        code, output = self.run_tests()
        self.assertNotEqual(code, 0)
        self.assertIn("WRONG", output)
        self.assertRegex(output, r"75% tests passed, 1 tests? failed out of 4\n\Z")

    def test_an_interrupted_run_says_how_far_it_came(self) -> None:
        self.write("CTestTestfile.cmake", TESTS + 'add_test(b.stress.long "sleep" "50")\n')
        command = [sys.executable, str(TOOLS / "run_tests.py"), str(self.root), "--progress"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert child.stdout is not None
        lines = []
        for line in child.stdout:
            lines.append(line)
            if "3 of 4 done" in line:
                break
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        rest = child.stdout.read()
        child.stdout.close()
        self.assertEqual(child.wait(timeout=30), 130)
        self.assertRegex(
            rest, r"Interrupted: 3 of 4 done, 0 failed, 0:\d\d gone, about \d+:\d\d to go\n\Z"
        )


if __name__ == "__main__":
    unittest.main()
