// SPDX-License-Identifier: MIT
//
// Where the memory of the heap is: who holds the slabs, what waits in pending entries, what the metadata takes.
//
// Shared slabs are left out. On a machine where no lock is ever found taken, they are the reserve for signal handlers
// (alloc/emergency.h) and nothing else.
#pragma once

#include <cstdint>

#include "machine.h"

namespace brimful::topology {

struct Census {
  std::uint64_t live_bytes;       // of objects that the program has not freed, by their classes' sizes
  std::uint64_t pending_objects;  // freed, but waiting in a pending entry: their owners don't know yet
  std::uint64_t pending_bytes;
  std::uint64_t slab_bytes;      // address space of all slabs
  std::uint64_t resident_bytes;  // the part of it that memory stands behind
  std::uint64_t free_bytes;      // free objects in them
  std::uint64_t slabs;
  std::uint64_t owned_slabs;  // by contexts
  std::uint64_t most_owned;   // by one context
  std::uint64_t detached_slabs;
  std::uint64_t central_slabs;
  std::uint64_t contexts;
  std::uint64_t context_bytes;   // of all contexts
  std::uint64_t header_bytes;    // of the slabs' headers
  std::uint64_t metadata_bytes;  // mapped for headers and contexts
  std::uint64_t table_bytes;     // of granule table and flags, as far as granules were ever used
};

// Call it when no CPU runs.
Census take_census();

}  // namespace brimful::topology
