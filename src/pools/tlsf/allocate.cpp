// SPDX-License-Identifier: MIT
//
// malloc, calloc, aligned_alloc and free of a TLSF pool: the public calls over the two steps of pool.h.
//
// aligned_alloc looks for a block with room for the request at the worst place it may begin, gives what lies in front of
// the aligned address back as a block of its own, and what lies behind as malloc does. A skipped head of 16 bytes would
// be no block, so it is then made longer by one alignment.
#include <cstring>

#include "pools/tlsf/misuse.h"
#include "pools/tlsf/pool.h"

namespace brimful::tlsf {

// Nothing but what comes of this block can be long enough now, so there is no second search. What is left over becomes
// what was freed last, which takes fewer instructions than listing it: this is the slowest malloc. That is also why it is
// not marked as cold.
__attribute__((noinline)) void* take_from_last(Pool& pool, std::size_t stride) {
  Piece piece = end_last(pool);
  const std::size_t rest = piece.stride - stride;
  if (piece.stride < stride) {
    list_joined(pool, piece);
    return nullptr;
  }
  at(piece.block, piece.stride)->header &= ~kAfterFree;
  if (rest >= kLeastStride) piece.stride = stride;
  set_header(pool, piece.block, piece.stride, 0);
  count_live(pool, piece.stride);
  if (rest >= kLeastStride) {
    Block* const tail = at(piece.block, stride);
    set_header(pool, tail, rest, 0);
    pool.last_freed = tail;
    pool.counters.used += rest;
  }
  return payload_of(piece.block);
}

}  // namespace brimful::tlsf

using namespace brimful::tlsf;

void* brimful_tlsf_malloc(brimful_tlsf* pool, size_t bytes) {
  if (BRIMFUL_UNLIKELY(bytes > kMostRequest)) return nullptr;
  return take(*pool, stride_for(bytes));
}

void* brimful_tlsf_calloc(brimful_tlsf* pool, size_t count, size_t bytes) {
  std::size_t product = 0;
  if (__builtin_mul_overflow(count, bytes, &product)) return nullptr;
  void* const payload = brimful_tlsf_malloc(pool, product);
  if (payload != nullptr) std::memset(payload, 0, product);
  return payload;
}

void* brimful_tlsf_aligned_alloc(brimful_tlsf* pool, size_t alignment, size_t bytes) {
  if (!is_alignment(alignment)) return nullptr;
  if (alignment <= kUnit) return brimful_tlsf_malloc(pool, bytes);
  if (bytes > kMostRequest - alignment - kUnit) return nullptr;
  settle(*pool);
  const std::size_t stride = stride_for(bytes);
  const std::size_t wanted = stride_for_aligned(stride, alignment);
  if (refuses_search(*pool, wanted)) return nullptr;
  Block* block = pool->lists.take(wanted);
  if (block == nullptr) block = grow(*pool, wanted);
  if (block == nullptr) return nullptr;
  std::size_t have = stride_of(block);

  const auto begin = reinterpret_cast<std::uintptr_t>(payload_of(block));
  std::size_t skipped = -begin & (alignment - 1);
  if (skipped == kUnit) skipped += alignment;
  if (skipped != 0) {
    list_free(*pool, block, skipped);
    block = at(block, skipped);
    have -= skipped;
  }
  count_live(*pool, cut(*pool, block, have, stride, skipped != 0 ? kAfterFree : 0));
  return payload_of(block);
}

void brimful_tlsf_free(brimful_tlsf* pool, void* pointer) {
  if (BRIMFUL_UNLIKELY(pointer == nullptr)) return;
  if (refuses(*pool, pointer)) return;
  give(*pool, pointer);
}

size_t brimful_tlsf_usable_size(const void* pointer) {
  return pointer == nullptr ? 0 : stride_of(block_of(pointer)) - kHeaderBytes;
}
