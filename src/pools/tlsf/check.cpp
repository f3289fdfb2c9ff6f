// SPDX-License-Identifier: MIT
//
// The checker of a TLSF pool: looks at every invariant, and names the first that is broken.
//
// Two passes. Through the regions, block by block: headers, sentinels, joining, footers, and each free block's links.
// Through the lists: each entry is a free block of the pool in the list of its stride, the bitmaps agree. That both
// passes met the same blocks follows from their number and from the sum of a hash of their addresses: equal sums with
// different blocks need a collision in 64 bits. So a list can neither run in a circle (it ends when more were met than
// are free) nor hold what only looks like a block, inside a live one.
#include "pools/tlsf/inspect.h"
#include "pools/tlsf/pool.h"

namespace brimful::tlsf {
namespace {

class Checker {
 public:
  explicit Checker(const Pool& pool) : pool_(pool) {}

  const char* check(const void** where) {
    const bool holds = setup_holds() && regions_hold() && last_freed_holds() && lists_hold() && counters_hold();
    if (!holds && where != nullptr) *where = where_;
    return holds ? nullptr : what_;
  }

 private:
  // Of the free blocks that a pass has met.
  struct Met {
    std::size_t count = 0;
    std::uint64_t sum = 0;

    void add(const Block* block) {
      ++count;
      sum += mix(reinterpret_cast<std::uintptr_t>(block));
    }
  };

  bool broken(const char* what, const void* where) {
    what_ = what;
    where_ = where;
    return false;
  }

  // From here on the region list may be followed.
  bool setup_holds() {
    if (pool_.guard != guard_of(pool_)) return broken(fault::kControl, &pool_);
    std::size_t count = 0;
    for (const Region* region = pool_.setup.regions; region != nullptr; region = region->next) {
      if (region->guard != guard_of(*region)) return broken(fault::kRegion, region);
      if (++count > pool_.setup.region_count) break;
      total_ += region->bytes;
    }
    return count == pool_.setup.region_count ? true : broken(fault::kRegionCount, &pool_.setup.regions);
  }

  bool regions_hold() {
    for (const Region* region = pool_.setup.regions; region != nullptr; region = region->next) {
      if (!region_holds(region)) return false;
    }
    return true;
  }

  bool region_holds(const Region* region) {
    const Block* const end = sentinel_of(region);
    std::uint64_t flags = 0;
    std::size_t before = 0;
    const Block* block = first_of(region);
    while (block != end) {
      if (const char* const what = header_fault(pool_, region, block)) return broken(what, block);
      if (!follows(block, flags, before)) return false;
      before = stride_of(block);
      flags = is_free(block) ? kAfterFree : 0;
      const char* const what = is_free(block) ? free_fault(pool_, block) : nullptr;
      if (what != nullptr) return broken(what, block);
      count(block);
      block = at(block, before);
    }
    if ((end->header & ~kAfterFree) != tag_of(pool_, end)) return broken(fault::kSentinel, end);
    return follows(end, flags, before);
  }

  // Whether `block` and the one before it, of `before` bytes, agree. `flags`: what kAfterFree should be.
  bool follows(const Block* block, std::uint64_t flags, std::size_t before) {
    if ((block->header & kAfterFree) != flags) return broken(fault::kAfterFree, block);
    if (flags == 0) return true;
    if (is_free(block)) return broken(fault::kNotJoined, block);
    return stride_before(block) == before ? true : broken(fault::kFooter, block);
  }

  void count(const Block* block) {
    if (is_free(block)) {
      free_.add(block);
      return;
    }
    if (block == pool_.last_freed) met_last_freed_ = true;
    used_ += stride_of(block);
  }

  bool last_freed_holds() {
    if (pool_.last_freed == nullptr || met_last_freed_) return true;
    return broken(fault::kLastFreed, &pool_.last_freed);
  }

  bool lists_hold() {
    std::uint64_t words[kWords] = {};
    std::uint64_t summary = 0;
    for (unsigned list = 0; list < kLists; ++list) {
      if (pool_.lists.heads[list] == nullptr) continue;
      words[list / kWordBits] |= std::uint64_t{1} << list % kWordBits;
      summary |= std::uint64_t{1} << list / kWordBits;
      if (!list_holds(list)) return false;
    }
    for (unsigned word = 0; word < kWords; ++word) {
      if (words[word] != pool_.lists.words[word]) return broken(fault::kBitmap, &pool_.lists.words[word]);
    }
    if (summary != pool_.lists.summary) return broken(fault::kBitmap, &pool_.lists.summary);
    if (listed_.count == free_.count && listed_.sum == free_.sum) return true;
    return broken(fault::kListed, &pool_.lists);
  }

  bool list_holds(unsigned list) {
    Block* const* slot = &pool_.lists.heads[list];
    for (const Block* block = *slot; block != nullptr; block = *slot) {
      if (region_of(pool_, block) == nullptr || !is_free(block)) return broken(fault::kNotFree, slot);
      if (block->slot != slot) return broken(fault::kLink, block);
      const std::size_t stride = stride_of(block);
      if (stride > kMostStride || list_of(stride) != list) return broken(fault::kWrongList, block);
      listed_.add(block);
      if (listed_.count > free_.count) return broken(fault::kListed, block);
      slot = &block->next;
    }
    return true;
  }

  [[nodiscard]] std::size_t last_stride() const {
    return pool_.last_freed != nullptr ? stride_of(pool_.last_freed) : 0;
  }

  bool counters_hold() {
    const Counters& counters = pool_.counters;
    const bool hold = counters.used == used_ && counters.peak >= used_ - last_stride() && pool_.setup.total == total_;
    return hold ? true : broken(fault::kCounters, &counters);
  }

  const Pool& pool_;
  Met free_;    // in the regions
  Met listed_;  // in the lists
  bool met_last_freed_ = false;
  std::size_t used_ = 0;
  std::size_t total_ = 0;
  const char* what_ = nullptr;
  const void* where_ = nullptr;
};

}  // namespace
}  // namespace brimful::tlsf

const char* brimful_tlsf_check(const brimful_tlsf* pool, const void** where) {
  return brimful::tlsf::Checker(*pool).check(where);
}
