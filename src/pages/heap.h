// SPDX-License-Identifier: MIT
//
// The heap: the one instance of everything below the front end, and the lock that guards it.
#pragma once

#include "meta/arena.h"
#include "meta/granule_table.h"
#include "pages/huge.h"
#include "pages/page_heap.h"
#include "sync/mutex.h"

namespace brimful::pages {

struct Heap {
  constexpr explicit Heap(meta::Arena::Fallback fallback) : arena(fallback) {}

  sync::HeapMutex lock;
  meta::Arena arena;
  meta::GranuleTable table;
  PageHeap pages{table};
  HugeBlocks huge{arena};
};

extern Heap heap;

// Gives memory back that was freed purge_delay_ms ago or longer, in slices, at most every few ms: for slow paths to
// call with the current time. Takes the heap lock if it is free and there is something to do; never waits for it.
void tick(std::uint64_t now_ms);

// Gives back all free memory now. Returns bytes given back. Takes the heap lock.
std::size_t trim();

}  // namespace brimful::pages
