// SPDX-License-Identifier: MIT
//
// A service between two requests: a few small objects every ten milliseconds. An allocator that gives memory back in
// passing has these calls to do it in, and no others.
#pragma once

#include "workload.h"

namespace workload {

inline void light_activity(double seconds, Random& random) {
  constexpr double kTick = 0.01;
  constexpr std::size_t kObjects = 20;
  for (const double end = now_s() + seconds; now_s() < end;) {
    void* objects[kObjects];
    std::size_t sizes[kObjects];
    for (std::size_t i = 0; i < kObjects; i++) objects[i] = make(sizes[i] = random.between(16, 2048));
    for (std::size_t i = 0; i < kObjects; i++) drop(objects[i], sizes[i]);
    sleep_s(kTick);
  }
}

}  // namespace workload
