// SPDX-License-Identifier: MIT
//
// The control structure of a TLSF pool, and the two steps everything is made of: take a block of at least so many bytes
// out of the free memory, and put one back. Both are inlined where they are used, so that malloc and free are functions
// that call nothing.
//
// Invariants, which the checker (check.cpp) proves one by one:
//   - the blocks of a region lie end to end, from its first header to its sentinel
//   - no two neighbours are free: what is put back is joined at once (put back is not what was freed last, see give())
//   - kAfterFree in a header tells the truth, and then the footer in front of it holds the free block's stride
//   - a free block is in the list of its stride, and nothing else is in a list; the bitmaps say which are empty
//   - the counters are sums over the blocks
//
// The counters that cannot be derived from others are kept by the step that changes them. They share the cache line of
// the summary, and cost a few instructions of some forty.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/compiler.h"
#include "brimful/tlsf.h"
#include "pools/tlsf/block.h"
#include "pools/tlsf/lists.h"
#include "pools/tlsf/misuse.h"

namespace brimful::tlsf {

// At the front of each region. `guard` is a hash of the others, so that the checker follows `next` of a smashed region
// nowhere.
struct Region {
  Region* next;
  std::size_t bytes;  // from here to the end of the sentinel, a multiple of 16
  std::uint64_t guard;
};

inline constexpr std::size_t kRegionEnds = sizeof(Region) + kHeaderBytes;  // what a region loses at both ends
inline constexpr std::size_t kLeastRegion = kRegionEnds + kLeastStride;
static_assert((sizeof(Region) + kHeaderBytes) % kUnit == 0, "the first block's payload is aligned");

BRIMFUL_INLINE Block* first_of(Region* region) { return at(region, sizeof(Region)); }
BRIMFUL_INLINE const Block* first_of(const Region* region) { return at(region, sizeof(Region)); }
BRIMFUL_INLINE Block* sentinel_of(Region* region) { return at(region, region->bytes - kHeaderBytes); }
BRIMFUL_INLINE const Block* sentinel_of(const Region* region) { return at(region, region->bytes - kHeaderBytes); }

// The first place for a control structure or a region at or behind `memory`.
template <class T>
BRIMFUL_INLINE T* aligned(void* memory) {
  return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(memory) + kUnit - 1) & ~(kUnit - 1));
}
BRIMFUL_INLINE std::size_t distance(const void* from, const void* to) {
  return static_cast<std::size_t>(static_cast<const char*>(to) - static_cast<const char*>(from));
}

// Murmur3's finisher: each bit of `word` reaches each bit of the result.
constexpr std::uint64_t mix(std::uint64_t word) {
  word = (word ^ word >> 33) * 0xFF51AFD7ED558CCDU;
  word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53U;
  return word ^ word >> 33;
}

// What each malloc and free keeps. Blocks are counted when somebody asks: two counters of them cost 2 to 12 % of the time.
struct Counters {
  std::size_t used;  // bytes in live blocks, their headers with them
  std::size_t peak;  // the most that `used` has been
};

// What changes with the regions only, whole words so that it can be hashed as it lies there.
struct Setup {
  Region* regions;  // the arena if there is one, then newest first
  Region* initial;  // of brimful_tlsf_create(), or NULL
  std::size_t region_count;
  std::size_t total;            // bytes of all regions
  brimful_tlsf_resize* resize;  // NULL: the pool does not grow
  void* resize_context;
  Region* arena;                // what resize() gave, or NULL while that is nothing
  std::size_t arena_bytes;      // what it was asked for last
  std::size_t arena_skipped;    // of those, in front of the region, whose alignment may be higher
  brimful_tlsf_misuse* misuse;  // NULL: trap
  std::uint64_t epoch;          // number of resets: part of the tags
};

}  // namespace brimful::tlsf

// The control structure. The name is the public header's.
struct brimful_tlsf {
  brimful::tlsf::Counters counters;
  brimful::tlsf::Block*
      last_freed;  // NULL, or a block that its owner has given back and that looks live until the next
  brimful::tlsf::Lists lists;
  brimful::tlsf::Setup setup;
  std::uint64_t guard;  // a hash of `setup`
};

