// SPDX-License-Identifier: MIT
//
// meta/request_class.h. A request with an alignment is malloc's of the next multiple of it, which is the size of a class; with
// canaries it is not any more, so then it goes the slow way, where the alignment is known.
#include "meta/request_class.h"

namespace brimful::meta {

void choose_class_tables() {
  if (!config::checks.canary) {
    arch::brimful_hot.aligned_small = BRIMFUL_SMALL_MAX;
    arch::brimful_hot.aligned_most = BRIMFUL_MEDIUM_MAX;
    if (BRIMFUL_LIKELY(config::options.guard == 0)) return;
  }
  Block& block = arch::brimful_block;
  const std::size_t extra = config::checks.canary ? kCanaryBytes : 0;
  const std::size_t least = config::options.guard != 0 ? kSizeClasses[0].bytes + 1 : 0;
  const auto doubled = [&](std::size_t bytes) {
    std::size_t wanted = bytes + extra;
    if (wanted < least) wanted = least;
    return static_cast<std::uint8_t>(2 * class_of(wanted < kMaxClassBytes ? wanted : kMaxClassBytes));
  };
  for (std::size_t n = 1; n <= BRIMFUL_SMALL_MAX; ++n) block.small[n] = doubled(n);
  for (std::size_t i = 1; i <= BRIMFUL_MEDIUM_MAX >> BRIMFUL_MEDIUM_SHIFT; ++i) {
    block.medium[i] = doubled(i << BRIMFUL_MEDIUM_SHIFT);
  }
}

}  // namespace brimful::meta
