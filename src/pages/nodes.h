// SPDX-License-Identifier: MIT
//
// Which NUMA node a hugepage's memory shall come from. A page goes to the node of the CPU that touches it first, which
// is the right one as long as a hugepage stays with its node; the kernel is told in addition, for pages that another
// node's CPU touches first, or again after they went back.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::pages {

// The range's hugepages belong to `node` (below os::kMaxNodes) from now on. One system call at most, and none before
// memory is wanted on another node than 0: a machine of one node never makes it. Caller holds the heap lock.
void prefer_node(std::uint64_t start, std::size_t bytes, unsigned node);

}  // namespace brimful::pages
