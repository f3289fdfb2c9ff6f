// SPDX-License-Identifier: MIT
//
// From looks to a report.
//
// An object may be on its way between two places of the allocator when its process is stopped: taken out of a mask and
// not yet handed out, say. It then looks live, and nothing leads to it. Such a moment passes, and a leak does not: so what
// seems lost is looked at twice, and only what is lost both times is told.
#pragma once

#include <cstddef>
#include <string>

#include "leaks/look.h"
#include "leaks/report.h"
#include "leaks/suppressions.h"

namespace brimful::observer::leaks {

struct Wanted {
  bool once = false;           // one look is enough: nothing moves
  bool once_if_alone = false;  // so it is when the process has one thread, which is not in the allocator
  std::size_t addresses = 3;   // of each group
  std::size_t contents = 64;   // bytes of the first object of each group
};

// false: *error says why in one line.
bool find_leaks(memory::Target& target, const Wanted& wanted, const Suppressions& suppressions, Report& report,
                std::string* error);

}  // namespace brimful::observer::leaks
