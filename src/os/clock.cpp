// SPDX-License-Identifier: MIT
//
// os/clock.h on Linux.
#include "os/clock.h"

#include <time.h>

#include "os/errno_guard.h"

namespace brimful::os {

namespace {

std::uint64_t read_ns(clockid_t clock) {
  const ErrnoGuard guard;
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::uint64_t monotonic_ns() { return read_ns(CLOCK_MONOTONIC); }

std::uint64_t thread_cpu_ns() { return read_ns(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace brimful::os
