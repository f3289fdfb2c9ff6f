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

// The longest of the blocks that a search of this list looks at.
std::size_t longest_looked_at(const Block* block) {
  std::size_t stride = 0;
  for (unsigned looked_at = 0; block != nullptr && looked_at < Lists::kLookedAt; ++looked_at) {
    if (stride_of(block) > stride) stride = stride_of(block);
    block = block->next;
  }
  return stride;
}

struct Met {
  std::size_t live;
  std::size_t free;
  std::size_t longest_free;  // usable bytes
};

bool count_block(void* context, void* /*block*/, std::size_t bytes, bool live) {
  Met& met = *static_cast<Met*>(context);
  ++(live ? met.live : met.free);
  if (!live && bytes > met.longest_free) met.longest_free = bytes;
  return true;
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
  Met met = {};
  brimful_tlsf_walk(pool, count_block, &met);
  stats.live_blocks = met.live;
  stats.free_blocks = met.free;
  stats.regions = pool->setup.region_count;
  const unsigned list = last_list(pool->lists);
  if (list != Lists::kNone) {
    // A longer request is rounded up beyond this list, and its search then looks at these blocks and no others.
    stats.largest_free = longest_looked_at(pool->lists.heads[list]) - kHeaderBytes;
    const std::size_t free_bytes = stats.total - stats.overhead - stats.used;
    const std::size_t longest_free = met.longest_free + kHeaderBytes;
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
