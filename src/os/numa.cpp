// SPDX-License-Identifier: MIT
//
// os/numa.h on Linux.
#include "os/numa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "base/compiler.h"
#include "os/cpus.h"
#include "os/errno_guard.h"
#include "os/small_file.h"

namespace brimful::os {
namespace {

constexpr int kPreferred = 1;  // MPOL_PREFERRED

constinit std::atomic<std::uint32_t> known_nodes{0};

BRIMFUL_COLD std::uint32_t read_nodes() {
  char text[256];
  const long length = read_small_file("/sys/devices/system/node/online", text, sizeof text);
  const std::uint32_t count = length <= 0 || length == sizeof text - 1 ? 0 : count_cpu_ids(text);
  return count != 0 ? count : 1;
}

}  // namespace

std::uint32_t numa_nodes() {
  std::uint32_t nodes = known_nodes.load(std::memory_order_relaxed);  // relaxed: a number that never changes
  if (BRIMFUL_UNLIKELY(nodes == 0)) {
    nodes = read_nodes();
    known_nodes.store(nodes, std::memory_order_relaxed);  // relaxed: as above
  }
  return nodes;
}

std::uint32_t linux_node() {
  const RseqArea area = rseq_area();
  if (area.node_id != nullptr) {
    // relaxed: the kernel writes it when the thread moves; an old value costs locality, nothing else
    return std::atomic_ref(*area.node_id).load(std::memory_order_relaxed) % kMaxNodes;
  }
  if (numa_nodes() == 1) return 0;
  const ErrnoGuard guard;
  unsigned cpu = 0;
  unsigned node = 0;
  return syscall(SYS_getcpu, &cpu, &node, nullptr) == 0 ? node % kMaxNodes : 0;
}

bool linux_prefer_node(std::uintptr_t address, std::size_t bytes, std::uint32_t node) {
  const ErrnoGuard guard;
  const unsigned long mask = 1UL << node;
  return syscall(SYS_mbind, address, bytes, kPreferred, &mask, sizeof mask * 8, 0) == 0;
}

}  // namespace brimful::os
