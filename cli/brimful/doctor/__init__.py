# SPDX-License-Identifier: MIT
"""`brimful doctor`: why brimful is not in a program, or does not help it."""
