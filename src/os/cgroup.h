// SPDX-License-Identifier: MIT
//
// What the process's control group says about memory: its limits, its accounting of refusals, and how much its tasks stall.
//
// Both versions are read: v2 (memory.max, memory.high, memory.events, memory.pressure) and v1 (memory.limit_in_bytes,
// memory.soft_limit_in_bytes, memory.failcnt). /proc/self/cgroup names the group; inside a container that path may
// be the host's and lead nowhere below the mount that the container sees, and then the mount itself is the group: so
// every folder on the path is asked, and those that are not there say nothing. The least limit of all counts, because the
// kernel enforces each.
//
// Sources: cgroups(7), Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of Linux.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::os {

inline constexpr std::size_t kNoLimit = SIZE_MAX;

// Where the kernel shows groups; tests have folders of their own.
struct CgroupPlaces {
  const char* membership = "/proc/self/cgroup";
  const char* unified = "/sys/fs/cgroup";        // v2
  const char* memory = "/sys/fs/cgroup/memory";  // v1, by the usual mount
};

// A group of the memory controller. Larger than a thread's stack has room for: not to be made there by the allocator.
struct MemoryGroup {
  static constexpr std::size_t kMostPath = 1024;
  char folder[kMostPath];    // of the group, without '/' at its end
  std::size_t mount_length;  // how much of it is the mount; 0: no group is known
  bool is_unified;
  char membership[4096];  // the file that names the group, while it is read
};

struct GroupLimits {
  std::size_t most;  // above it the kernel kills; kNoLimit: none
  std::size_t high;  // above it the kernel throttles and reclaims; kNoLimit: none
};

// The group of this process; mount_length 0 when there is none (no controller, no /proc). One file is read, no allocation.
void find_memory_group(MemoryGroup& into, const CgroupPlaces& places);

// The least limits of the group and those above it. Two files for each of them.
GroupLimits group_limits(const MemoryGroup& group);

// How often the group was reclaimed for reaching its limit (v2: "high" and "max" of memory.events, v1: memory.failcnt),
// since it exists. One file.
std::uint64_t group_refusals(const MemoryGroup& group);

// Share of the last ten seconds in which some task waited for memory, in hundredths of a percent: of the group where
// the kernel says it (v2), else of the system. 0 when it does not say. One file or two.
std::uint32_t memory_stall(const MemoryGroup& group, const char* system_file = "/proc/pressure/memory");

}  // namespace brimful::os
