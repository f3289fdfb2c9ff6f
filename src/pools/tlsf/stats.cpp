// SPDX-License-Identifier: MIT
//
// Statistics of a TLSF pool and the walk through its blocks.
#include <cstring>

#include "pools/tlsf/pool.h"

namespace brimful::tlsf {
namespace {

// The list of the longest free blocks, or kNone.
unsigned last_list(const Lists& lists) {
  if (lists.summary == 0) return Lists::kNone;
  const unsigned word = static_cast<unsigned>(63 ^ std::countl_zero(lists.summary));
  return word * kWordBits + static_cast<unsigned>(63 ^ std::countl_zero(lists.words[word]));
}

// The longest of the first `most` blocks from `block` on.
std::size_t longest(const Block* block, std::size_t most) {
  std::size_t stride = 0;
  for (std::size_t looked_at = 0; block != nullptr && looked_at < most; ++looked_at) {
    if (stride_of(block) > stride) stride = stride_of(block);
    block = block->next;
  }
  return stride;
}

}  // namespace
}  // namespace brimful::tlsf

using namespace brimful::tlsf;

void brimful_tlsf_get_stats(const brimful_tlsf* pool, struct brimful_tlsf_stats* into) {
  settle(*const_cast<brimful_tlsf*>(pool));  // constant for the caller, who cannot see it
  const Counters& counters = pool->counters;
  brimful_tlsf_stats stats = {};
  stats.size = into->size;
  stats.total = pool->setup.total;
  stats.used = counters.used;
  stats.peak = counters.peak;
  stats.overhead = pool->setup.region_count * kRegionEnds;
  stats.live_blocks = counters.live_blocks;
  stats.free_blocks = counters.free_blocks;
  stats.regions = pool->setup.region_count;
  const unsigned list = last_list(pool->lists);
  if (list != Lists::kNone) {
    const Block* const head = pool->lists.heads[list];
    // A longer request is rounded up beyond this list, and its search then looks at these blocks and no others.
    stats.largest_free = longest(head, Lists::kLookedAt) - kHeaderBytes;
    const std::size_t free_bytes = stats.total - stats.overhead - stats.used;
    const std::size_t longest_free = longest(head, counters.free_blocks);
    stats.fragmentation = 1.0 - static_cast<double>(longest_free) / static_cast<double>(free_bytes);
  }
  // A program built with an older header knows fewer fields.
  std::memcpy(into, &stats, into->size < sizeof(stats) ? into->size : sizeof(stats));
}

void brimful_tlsf_walk(const brimful_tlsf* pool, brimful_tlsf_visit* visit, void* context) {
  settle(*const_cast<brimful_tlsf*>(pool));
  for (Region* region = pool->setup.regions; region != nullptr; region = region->next) {
    const Block* const end = sentinel_of(region);
    for (Block* block = first_of(region); block != end; block = at(block, stride_of(block))) {
      if (!visit(context, payload_of(block), stride_of(block) - kHeaderBytes, !is_free(block))) return;
    }
  }
}
