// SPDX-License-Identifier: MIT
//
// How many bytes to reserve so that no request fails. Why this is enough (in full: docs/design/0020-tlsf.md):
//
// A request fails only if every free block is shorter than what its search asks for, R: its stride rounded up to the
// least of a list. Free blocks are not neighbours, so there is at most one more of them than live blocks, which are at
// most N - 1 when the N-th is asked for. So in a pool that fails all blocks together have at most
//
//     live strides without the requested block's + N * (R - 16)
//
// bytes, and one unit more cannot fail. A live stride is its request's, or 16 more where that was left over.
#include "pools/tlsf/pool.h"

using namespace brimful::tlsf;

namespace {

constexpr std::size_t kImpossible = SIZE_MAX;

struct Needs {
  std::size_t held;   // by one such block while it is live, at most
  std::size_t asked;  // by the search for it: no request fails while a free block is that long
};

// false: no pool can serve it.
bool needs_of(const brimful_tlsf_demand& demand, Needs* needs) {
  const std::size_t alignment = demand.alignment > kUnit ? demand.alignment : kUnit;
  if (!is_alignment(alignment)) return false;
  if (demand.bytes > kMostRequest - alignment - kUnit) return false;
  const std::size_t stride = stride_for(demand.bytes);
  needs->held = stride + kUnit;
  needs->asked = least_of(list_above(alignment > kUnit ? stride_for_aligned(stride, alignment) : stride));
  return true;
}

// Bytes of free blocks, none of which serves the search, at most.
bool gaps(std::size_t blocks, std::size_t asked, std::size_t* bytes) {
  const std::size_t longest = asked - kUnit;
  return !__builtin_mul_overflow(blocks, longest < kLeastStride ? 0 : longest, bytes);
}

}  // namespace

size_t brimful_tlsf_bytes_for(const struct brimful_tlsf_demand* demands, size_t count) {
  std::size_t blocks = 0;
  std::size_t held = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Needs needs{};
    std::size_t these = 0;
    if (demands[i].blocks == 0) continue;
    if (!needs_of(demands[i], &needs) || __builtin_mul_overflow(demands[i].blocks, needs.held, &these) ||
        __builtin_add_overflow(held, these, &held) || __builtin_add_overflow(blocks, demands[i].blocks, &blocks)) {
      return kImpossible;
    }
  }
  // Which request is the hardest to serve depends on both terms.
  std::size_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Needs needs{};
    std::size_t unusable = 0;
    if (demands[i].blocks == 0) continue;
    if (!needs_of(demands[i], &needs) || !gaps(blocks, needs.asked, &unusable)) return kImpossible;
    std::size_t failing = 0;
    if (__builtin_add_overflow(held - needs.held, unusable, &failing)) return kImpossible;
    if (failing > most) most = failing;
  }
  const std::size_t ends = kRegionEnds + 2 * (kUnit - 1);  // of the region, which may begin and end between two units
  if (most > BRIMFUL_TLSF_MOST_BYTES - ends - kUnit) return kImpossible;
  const std::size_t least = blocks == 0 ? 0 : most + kUnit < kLeastStride ? kLeastStride : most + kUnit;
  return brimful_tlsf_control_bytes() + (blocks == 0 ? 0 : ends + least);
}
