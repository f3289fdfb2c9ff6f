// SPDX-License-Identifier: MIT
//
// Hugepages of the system's pool (HugeTLB: /proc/sys/vm/nr_hugepages), which are never split and never swapped, and which
// the kernel charges when they are mapped: a mapping that succeeds never fails when it is touched.
//
// Sources: mmap(2) (MAP_HUGETLB), mremap(2), Documentation/admin-guide/mm/hugetlbpage.rst.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::os {

inline constexpr unsigned kHugetlb2M = 21;  // log2 of the page's bytes
inline constexpr unsigned kHugetlb1G = 30;

// Puts pages of the pool in the place of [address, address + bytes), which we own and nobody uses, both multiples of the page
// size: readable and writable zeros. false, and nothing changed: the pool has not as many, or the kernel is older
// than 5.16. By os::calls.map_hugetlb.
//
// The pages are mapped elsewhere first and then moved: mmap over the place would take it away before it looks into the
// pool, and leave a hole for others' mappings.
bool linux_map_hugetlb(std::uintptr_t address, std::size_t bytes, unsigned page_shift);

}  // namespace brimful::os
