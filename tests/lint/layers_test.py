#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check_layers.py accepts includes that go down and rejects everything else it says it rejects."""

from __future__ import annotations

import unittest

from _tree import Tree


class Layers(Tree):
    def check(self) -> tuple[int, str]:
        return self.run_checker("check_layers.py", "--root", str(self.root))

    def assert_rejected(self, reason: str) -> None:
        code, output = self.check()
        self.assertEqual(code, 1, output)
        self.assertIn(reason, output)

    def test_includes_that_go_down_pass(self) -> None:
        self.write("src/base/units.h", "#pragma once\n#include <cstdint>\n")
        self.write("src/pages/heap.h", '#include "base/units.h"\n#include "pages/run.h"\n')
        self.write("src/abi/malloc.cpp", '#include "brimful/brimful.h"\n#include "pages/heap.h"\n')
        code, output = self.check()
        self.assertEqual(code, 0, output)

    def test_an_include_that_goes_up_is_rejected(self) -> None:
        self.write("src/base/units.h", '#include "pages/heap.h"\n')
        self.assert_rejected("src/base/units.h:1")

    def test_an_include_that_goes_up_in_angle_brackets_is_rejected(self) -> None:
        self.write("src/pages/heap.h", "")
        self.write("src/base/units.h", "#include <pages/heap.h>\n")
        self.assert_rejected("includes only go down")

    def test_siblings_must_not_include_each_other(self) -> None:
        self.write("src/pools/tlsf.h", '#include "alloc/route.h"\n')
        self.assert_rejected("siblings")

    def test_pools_may_include_the_lowest_layers_only(self) -> None:
        self.write("src/pools/handle.h", '#include "sync/mutex.h"\n')
        self.assert_rejected("pools includes arch and base only")

    def test_a_bare_file_name_is_rejected(self) -> None:
        self.write("src/pages/heap.h", '#include "run.h"\n')
        self.assert_rejected("a layer's name must come first")

    def test_dots_are_rejected(self) -> None:
        self.write("src/pages/heap.h", '#include "pages/../abi/malloc.h"\n')
        self.assert_rejected("without ..")

    def test_a_folder_that_is_no_layer_is_rejected(self) -> None:
        self.write("src/utils/misc.h", "")
        self.assert_rejected("no layer has this name")

    def test_conditional_compilation_is_rejected_outside_its_places(self) -> None:
        for directive in ("#if 1", "#ifdef __linux__", "  #  ifndef GUARD", "#else"):
            with self.subTest(directive=directive):
                self.write("src/pages/heap.h", f"{directive}\n")
                self.assert_rejected("compile conditionally")

    def test_conditional_compilation_is_accepted_in_its_places(self) -> None:
        for name in ("base/compiler.h", "config/build.h", "arch/x86_64/hint.h"):
            self.write(f"src/{name}", "#if 1\n#endif\n")
        code, output = self.check()
        self.assertEqual(code, 0, output)

    def test_an_empty_tree_is_no_success(self) -> None:
        self.assert_rejected("nothing was checked")


if __name__ == "__main__":
    unittest.main()
