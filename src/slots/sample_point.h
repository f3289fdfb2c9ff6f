// SPDX-License-Identifier: MIT
//
// Where the next sample of each class lies, in a context: plain words, which malloc's slow sequences count down (arch/).
// What they mean: slots/sampling.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "classes/size_classes.h"

namespace brimful::slots {

struct SamplePoint {
  std::int32_t until;  // objects that may still be offered or handed out; below 0: none
  bool is_sample;      // then comes a sample; else it has to be found out where the next one lies
  // The group whose offer ends at the sample. nullptr: `until` ran out by itself.
  const std::uint64_t* trimmed;
};

struct Sampling {
  SamplePoint points[kClassCount];
  std::uint64_t interval_bytes;  // that they were drawn for
  // What `until` of all points was raised by so far, less the objects that were offered again, or went back with their slab,
  // because the slot had been emptied before they were taken. So `raised` less the sum of `until` is how many objects malloc was
  // offered, which nobody else counts (observer/stats/). Modulo 2^64; lossy by design.
  std::atomic<std::uint64_t> raised;

  void raise(std::int64_t objects) {
    // relaxed: a count for reports
    raised.store(raised.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(objects),
                 std::memory_order_relaxed);
  }
  // All that changes `until` but offers.
  void set_until(SamplePoint& point, std::int32_t until) {
    raise(std::int64_t{until} - point.until);
    point.until = until;
  }
  void forget(SamplePoint& point) {
    set_until(point, 0);
    point = {};
  }
};

static_assert(sizeof(SamplePoint) == 16 && offsetof(SamplePoint, until) == 0 && offsetof(Sampling, points) == 0);

}  // namespace brimful::slots
