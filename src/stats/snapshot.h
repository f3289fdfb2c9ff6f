// SPDX-License-Identifier: MIT
//
// What the heap holds, counted on request by walking the granule table: the fast paths keep no counters. Exact for a
// quiet heap; while other threads allocate, each slab is read at a slightly different moment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "classes/size_classes.h"
#include "slots/events.h"

namespace brimful::stats {

struct ClassUse {
  std::uint64_t slabs;
  std::uint64_t live;  // objects
  std::uint64_t free;  // objects in slabs, not handed out
};

struct Snapshot {
  ClassUse classes[kClassCount];
  std::uint64_t large_blocks;
  std::uint64_t large_bytes;  // usable bytes of large blocks
  std::uint64_t huge_blocks;
  std::uint64_t huge_bytes;
  std::uint64_t guarded_objects;
  std::uint64_t guarded_bytes;    // that were asked for
  std::uint64_t live_bytes;       // of all objects and blocks
  std::uint64_t slab_free_bytes;  // of free objects in slabs
  std::uint64_t dirty_bytes;      // free runs and cached blocks, not given back yet
  std::uint64_t reserved_bytes;   // address space
  std::uint64_t committed_bytes;  // usable address space
  std::uint64_t hugetlb_bytes;    // of it: in pages of the system's pool
  std::uint64_t metadata_bytes;   // mapped for headers and contexts
  slots::EventCounts events;      // since the process began, by slots::Event; lossy by design
};

// Takes the heap lock. O(granules in use).
void take_snapshot(Snapshot& into);

}  // namespace brimful::stats
