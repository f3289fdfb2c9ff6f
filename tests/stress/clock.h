// SPDX-License-Identifier: MIT
//
// Time for the stress programs.
#pragma once

#include <time.h>

namespace brimful::stress {

inline double seconds_now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

inline void sleep_microseconds(long microseconds) {
  const timespec pause = {microseconds / 1'000'000, microseconds % 1'000'000 * 1000};
  nanosleep(&pause, nullptr);
}

}  // namespace brimful::stress