namespace brimful::tlsf {

inline constexpr std::size_t kControlBytes = (sizeof(Pool) + kUnit - 1) & ~(kUnit - 1);

BRIMFUL_INLINE std::uint64_t tag_of(const Pool& pool, const Block* block) {
  if constexpr (!kChecked) return 0;
  const auto place = reinterpret_cast<std::uintptr_t>(block) ^ reinterpret_cast<std::uintptr_t>(&pool) << 16;
  return mix(place + pool.setup.epoch) & kTag;
}

BRIMFUL_INLINE void set_header(const Pool& pool, Block* block, std::size_t stride, std::uint64_t flags) {
  block->header = stride | flags | tag_of(pool, block);
}

// The block ceases to be one: it was joined to the block before it. Only the checked build leaves a mark, by which it
// knows a second free.
BRIMFUL_INLINE void mark_joined(const Pool& pool, Block* block) {
  if constexpr (kChecked) set_header(pool, block, 0, kFree);
}

// Writes a free block and lists it. Its neighbours are live, and the one behind it knows that it is after a free one.
BRIMFUL_INLINE void list_free(Pool& pool, Block* block, std::size_t stride) {
  set_header(pool, block, stride, kFree);
  *footer_of(block, stride) = stride;
  pool.lists.insert(block, stride);
}

// Makes the first `stride` bytes of `block`, which is `have` bytes long and in no list, a live block. `flags`: kAfterFree
// or 0. What is left over becomes a free block, unless it is too small for one. The block behind is marked as being after
// a free one. Returns the live block's stride.
BRIMFUL_INLINE std::size_t cut(Pool& pool, Block* block, std::size_t have, std::size_t stride, std::uint64_t flags) {
  const std::size_t rest = have - stride;
  if (rest >= kLeastStride) {
    set_header(pool, block, stride, flags);
    list_free(pool, at(block, stride), rest);
    return stride;
  }
  set_header(pool, block, have, flags);
  at(block, have)->header &= ~kAfterFree;
  return have;
}

// The block that was freed last is among `used`, but is not used.
BRIMFUL_INLINE void note_peak(Pool& pool) {
  if (BRIMFUL_LIKELY(pool.counters.used <= pool.counters.peak)) return;
  const std::size_t used = pool.counters.used - (pool.last_freed != nullptr ? stride_of(pool.last_freed) : 0);
  if (used > pool.counters.peak) pool.counters.peak = used;
}

BRIMFUL_INLINE void count_live(Pool& pool, std::size_t stride) {
  pool.counters.used += stride;
  note_peak(pool);
}

// arena.cpp. Grows the arena until its end is a free block of at least `stride` bytes, and takes that out of its list.
// NULL: the pool does not grow.
Block* grow(Pool& pool, std::size_t stride);
// malloc where the search found nothing: from the arena's end, or from what was freed last and what that is joined to.
// Called last, so that malloc keeps nothing for afterwards.
void* take_from_end(Pool& pool, std::size_t stride);
void* take_from_last(Pool& pool, std::size_t stride);
// Grows the arena until `block` and the free block behind it have `stride` bytes. false: it is not the arena's last live
// block, or the arena does not grow.
bool grow_behind(Pool& pool, Block* block, std::size_t stride);
// Gives the end of the arena back if `block`, which is free, is its last.
void shrink(Pool& pool, Block* block);

// Takes a free block out of its list.
BRIMFUL_INLINE void unlist(Pool& pool, Block* block) { pool.lists.remove(block); }

struct Piece {
  Block* block;
  std::size_t stride;
};

// Joins `block`, `stride` bytes long and in no list, with its free neighbours. `header`: of `block`, for kAfterFree.
// Returns what is in no list now, and behind which a block says that it is after a free one.
BRIMFUL_INLINE Piece join(Pool& pool, Block* block, std::size_t stride, std::uint64_t header) {
  Block* const next = at(block, stride);
  const std::uint64_t behind = next->header;
  if ((header & kAfterFree) != 0) {
    const std::size_t before = stride_before(block);
    mark_joined(pool, block);
    block = at_front(block, before);
    stride += before;
    unlist(pool, block);
  }
  if ((behind & kFree) != 0) {
    unlist(pool, next);
    stride += behind & kStride;
  } else {
    next->header = behind | kAfterFree;
  }
  return {block, stride};
}

BRIMFUL_INLINE Block* list_joined(Pool& pool, Piece piece) {
  list_free(pool, piece.block, piece.stride);
  return piece.block;
}

// The same, and lists the result, the free block that it returns.
BRIMFUL_INLINE Block* put_back(Pool& pool, Block* block, std::size_t stride, std::uint64_t header) {
  return list_joined(pool, join(pool, block, stride, header));
}

// Ends a live block, and joins it.
BRIMFUL_INLINE Piece end(Pool& pool, Block* block) {
  const std::uint64_t header = block->header;
  const std::size_t stride = header & kStride;
  pool.counters.used -= stride;
  return join(pool, block, stride, header);
}

// Ends the block that was freed last, which there must be.
BRIMFUL_INLINE Piece end_last(Pool& pool) {
  Block* const block = pool.last_freed;
  pool.last_freed = nullptr;
  return end(pool, block);
}

// Puts the block that was freed last back, so that the pool is as if it had been at its free.
BRIMFUL_INLINE void settle(Pool& pool) {
  if (pool.last_freed != nullptr) list_joined(pool, end_last(pool));
}

// malloc and free of what is known to be right. NULL: no memory.
BRIMFUL_INLINE void* take(Pool& pool, std::size_t stride) {
  if (refuses_search(pool, stride)) return nullptr;
  Block* const block = pool.lists.take(stride);
  if (BRIMFUL_UNLIKELY(block == nullptr)) {
    return pool.last_freed != nullptr ? take_from_last(pool, stride) : take_from_end(pool, stride);
  }
  count_live(pool, cut(pool, block, stride_of(block), stride, 0));
  return payload_of(block);
}

// What is freed is put back by the next free, and only fetched by this one. In a pool that the cache does not hold, the
// header is missing there, and until it has come nobody knows where the next block is, or guesses right whether the
// neighbours are free; a call later it is there. Not so in the checked build, which is to find misuse at its call, and in
// an arena, which is to give memory back at once.
BRIMFUL_INLINE void give(Pool& pool, void* pointer) {
  Block* block = block_of(pointer);
  const bool grows = pool.setup.resize != nullptr;
  if (!kChecked && BRIMFUL_LIKELY(!grows)) {
    __builtin_prefetch(block, 1);
    Block* const before = pool.last_freed;
    pool.last_freed = block;
    if (before == nullptr) return;
    block = before;
  }
  block = list_joined(pool, end(pool, block));
  if (BRIMFUL_UNLIKELY(grows)) shrink(pool, block);
}

// regions.cpp: what Region::guard and Pool::guard should be.
std::uint64_t guard_of(const Region& region);
std::uint64_t guard_of(const Pool& pool);

// Makes `bytes` bytes at `region` one free block between both ends, and the pool's.
void open_region(Pool& pool, Region* region, std::size_t bytes);

}  // namespace brimful::tlsf
