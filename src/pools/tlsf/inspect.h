// SPDX-License-Identifier: MIT
//
// Looking at memory of which nothing may be believed: shared by the checker and by the checks at calls. Nothing here
// reads a word before it is known to lie in a region of the pool, or in its control structure. What the region list says
// is believed, because it is guarded by hashes (Pool::guard, Region::guard) that the checker looks at first.
#pragma once

#include "pools/tlsf/pool.h"

namespace brimful::tlsf {

inline constexpr std::size_t kMostStride = BRIMFUL_TLSF_MOST_BYTES - kRegionEnds;

// The names of the broken invariants.
namespace fault {
inline constexpr char kControl[] = "the control structure's regions and settings are as the pool wrote them";
inline constexpr char kRegion[] = "a region's own entry is as the pool wrote it";
inline constexpr char kRegionCount[] = "there are as many regions as were added";
inline constexpr char kOutside[] = "the pointer lies in a region of the pool";
inline constexpr char kAligned[] = "the pointer is aligned to 16";
inline constexpr char kTag[] = "a block begins here, with a header that the pool wrote";
inline constexpr char kDoubleFree[] = "the block is live";
inline constexpr char kMeaningless[] = "the bits of a header that mean nothing are 0";
inline constexpr char kStrideRange[] = "a block ends within its region and is no shorter than 32 bytes";
inline constexpr char kSentinel[] = "a region ends with its sentinel";
inline constexpr char kAfterFree[] = "a header tells whether the block before it is free";
inline constexpr char kNotJoined[] = "no two neighbours are free";
inline constexpr char kFooter[] = "a free block's footer is its stride";
inline constexpr char kLink[] = "a free block's links lead to its neighbours in the list, and back";
inline constexpr char kWrongList[] = "a free block is in the list of its stride";
inline constexpr char kNotFree[] = "a list holds free blocks of the pool only";
inline constexpr char kLastFreed[] = "what was freed last and is not put back yet is a live block";
inline constexpr char kListed[] = "the lists hold the regions' free blocks, each once";
inline constexpr char kBitmap[] = "the bitmaps say which lists are empty";
inline constexpr char kCounters[] = "the counters are sums over the blocks";
}  // namespace fault

// The region in which a header may lie at `block`, or NULL. O(regions).
inline const Region* region_of(const Pool& pool, const void* block) {
  const auto place = reinterpret_cast<std::uintptr_t>(block);
  if ((place + kHeaderBytes) % kUnit != 0) return nullptr;
  for (const Region* region = pool.setup.regions; region != nullptr; region = region->next) {
    if (place >= reinterpret_cast<std::uintptr_t>(first_of(region)) &&
        place < reinterpret_cast<std::uintptr_t>(sentinel_of(region))) {
      return region;
    }
  }
  return nullptr;
}

// The list whose head is at `slot`, or kLists: `slot` is no head.
inline std::size_t list_with_head(const Pool& pool, Block* const* slot) {
  const std::uintptr_t offset =
      reinterpret_cast<std::uintptr_t>(slot) - reinterpret_cast<std::uintptr_t>(&pool.lists.heads[0]);
  return offset % sizeof(Block*) == 0 && offset / sizeof(Block*) < kLists ? offset / sizeof(Block*) : kLists;
}

// Whether `slot` points to `block`, and is a head or the link of a block.
inline bool is_slot_of(const Pool& pool, Block* const* slot, const Block* block) {
  const bool is_head = list_with_head(pool, slot) != kLists;
  const auto owner = reinterpret_cast<const Block*>(reinterpret_cast<std::uintptr_t>(slot) - offsetof(Block, next));
  if (!is_head && region_of(pool, owner) == nullptr) return false;
  return *slot == block;
}

// What is wrong with the header of `block`, which lies in `region`, apart from kFree and kAfterFree; or NULL.
inline const char* header_fault(const Pool& pool, const Region* region, const Block* block) {
  if constexpr (kChecked) {
    if ((block->header & kTag) != tag_of(pool, block)) return fault::kTag;
  }
  if ((block->header & kFlags & ~(kFree | kAfterFree)) != 0) return fault::kMeaningless;
  const std::size_t room = distance(block, sentinel_of(region));
  const std::size_t stride = stride_of(block);
  return stride < kLeastStride || stride > room ? fault::kStrideRange : nullptr;
}

// What is wrong with `block`, whose header says that it is free and is otherwise right; or NULL.
inline const char* free_fault(const Pool& pool, const Block* block) {
  const std::size_t stride = stride_of(block);
  if ((block->header & kAfterFree) != 0) return fault::kNotJoined;
  if (stride_before(at(block, stride)) != stride) return fault::kFooter;
  if (!is_slot_of(pool, block->slot, block)) return fault::kLink;
  if (block->next == nullptr) return nullptr;
  if (region_of(pool, block->next) == nullptr || block->next->slot != &block->next) return fault::kLink;
  return nullptr;
}

}  // namespace brimful::tlsf
