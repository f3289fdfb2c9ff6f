// SPDX-License-Identifier: MIT
//
// pages/nodes.h.
#include "pages/nodes.h"

#include "os/calls.h"
#include "os/numa.h"

namespace brimful::pages {
namespace {

// Each preference may split a mapping, and a process has 65530 of them (vm.max_map_count).
constexpr unsigned kMostPreferences = 8192;
constinit unsigned preferences = 0;  // guarded by the heap lock

}  // namespace

void prefer_node(std::uint64_t start, std::size_t bytes, unsigned node) {
  if (node == 0 && preferences == 0) return;
  // Where numbers of nodes are folded, ours does not say which node is meant.
  if (preferences == kMostPreferences || os::numa_nodes() > os::kMaxNodes) return;
  ++preferences;
  os::calls.prefer_node(start, bytes, node);
}

}  // namespace brimful::pages
