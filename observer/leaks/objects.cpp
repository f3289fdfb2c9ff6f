// SPDX-License-Identifier: MIT
//
// Building the directory of objects.h, and what is asked of it seldom.
#include "leaks/objects.h"

#include <algorithm>
#include <bit>

namespace brimful::observer::leaks {

void Objects::add(std::uint64_t start, std::uint64_t object_bytes, std::uint32_t count, bool is_slab,
                  const std::uint64_t* live) {
  Span span;
  span.start = start;
  span.object_bytes = object_bytes;
  span.count = count;
  span.is_slab = is_slab;
  span.reciprocal = ~std::uint64_t{0} / object_bytes + 1;
  span.first = numbers_;
  spans_.push_back(span);
  const std::uint64_t words = (std::uint64_t{count} + 63) / 64;
  live_.words().insert(live_.words().end(), live, live + words);
  numbers_ += words * 64;
}

void Objects::finish() {
  std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  if (spans_.empty()) return;
  lowest_ = spans_.front().start;
  std::uint64_t end = 0;  // of damaged headers, spans may lie in each other
  for (const Span& span : spans_) end = std::max(end, span.start + span.bytes());
  extent_ = end - lowest_;
  leaves_.resize(((end - 1) >> kLeafShift) + 1);
  for (std::uint32_t n = 0; n < spans_.size(); ++n) {
    const Span& span = spans_[n];
    const std::uint64_t last = (span.start + span.bytes() - 1) >> kGranuleShift;
    for (std::uint64_t granule = span.start >> kGranuleShift; granule <= last; ++granule) {
      auto& leaf = leaves_[granule / kLeafEntries];
      if (leaf == nullptr) leaf = std::make_unique<std::uint32_t[]>(kLeafEntries);
      std::uint32_t& entry = leaf[granule % kLeafEntries];
      entry = entry == kNone ? n + 1 : kShared;
    }
  }
}

std::uint32_t Objects::find_among(std::uint64_t address) const {
  const auto behind = std::upper_bound(spans_.begin(), spans_.end(), address,
                                       [](std::uint64_t a, const Span& s) { return a < s.start; });
  return static_cast<std::uint32_t>(behind - spans_.begin());  // one more than the number of the span before it
}

std::uint64_t Objects::live_count() const {
  std::uint64_t count = 0;
  for (const std::uint64_t word : live_.words()) count += static_cast<std::uint64_t>(std::popcount(word));
  return count;
}

std::uint64_t Objects::live_bytes() const {
  std::uint64_t bytes = 0;
  for (const Span& span : spans_) {
    for (std::uint64_t word = span.first / 64; word < (span.first + span.count + 63) / 64; ++word) {
      bytes += static_cast<std::uint64_t>(std::popcount(live_.words()[word])) * span.object_bytes;
    }
  }
  return bytes;
}

}  // namespace brimful::observer::leaks
