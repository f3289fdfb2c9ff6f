// SPDX-License-Identifier: MIT
//
// The guarded objects of a heap (src/slots/guards.h): few, each on a page of its own, with a record (src/meta/guard_record.h).
#pragma once

#include <cstdint>
#include <vector>

#include "memory/anatomy.h"
#include "memory/mapping.h"
#include "meta/guard_record.h"

namespace brimful::observer::heap {

struct Guarded {
  std::uint64_t start;
  std::uint64_t bytes;  // asked for
  std::uint64_t page;
  std::uint64_t record;  // its address
  bool is_live;          // else its page has no access
};

struct GuardedObjects {
  std::uint64_t start = 0;  // of the pages and the records behind them; 0: there are none
  std::uint64_t end = 0;
  std::uint64_t page_bytes = 0;
  std::vector<Guarded> objects;  // that live, or were freed last on their page; by address
};

// false: they can't be read.
bool read_guarded(std::uint64_t pool_address, const memory::Read& read, GuardedObjects& into);

}  // namespace brimful::observer::heap
