// SPDX-License-Identifier: MIT
//
// meta/request_class.h. A request with an alignment is malloc's of the next multiple of it, which is the size of a class; with
// canaries it is not any more, so then it goes the slow way, where the alignment is known.
#include "meta/request_class.h"

namespace brimful::meta {

void make_room_for_canaries() {
  Block& block = arch::brimful_block;
  const auto doubled = [](std::size_t bytes) {
    const std::size_t with_canary = bytes + kCanaryBytes;
    return static_cast<std::uint8_t>(2 * class_of(with_canary < kMaxClassBytes ? with_canary : kMaxClassBytes));
  };
  for (std::size_t n = 0; n <= BRIMFUL_SMALL_MAX; ++n) block.small[n] = doubled(n);
  for (std::size_t i = 0; i <= BRIMFUL_MEDIUM_MAX >> BRIMFUL_MEDIUM_SHIFT; ++i) {
    block.medium[i] = doubled(i << BRIMFUL_MEDIUM_SHIFT);
  }
  arch::brimful_hot.aligned_small = 0;
  arch::brimful_hot.aligned_most = 0;
}

}  // namespace brimful::meta
