// SPDX-License-Identifier: MIT
//
// pages/heap.h: the instance.
#include "pages/heap.h"

namespace brimful::pages {
namespace {

// Metadata in a window: taking a granule of one needs no metadata.
std::uintptr_t granule_for_metadata() {
  const std::uintptr_t granule = heap.pages.allocate_for_metadata();
  if (granule != 0) heap.pages.clear(granule, kGranuleBytes);
  return granule;
}

}  // namespace

constinit Heap heap;

void Heap::begin() {
  arena = meta::Arena(granule_for_metadata);
  pages.attach(table);
  huge = HugeBlocks(arena);
}

}  // namespace brimful::pages
