// SPDX-License-Identifier: MIT
//
// NUMA: which node the running CPU belongs to, and where the kernel shall take memory from.
//
// The node comes from the thread's rseq area (field node_id, Linux 6.3), a load, else from getcpu(2), which is asked
// only where /sys names more than one node. A machine of one node has node 0 and never makes a call.
//
// Sources: rseq(2), getcpu(2), mbind(2).
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::os {

// Nodes that the allocator keeps apart; the numbers of greater ones are taken modulo this.
inline constexpr std::uint32_t kMaxNodes = 8;

// One more than the greatest number of a node that is online, as /sys says; 1 when it does not say. The first call reads a
// file.
std::uint32_t numa_nodes();

// The running CPU's node, below kMaxNodes. By os::calls.node, so that a test can be on any node.
std::uint32_t linux_node();

// Asks the kernel to take the range's pages from `node` as long as it has some (MPOL_PREFERRED); pages that are
// there stay. false: it refuses, or has no such call.
bool linux_prefer_node(std::uintptr_t address, std::size_t bytes, std::uint32_t node);

}  // namespace brimful::os
