// SPDX-License-Identifier: MIT
//
// Where the resident memory is: what holds live objects, and what is waste, by kind and by class.
//
//   resident ─┬─ live             pages' bytes that live objects and blocks cover ──┬─ asked for
//             │                                                                     └─ internal fragmentation (estimate)
//             ├─ free in slabs    free objects, and what is left behind the last one ──┐
//             ├─ free runs        freed, not given back yet                            ┴─ external fragmentation
//             └─ metadata         headers, contexts, tables
//
// *Ullage*, of a barrel the part that is not filled, is (resident - live) / resident. All of it is what the kernel says
// page by page (os/resident.h), so the sum is what smaps counts for our mappings; a live object that was never touched is
// not there. Only internal fragmentation is an estimate, from the requests that slow paths saw (slots/requests.h).
//
// Rejected: counting at malloc and free (a load and a store on each hit, and still no word on what is resident).
#pragma once

#include <cstddef>
#include <cstdint>

#include "classes/size_classes.h"
#include "slots/requests.h"
#include "slots/samples.h"

namespace brimful::stats {

// Of one size class, or of the blocks that have granules or a mapping of their own.
struct MemoryUse {
  std::uint64_t slabs;           // or blocks
  std::uint64_t live;            // objects or blocks
  std::uint64_t resident_bytes;  // of slabs or blocks, with what is left behind them
  std::uint64_t live_bytes;      // of those: covered by live objects
  slots::RequestSums requests;   // that slow paths saw

  // Of the live bytes those that nobody asked for, as far as the requests tell.
  [[nodiscard]] std::uint64_t internal_bytes() const;
};

struct MemoryReport {
  MemoryUse classes[kClassCount];
  MemoryUse blocks;
  std::uint64_t resident_bytes;   // the sum of the next four
  std::uint64_t live_bytes;       // live objects and blocks
  std::uint64_t slab_free_bytes;  // free objects, and the ends of slabs and blocks
  std::uint64_t run_free_bytes;   // free granules
  std::uint64_t metadata_bytes;
  std::uint64_t internal_bytes;  // of live_bytes: not asked for (estimate)
  slots::SampledUse sampled;     // by the samples that are live, while some are: an estimate without bias

  [[nodiscard]] std::uint64_t external_bytes() const { return slab_free_bytes + run_free_bytes; }
};

// A share in thousandths; 0 of nothing.
std::uint64_t share(std::uint64_t part, std::uint64_t whole);

// Holds the heap lock for about 10 ns a resident page and 1 ns an object of partly free slabs: 5 ms for a GiB.
// Exact for a quiet heap.
void take_memory_report(MemoryReport& into);

}  // namespace brimful::stats
