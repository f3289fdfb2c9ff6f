// SPDX-License-Identifier: MIT
//
// What the process weighs, as the kernel counts it.
#pragma once

#include <cstddef>

namespace zcache {

struct Resident {
  std::size_t bytes = 0;      // Rss of /proc/self/smaps_rollup
  std::size_t lazy_free = 0;  // of those: given back with MADV_FREE and not yet taken
};

// Allocates nothing. Throws std::runtime_error when /proc does not tell.
Resident resident();

}  // namespace zcache
