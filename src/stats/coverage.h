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
};

// Takes the heap lock. The kernel walks the process' page tables: about 1 ms for each GiB of small pages.
void read_coverage(Coverage& into);

}  // namespace brimful::stats
