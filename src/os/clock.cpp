// SPDX-License-Identifier: MIT
//
// os/clock.h on Linux.
#include "os/clock.h"

#include <time.h>

#include "os/errno_guard.h"

namespace brimful::os {

std::uint64_t monotonic_ns() {
  const ErrnoGuard guard;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace brimful::os
