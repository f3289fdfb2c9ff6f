// SPDX-License-Identifier: MIT
//
// A block of a TLSF pool: one word in front, the header, and then what the caller may use. Headers stand at addresses of
// 8 modulo 16, so that what follows is aligned to 16.
//
//     live      header | usable bytes …                        | header of the next
//     free      header | next | slot | …        | footer       | header of the next
//                                                 stride, so that the next block finds this one
//
// The stride, from header to header, is a multiple of 16 and at least 32: header, two links and footer, the four words
// of a free block. The header holds the stride and, in the bits that are 0 in a stride, whether this block is free and
// whether the one before it is. A region ends with a header of stride 0, never free: the sentinel.
//
// `slot` is the place that points to the block: the link of the block before it in the list, or the list's head. A block
// leaves its list without knowing which of both it is, and a list's number follows from the address of its head.
//
// In the checked build the upper bits of a header hold a tag, a hash of the header's own address, the pool and the
// number of resets: whatever is not the header of this pool's block fails to have it, but for one case in 2^24.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/compiler.h"
#include "base/units.h"
#include "brimful/tlsf.h"

namespace brimful::tlsf {

inline constexpr bool kChecked = BRIMFUL_TLSF_CHECKS != 0;

inline constexpr std::size_t kUnit = BRIMFUL_TLSF_ALIGNMENT;  // strides are multiples of it
inline constexpr std::size_t kHeaderBytes = 8;
inline constexpr std::size_t kLeastStride = 32;

inline constexpr std::uint64_t kFree = 1;       // this block is free
inline constexpr std::uint64_t kAfterFree = 2;  // the block before it is free, so its footer is valid
inline constexpr std::uint64_t kFlags = kUnit - 1;
inline constexpr unsigned kTagShift = 40;
inline constexpr std::uint64_t kTag = kChecked ? ~std::uint64_t{0} << kTagShift : 0;
inline constexpr std::uint64_t kStride = ~(kFlags | kTag);

static_assert(sizeof(void*) == 8, "headers are words of 64 bits, and so are links");
static_assert(BRIMFUL_TLSF_MOST_BYTES < std::uint64_t{1} << kTagShift, "a stride does not reach into the tag");

struct Block {
  std::uint64_t header;
  Block* next;   // of the same list, or NULL. From here on: only while the block is free
  Block** slot;  // what points to this block
};

BRIMFUL_INLINE std::size_t stride_of(const Block* block) { return block->header & kStride; }
BRIMFUL_INLINE bool is_free(const Block* block) { return (block->header & kFree) != 0; }
BRIMFUL_INLINE bool is_after_free(const Block* block) { return (block->header & kAfterFree) != 0; }

BRIMFUL_INLINE Block* at(void* base, std::size_t offset) {
  return reinterpret_cast<Block*>(static_cast<char*>(base) + offset);
}
BRIMFUL_INLINE const Block* at(const void* base, std::size_t offset) {
  return reinterpret_cast<const Block*>(static_cast<const char*>(base) + offset);
}
// As far in front of it.
BRIMFUL_INLINE Block* at_front(void* base, std::size_t offset) {
  return reinterpret_cast<Block*>(static_cast<char*>(base) - offset);
}
BRIMFUL_INLINE const Block* at_front(const void* base, std::size_t offset) {
  return reinterpret_cast<const Block*>(static_cast<const char*>(base) - offset);
}

BRIMFUL_INLINE void* payload_of(Block* block) { return &block->next; }
BRIMFUL_INLINE const void* payload_of(const Block* block) { return &block->next; }
BRIMFUL_INLINE Block* block_of(void* payload) {
  return reinterpret_cast<Block*>(static_cast<char*>(payload) - kHeaderBytes);
}
BRIMFUL_INLINE const Block* block_of(const void* payload) {
  return reinterpret_cast<const Block*>(static_cast<const char*>(payload) - kHeaderBytes);
}

// The footer of a free block of `stride` bytes; it ends where the next header begins.
BRIMFUL_INLINE std::uint64_t* footer_of(Block* block, std::size_t stride) { return &at(block, stride)->header - 1; }

// The stride of the free block before `block`, which must be after a free one.
BRIMFUL_INLINE std::uint64_t stride_before(const Block* block) { return *(&block->header - 1); }

// The stride that serves a request of `bytes`, at most kMostRequest.
BRIMFUL_INLINE std::size_t stride_for(std::size_t bytes) {
  const std::size_t stride = (bytes + kHeaderBytes + kUnit - 1) & ~(kUnit - 1);
  return stride < kLeastStride ? kLeastStride : stride;
}

// A power of two that aligned_alloc serves. Not std::has_single_bit: that is a call into the compiler's runtime.
BRIMFUL_INLINE bool is_alignment(std::size_t alignment) {
  return is_power_of_two(alignment) && alignment <= BRIMFUL_TLSF_MOST_ALIGNMENT;
}

// What to look for when a block of `stride` bytes may have to begin later for `alignment`, more than 16: the skipped head
// is a multiple of 16, at most alignment - 16, and one alignment longer if it is 16, which is no block.
BRIMFUL_INLINE std::size_t stride_for_aligned(std::size_t stride, std::size_t alignment) {
  return stride + alignment + kUnit;
}

// Larger requests fail at once: no region holds them. Strides of the others are below the largest region's bytes, which
// the lists' table relies on.
inline constexpr std::size_t kMostRequest = BRIMFUL_TLSF_MOST_BYTES - 4 * kUnit;

}  // namespace brimful::tlsf
