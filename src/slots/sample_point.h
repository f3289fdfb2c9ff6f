// SPDX-License-Identifier: MIT
//
// Where the next sample of each class lies, in a context: plain words, which malloc's slow sequences count down (arch/).
// What they mean: slots/sampling.h.
#pragma once

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
};

static_assert(sizeof(SamplePoint) == 16 && offsetof(SamplePoint, until) == 0 && offsetof(Sampling, points) == 0);

}  // namespace brimful::slots
