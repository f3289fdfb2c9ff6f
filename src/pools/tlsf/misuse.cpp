// SPDX-License-Identifier: MIT
//
// What calls of the checked build find: the pointer, its header, and everything that the call is about to read or write
// of both neighbours. That is a fixed number of words, so a smashed word elsewhere is not seen here; the checker sees it.
// A pointer freed twice is known by its header, which says free, or by the mark that joining left; once the memory is in
// use again as part of another block, the header's place holds the owner's bytes, and the tag tells (2^-24 apart).
#include "pools/tlsf/misuse.h"

#include "pools/tlsf/inspect.h"

namespace brimful::tlsf {
namespace {

// A live block's stride leads to a header.
const char* end_fault(const Pool& pool, const Block* block) {
  const Block* const next = at(block, stride_of(block));
  return (next->header & kTag) == tag_of(pool, next) ? nullptr : fault::kStrideRange;
}

// The neighbours of `block`, whose own header is right.
const char* neighbours_fault(const Pool& pool, const Region* region, const Block* block) {
  const Block* const next = at(block, stride_of(block));
  if (next == sentinel_of(region)) {
    if (next->header != tag_of(pool, next)) return fault::kSentinel;
  } else {
    if (const char* const what = header_fault(pool, region, next)) return what;
    if (is_after_free(next)) return fault::kAfterFree;
    const char* const what = is_free(next) ? free_fault(pool, next) : end_fault(pool, next);
    if (what != nullptr) return what;
  }
  if (!is_after_free(block)) return nullptr;
  const std::size_t before = block == first_of(region) ? 0 : stride_before(block);
  if (before < kLeastStride || before % kUnit != 0 || before > distance(first_of(region), block)) return fault::kFooter;
  const Block* const front = at_front(block, before);
  if (const char* const what = header_fault(pool, region, front)) return what;
  if (stride_of(front) != before) return fault::kFooter;
  return is_free(front) ? free_fault(pool, front) : fault::kAfterFree;
}

// What is wrong with `block`, which a list should hold.
const char* listed_fault(const Pool& pool, const Block* block) {
  const Region* const region = region_of(pool, block);
  if (region == nullptr) return fault::kNotFree;
  if (const char* const what = header_fault(pool, region, block)) return what;
  return is_free(block) ? free_fault(pool, block) : fault::kNotFree;
}

}  // namespace

const char* fault_of(const Pool& pool, const void* pointer) {
  const auto place = reinterpret_cast<std::uintptr_t>(pointer);
  if (place % kUnit != 0) return fault::kAligned;
  const auto block = reinterpret_cast<const Block*>(place - kHeaderBytes);
  const Region* const region = region_of(pool, block);
  if (region == nullptr) return fault::kOutside;
  if constexpr (kChecked) {
    if ((block->header & kTag) != tag_of(pool, block)) return fault::kTag;
  }
  if (is_free(block)) return fault::kDoubleFree;
  if (const char* const what = header_fault(pool, region, block)) return what;
  return neighbours_fault(pool, region, block);
}

const Block* damaged_in_search(const Pool& pool, std::size_t stride, const char** what) {
  unsigned list = list_above(stride);
  if (pool.lists.heads[list] == nullptr) {
    const Block* block = pool.lists.heads[list_of(stride)];
    for (unsigned looked_at = 0; block != nullptr && looked_at < Lists::kLookedAt; ++looked_at) {
      *what = listed_fault(pool, block);
      if (*what != nullptr) return block;
      if (stride_of(block) >= stride) return nullptr;
      block = block->next;
    }
    list = pool.lists.find(list);
    if (list == Lists::kNone) return nullptr;
  }
  *what = listed_fault(pool, pool.lists.heads[list]);
  return *what != nullptr ? pool.lists.heads[list] : nullptr;
}

void report(Pool& pool, const char* what, const void* pointer) {
  if (pool.setup.misuse == nullptr) __builtin_trap();
  pool.setup.misuse(&pool, what, pointer);
}

}  // namespace brimful::tlsf

using namespace brimful::tlsf;

void brimful_tlsf_set_misuse(brimful_tlsf* pool, brimful_tlsf_misuse* hook) {
  pool->setup.misuse = hook;
  pool->guard = guard_of(*pool);
}
