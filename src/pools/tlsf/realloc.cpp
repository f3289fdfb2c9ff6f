// SPDX-License-Identifier: MIT
//
// realloc of a TLSF pool. In this order, the cheapest first: the block is long enough (what it has too much goes back),
// the free block behind it makes up the difference, the one in front of it does (the content moves down, and the pool
// has one hole less), another block. The first two take constant time, whatever the size. The block that was freed last
// is free for all of these, but not put back where it is about to be used.
#include <cstring>

#include "pools/tlsf/misuse.h"
#include "pools/tlsf/pool.h"

using namespace brimful::tlsf;

namespace {

// `used` and `peak` after a live block of `old` bytes became one of `now`.
BRIMFUL_INLINE void count_resized(Pool& pool, std::size_t old, std::size_t now) {
  pool.counters.used += now - old;
  note_peak(pool);
}

// Gives back what `block`, `have` bytes long, has beyond `stride` (the right trim). Constant time.
BRIMFUL_INLINE void trim(Pool& pool, Block* block, std::size_t have, std::size_t stride) {
  const std::size_t rest = have - stride;
  Block* const tail = at(block, stride);
  // A tail of 16 bytes is no block of its own, but joins a free one behind it.
  if (rest < kLeastStride && (rest == 0 || !is_free(at(block, have)))) return;
  set_header(pool, block, stride, block->header & kAfterFree);
  pool.counters.used -= rest;
  Block* const freed = put_back(pool, tail, rest, 0);
  if (BRIMFUL_UNLIKELY(pool.setup.resize != nullptr)) shrink(pool, freed);
}

// Joins the free block behind `block`, `have` bytes long, if both hold `stride` bytes. Constant time.
BRIMFUL_INLINE bool extend(Pool& pool, Block* block, std::size_t have, std::size_t stride) {
  Block* const next = at(block, have);
  std::size_t both = have;
  if (next == pool.last_freed) {
    const Piece piece = end_last(pool);
    both += piece.stride;
    if (both < stride) {
      list_joined(pool, piece);
      return false;
    }
  } else {
    both += stride_of(next);
    if (!is_free(next) || both < stride) return false;
    unlist(pool, next);
  }
  count_resized(pool, have, cut(pool, block, both, stride, block->header & kAfterFree));
  return true;
}

// Moves `block` down into the free block in front of it, if that, itself and a free one behind it hold `stride` bytes.
Block* slide(Pool& pool, Block* block, std::size_t have, std::size_t stride) {
  if (!is_after_free(block)) return nullptr;
  const std::size_t before = stride_before(block);
  Block* const next = at(block, have);
  const std::size_t behind = is_free(next) ? stride_of(next) : 0;
  if (before + have + behind < stride) return nullptr;
  Block* const front = at_front(block, before);
  unlist(pool, front);
  if (behind != 0) unlist(pool, next);
  mark_joined(pool, block);
  std::memmove(payload_of(front), payload_of(block), have - kHeaderBytes);
  const std::size_t whole = before + have + behind;
  // What is left over lies in front of a live block that did not follow a free one if nothing was free behind.
  if (whole - stride >= kLeastStride) at(front, whole)->header |= kAfterFree;
  count_resized(pool, have, cut(pool, front, whole, stride, 0));
  return front;
}

void* move(Pool& pool, void* pointer, std::size_t have, std::size_t stride) {
  void* const moved = take(pool, stride);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, pointer, have - kHeaderBytes);
  give(pool, pointer);
  return moved;
}

}  // namespace

void* brimful_tlsf_realloc(brimful_tlsf* pool, void* pointer, size_t bytes) {
  if (BRIMFUL_UNLIKELY(pointer == nullptr)) return brimful_tlsf_malloc(pool, bytes);
  if (refuses(*pool, pointer)) return nullptr;
  if (BRIMFUL_UNLIKELY(bytes == 0)) {
    give(*pool, pointer);
    return nullptr;
  }
  if (BRIMFUL_UNLIKELY(bytes > kMostRequest)) return nullptr;
  Block* const block = block_of(pointer);
  const std::size_t have = stride_of(block);
  const std::size_t stride = stride_for(bytes);
  if (stride <= have) {
    trim(*pool, block, have, stride);
    return pointer;
  }
  if (extend(*pool, block, have, stride)) return pointer;
  settle(*pool);
  if (Block* const front = slide(*pool, block, have, stride)) return payload_of(front);
  if (BRIMFUL_UNLIKELY(pool->setup.resize != nullptr) && pool->lists.find(list_above(stride)) == Lists::kNone &&
      grow_behind(*pool, block, stride) && extend(*pool, block, have, stride)) {
    return pointer;
  }
  return move(*pool, pointer, have, stride);
}
