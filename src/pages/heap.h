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
  // All zeros until begin(): then it lies in memory that costs nothing until it is used, and not in the library's file.
  // Locks and statistics work before. Caller of begin() holds the lock.
  constexpr Heap() = default;
  void begin();

  meta::Arena arena;
  sync::HeapMutex lock;
  meta::GranuleTable table;
  HugeBlocks huge;
  PageHeap pages;
};

extern Heap heap;

}  // namespace brimful::pages
