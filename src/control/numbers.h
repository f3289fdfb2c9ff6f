// SPDX-License-Identifier: MIT
//
// The numbers of the heap as of one moment, the epoch, as jemalloc has it: a program renews them, and then reads as many of
// them as it likes, which belong together.
//
// A look costs time in proportion to the heap (stats/snapshot.h), and servers take one ten times a second, whatever
// their heap: so where a look takes more than half a millisecond, the next is taken when fifty times that have gone by, and
// until then the numbers stay as they are. The price of watching is some 2 % of one processor's time.
#pragma once

#include <cstdint>

#include "stats/snapshot.h"

namespace brimful::control {

// Bytes, but for the first.
struct Numbers {
  std::uint64_t epoch;      // how often they were taken
  std::uint64_t allocated;  // of live objects and blocks: the sum of the next two
  std::uint64_t small;      // of size classes
  std::uint64_t large;      // blocks above them
  std::uint64_t active;     // whole pages of slabs and blocks with something live
  std::uint64_t dirty;      // free, not given back
  std::uint64_t muzzy;      // of those: the system may take them
  std::uint64_t metadata;
  std::uint64_t resident;  // active, dirty and metadata: at most so much is resident, for what was never touched is not
  std::uint64_t mapped;    // active and metadata
  std::uint64_t retained;  // address space that was in use and is neither active nor dirty
  std::uint64_t purged;    // given back since the process began
  stats::ClassUse classes[kClassCount];
};

// Takes them anew, or leaves them when that was too short a time ago. 0, or EDEADLK in a signal handler that interrupted the
// allocator in this thread. Takes the heap lock: O(granules in use).
int renew();

// The numbers of the last renew(), or the first. 0, or EDEADLK. Takes the heap lock: O(1).
int read(Numbers& into);

}  // namespace brimful::control
