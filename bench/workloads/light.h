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

// The same at rest: one small object at a time, of one of `kinds` sizes, so many times a second. Hardly a call leaves an
// allocator's fast path.
inline void rare_activity(double seconds, std::uint64_t calls_per_s, std::uint64_t kinds, Random& random) {
  const double began = now_s();
  for (std::uint64_t calls = 1; now_s() - began < seconds; ++calls) {
    const std::size_t bytes = 16 + random.below(kinds) * 40;
    drop(make(bytes), bytes);
    const double ahead = static_cast<double>(calls) / static_cast<double>(calls_per_s) - (now_s() - began);
    if (ahead > 0) sleep_s(ahead);
  }
}

}  // namespace workload
