// SPDX-License-Identifier: MIT
//
// How much of the heap hugepages back, and how much was populated (pages/backing.h).
#pragma once

#include <cstdint>

namespace brimful::stats {

struct Coverage {
  std::uint64_t advised_bytes;    // address space that says MADV_HUGEPAGE now
  std::uint64_t huge_bytes;       // of the whole process in hugepages: AnonHugePages of /proc/self/smaps_rollup
  std::uint64_t populated_bytes;  // by calls instead of faults, in total
  // What new memory costs here, ns for each page of 4 KiB; 0: not measured (pages/fault_costs.h).
  std::uint64_t touched_ns;
  std::uint64_t populated_ns;
  std::uint64_t huge_ns;
  bool is_refused;  // so no hugepages are asked for
};

// Takes the heap lock. The kernel walks the process' page tables: about 1 ms for each GiB of small pages.
void read_coverage(Coverage& into);

}  // namespace brimful::stats
