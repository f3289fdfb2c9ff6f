// SPDX-License-Identifier: MIT
//
// pages/heap.h: the instance.
#include "pages/heap.h"

#include "base/compiler.h"

namespace brimful::pages {
namespace {

// Metadata in a window: taking a granule of one needs no metadata.
std::uintptr_t granule_for_metadata() {
  const std::uintptr_t granule = heap.pages.allocate_for_metadata();
  if (granule != 0) heap.pages.clear(granule, kGranuleBytes);
  return granule;
}

// Room for a context and the headers of some sixty slabs. What is not used of it is not resident.
BRIMFUL_ZEROS_METADATA constinit struct alignas(meta::Arena::kUnit) {
  std::byte bytes[std::size_t{128} << 10];
} first_metadata = {};

}  // namespace

BRIMFUL_ZEROS_HEAP constinit Heap heap;

void Heap::begin() {
  arena.begin(granule_for_metadata, first_metadata.bytes, sizeof first_metadata.bytes);
  pages.attach(table);
  huge = HugeBlocks(arena);
}

}  // namespace brimful::pages
