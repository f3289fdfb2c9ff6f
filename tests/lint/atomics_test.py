#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check_atomics.py wants an order on every atomic operation and a reason beside every order."""

from __future__ import annotations

import unittest

from _tree import Tree


class Atomics(Tree):
    def check(self, text: str) -> tuple[int, str]:
        self.write("src/sync/x.cpp", text)
        return self.run_checker("check_atomics.py", "--root", str(self.root))

    def assert_accepted(self, text: str) -> None:
        code, output = self.check(text)
        self.assertEqual(code, 0, output)

    def assert_rejected(self, text: str, reason: str) -> None:
        code, output = self.check(text)
        self.assertEqual(code, 1, output)
        self.assertIn(reason, output)

    def test_an_operation_without_an_order_is_rejected(self) -> None:
        for call in ("a.load()", "a->store(1)", "a.fetch_or(bits)", "a.exchange(f(1, g(2)))"):
            with self.subTest(call=call):
                self.assert_rejected(f"x = {call};\n", "names no memory order")

    def test_an_acquire_without_its_pair_is_rejected(self) -> None:
        self.assert_rejected("a.load(std::memory_order_acquire);\n", "without `// pairs with")

    def test_every_strong_order_needs_its_pair(self) -> None:
        for order in ("acquire", "release", "acq_rel", "seq_cst"):
            with self.subTest(order=order):
                self.assert_rejected(f"a.exchange(1, std::memory_order::{order});\n", order)

    def test_a_pair_without_a_place_is_rejected(self) -> None:
        text = "a.load(std::memory_order_acquire);  // pairs with:\n"
        self.assert_rejected(text, "without `// pairs with")

    def test_a_relaxed_without_a_reason_is_rejected(self) -> None:
        text = "a.load(std::memory_order_relaxed);  // pairs with: nothing\n"
        self.assert_rejected(text, "without `// relaxed")

    def test_a_comment_on_the_line_is_accepted(self) -> None:
        self.assert_accepted(
            "a.load(std::memory_order_acquire);  // pairs with: put() (the slab)\n"
        )

    def test_a_comment_above_is_accepted(self) -> None:
        self.assert_accepted(
            "// pairs with: get() (the slab).\n// More text.\na.store(1, std::memory_order_release);\n"
        )

    def test_a_comment_above_a_statement_of_several_lines_is_accepted(self) -> None:
        self.assert_accepted(
            "// relaxed: only a hint\nfoo(1,\n    a.fetch_add(1,\n    std::memory_order_relaxed));\n"
        )

    def test_a_comment_two_statements_above_is_rejected(self) -> None:
        self.assert_rejected(
            "// relaxed: only a hint\nint b = 0;\na.load(std::memory_order_relaxed);\n",
            "relaxed without",
        )

    def test_operations_in_consecutive_lines_share_a_comment(self) -> None:
        self.assert_accepted(
            "// relaxed: before the first thread\n"
            "a.store(1, std::memory_order_relaxed);\n"
            "b.store(1, std::memory_order_relaxed);\n"
        )

    def test_a_compare_exchange_owes_a_reason_for_both_orders(self) -> None:
        self.assert_rejected(
            "// pairs with: unlock()\n"
            "a.compare_exchange_strong(e, 1, std::memory_order_acquire,\n"
            "                          std::memory_order_relaxed);\n",
            "relaxed without",
        )

    def test_fences_builtins_and_free_functions_count(self) -> None:
        for call in (
            "std::atomic_thread_fence(std::memory_order_seq_cst)",
            "__atomic_load_n(&x, __ATOMIC_ACQUIRE)",
            "std::atomic_load_explicit(&x, std::memory_order_acquire)",
        ):
            with self.subTest(call=call):
                self.assert_rejected(f"{call};\n", "without `// pairs with")

    def test_sync_builtins_and_consume_are_rejected(self) -> None:
        self.assert_rejected("__sync_synchronize();\n", "not __sync")
        self.assert_rejected("a.load(std::memory_order_consume);\n", "is not used here")

    def test_an_order_that_is_a_parameter_is_the_callers_business(self) -> None:
        self.assert_accepted("T load(std::memory_order order) { return value_.load(order); }\n")

    def test_operators_on_a_declared_atomic_are_rejected(self) -> None:
        for use in ("count_++;", "--count_;", "count_ += 2;", "count_ = 0;", "count_ |= 4;"):
            with self.subTest(use=use):
                text = f"std::atomic<int> count_{{0}};\nvoid f() {{ {use} }}\n"
                self.assert_rejected(text, "operator on an atomic")

    def test_comments_and_strings_are_not_code(self) -> None:
        self.assert_accepted('// a.load()\n/* b.load() */ const char* s = "c.load()";\n')

    def test_a_digit_separator_starts_no_character(self) -> None:
        self.assert_rejected("int n = 1'000;\na.load();\nint m = 2'000;\n", "names no memory order")


if __name__ == "__main__":
    unittest.main()
