// SPDX-License-Identifier: MIT
//
// Which of the lost objects to tell: those that nothing lost points at, and how much hangs on each.
//
//   a list whose head was lost: 1 leak, and 999 objects "indirectly" lost behind it
//   a ring:                     1 leak, of the object with the lowest address; the rest behind it
//
// An object behind two leaks counts for the first one that leads there, so that sums are sums.
#pragma once

#include <cstdint>
#include <vector>

#include "leaks/objects.h"

namespace brimful::observer::leaks {

struct Leak {
  Object object;
  std::uint64_t indirect_count = 0;
  std::uint64_t indirect_bytes = 0;
};

// The leaks among the objects whose bits are set, by address.
std::vector<Leak> leaks_among(const Objects& objects, const memory::Bits& lost);

// live and in neither of the two.
memory::Bits lost_objects(const Objects& objects, const memory::Bits& reached, const memory::Bits& possibly);

}  // namespace brimful::observer::leaks
