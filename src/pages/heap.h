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

}  // namespace brimful::pages
