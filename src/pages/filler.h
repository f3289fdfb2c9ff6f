// SPDX-License-Identifier: MIT
//
// The filler: which hugepage serves a run that is shorter than one.
//
//   longest free range  1  2  3  …  31
//   fullest             ●──●  ●            lists of hugepages; a bit of `nonempty_` for each list
//       …                  ●
//   emptiest               ●
//
// The hugepage whose longest free range is the shortest that holds the run, so that longer ranges stay whole; among those
// with equal ranges the fullest, so that the emptiest run empty and go back as a whole. Of equals, one at a low address: a
// list's head is the lowest of those that came since it came. Inside the hugepage: the memory that is wanted, resident or not, then a
// range of just this length, then the lowest address.
//
// Source: the HugePageFiller of tcmalloc (Hunter et al., Beyond malloc efficiency to fleet efficiency, OSDI 2021), whose
// lists are ordered by longest free range, then by allocations. Rejected: its best fit by walking the free ranges inside
// of a hugepage; an exact fit is two operations more on masks we have, and the rest made no difference we could show.
#pragma once

#include <cstdint>

#include "meta/hugepage.h"

namespace brimful::pages {

class Filler {
 public:
  using Hugepage = meta::Hugepage;

  // Puts a used hugepage where its masks belong, or takes it out when it has no free granule or is not in use. To be
  // called after each change of `free`. O(1).
  void update(Hugepage* hugepage);

  // Takes a hugepage out of its list, if it is in one.
  void take_out(Hugepage* hugepage);

  // The hugepage for a run of `count` (1 to 31) granules whose first is among `places`; nullptr when there is none. O(1),
  // at most 64 hugepages looked at when `places` is not all.
  [[nodiscard]] Hugepage* choose(unsigned count, std::uint32_t places) const;

  // The first granule of the run inside `hugepage`, which choose() gave: among `wanted` ones if it fits there.
  static unsigned place(const Hugepage& hugepage, unsigned count, std::uint32_t places, std::uint32_t wanted);

 private:
  static constexpr unsigned kFullness = 4;  // lists for each length
  static constexpr unsigned kLists = meta::kGranulesPerHugepage * kFullness;

  void insert(Hugepage* hugepage, unsigned list);
  [[nodiscard]] unsigned next_nonempty(unsigned list) const;

  std::uint64_t nonempty_[kLists / 64] = {};
  Hugepage* heads_[kLists] = {};
};

}  // namespace brimful::pages
