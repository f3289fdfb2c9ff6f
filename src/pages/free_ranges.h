// SPDX-License-Identifier: MIT
//
// Ranges of whole free hugepages, for runs of one hugepage and more, and where the filler gets a new one.
//
//   records  │ used │ free: start, length │ … │ free: start, length │ used │
//                     └ first of the range, in the tree ┘ └ last: leads back to the first
//
// A tree ordered by (length, address) gives the best fit at the lowest address; the untouched rest of a window, the longest
// of all, comes last. Neighbours are joined through the first and last record, so nothing is allocated and nothing can
// fail. A window's first hugepage is never free as a whole, so ranges of two windows don't meet.
#pragma once

#include <cstdint>

#include "base/treap.h"
#include "meta/granule_table.h"
#include "meta/hugepage.h"

namespace brimful::pages {

class FreeRanges {
 public:
  using Hugepage = meta::Hugepage;

  constexpr FreeRanges() = default;
  constexpr explicit FreeRanges(meta::GranuleTable& table) : table_(&table) {}

  struct Place {
    Hugepage* range = nullptr;  // its first record; nullptr: there is none that long
    Hugepage* first = nullptr;  // of the part to take
  };

  // `length` hugepages, the first on a multiple of `alignment` hugepages. With `prefer_resident`, a range that is as good
  // within an eighth and holds dirty memory where the best fit holds none is taken instead. O(log ranges).
  [[nodiscard]] Place choose(std::uint32_t length, std::uint32_t alignment, bool prefer_resident) const;

  // Adds hugepages that are free now, joined with the ranges in front and behind. The records' own start must be set
  // (the first one's at least), and their state where they were used before.
  void insert(Hugepage* first, std::uint32_t length);

  // Takes `length` hugepages from `first` on out of `range`. Their records are used ones then, all granules free. Those up
  // to the one behind the last must be covered by the table.
  void take(Hugepage* range, Hugepage* first, std::uint32_t length);

 private:
  struct ByLength {
    static bool less(const Hugepage& a, const Hugepage& b) {
      return a.length != b.length ? a.length < b.length : &a < &b;
    }
  };

  void attach(Hugepage* first, std::uint32_t start, std::uint32_t length);
  [[nodiscard]] Hugepage* more_resident(Hugepage* best, std::uint32_t most) const;

  meta::GranuleTable* table_ = nullptr;
  Treap<Hugepage, ByLength> tree_;
};

}  // namespace brimful::pages
