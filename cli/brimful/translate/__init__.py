# SPDX-License-Identifier: MIT
"""`brimful translate`: settings of other allocators in brimful's terms."""
