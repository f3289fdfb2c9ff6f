// SPDX-License-Identifier: MIT
//
// The free lists: 32 for each power of two, and the two levels of bitmaps that find one that is not empty in a few
// instructions, whatever is in the pool.
//
//     list    0 …  31    strides      0 …  496 in steps of 16    (0 and 1 stay empty: no block is that small)
//     list   32 …  63    strides    512 … 1008 in steps of 16
//     list   64 …  95    strides   1024 … 2016 in steps of 32, and so on, twice as wide each time
//
// List i holds the strides from least_of(i) to just below least_of(i + 1), so a block of a list above list_of(stride) is
// large enough, and so is each block of list_of(stride) if its least is the stride. That is good fit: a request is
// rounded up to the next least, at most 1/32 more than itself, and any block found there serves it without a search.
//
// The paper's bitmaps are a word of first levels and a word of second levels each. Here the lists' bits lie in one row
// of words of 64, two first levels in each, and the summary says which words are not 0: the same two steps, fewer of
// them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "pools/tlsf/block.h"

namespace brimful::tlsf {

inline constexpr unsigned kListsPerPower = 32;
inline constexpr unsigned kPowerShift = 5;  // log2 of it
inline constexpr unsigned kUnitShift = 4;   // log2 of kUnit: the width of the narrowest lists

// log2 of the width of the list that `stride` belongs to. Below 1024 all are one unit wide.
constexpr unsigned width_shift(std::size_t stride) {
  // 63 ^, not 63 -: compilers know that as one instruction.
  return static_cast<unsigned>(63 ^ std::countl_zero(stride | kListsPerPower << kUnitShift)) - kPowerShift;
}

// `stride` may be any number below 2^38: in the search it has been rounded up.
constexpr unsigned list_at(std::size_t stride, unsigned shift) {
  return static_cast<unsigned>(stride >> shift) + ((shift - kUnitShift) << kPowerShift);
}

// The list that a free block of `stride` belongs to.
constexpr unsigned list_of(std::size_t stride) { return list_at(stride, width_shift(stride)); }

// The first list all of whose blocks have at least `stride` bytes. Rounding may reach the next power of two, and the
// number it gets there is that of the next power's first list: list_at() carries.
constexpr unsigned list_above(std::size_t stride) {
  const unsigned shift = width_shift(stride);
  return list_at(stride + (std::size_t{1} << shift) - 1, shift);
}

// The least stride of a list.
constexpr std::size_t least_of(unsigned list) {
  if (list < 2 * kListsPerPower) return std::size_t{list} << kUnitShift;
  const unsigned power = list >> kPowerShift;
  return std::size_t{kListsPerPower + list % kListsPerPower} << (power + kUnitShift - 1);
}

// A request near the largest may be rounded up beyond what a region holds: that list exists, and stays empty.
inline constexpr unsigned kLists = list_above(BRIMFUL_TLSF_MOST_BYTES - 1) + 1;
inline constexpr unsigned kWordBits = 64;
inline constexpr unsigned kWords = (kLists + kWordBits - 1) / kWordBits;

constexpr bool lists_tile_all_strides() {
  for (unsigned list = 0; list < kLists; ++list) {
    if (list_of(least_of(list)) != list || list_above(least_of(list)) != list) return false;
    if (list_of(least_of(list + 1) - 1) != list || list_above(least_of(list) + 1) != list + 1) return false;
  }
  return true;
}
static_assert(lists_tile_all_strides());
static_assert(kWords <= kWordBits);

struct Lists {
  // Of the request's own list. 4: sizes of [10000, 10064) fill a pool to 0.98 where 0 leave it at 0.70, and 8 add 0.005.
  static constexpr unsigned kLookedAt = 4;
  static constexpr unsigned kNone = ~0U;

  std::uint64_t summary;        // bit w: words[w] is not 0
  std::uint64_t words[kWords];  // bit i of them all: heads[i] is not NULL
  Block* heads[kLists];

  // Takes out a block of at least `stride` bytes, or NULL: the search finds none. First the list that rounding up leads
  // to. Before a longer block is cut up, the first few of the request's own list are looked at, which rounding passes by;
  // a fixed number of them, so that the bound stays one.
  BRIMFUL_INLINE Block* take(std::size_t stride) {
    unsigned list = list_above(stride);
    Block* block = heads[list];
    if (block == nullptr) {
      block = heads[list_of(stride)];
#pragma GCC unroll 4
      for (unsigned looked_at = 0; block != nullptr && looked_at < kLookedAt; ++looked_at) {
        // Flags do not change the result: strides are multiples of 16.
        if ((block->header & ~kTag) >= stride) {
          remove(block);
          return block;
        }
        block = block->next;
      }
      list = find(list);
      if (BRIMFUL_UNLIKELY(list == kNone)) return nullptr;
      block = heads[list];
    }
    remove_head(block, list);
    return block;
  }

  // The first list from `list` on that is not empty, or kNone.
  [[nodiscard]] BRIMFUL_INLINE unsigned find(unsigned list) const {
    unsigned word = list / kWordBits;
    std::uint64_t bits = words[word] & ~std::uint64_t{0} << list % kWordBits;
    if (bits == 0) {
      const std::uint64_t later = summary & ~std::uint64_t{1} << word;
      if (later == 0) return kNone;
      word = static_cast<unsigned>(std::countr_zero(later));
      bits = words[word];
    }
    return word * kWordBits + static_cast<unsigned>(std::countr_zero(bits));
  }

  BRIMFUL_INLINE void insert(Block* block, std::size_t stride) {
    const unsigned list = list_of(stride);
    Block** const slot = &heads[list];
    Block* const next = *slot;
    block->next = next;
    block->slot = slot;
    *slot = block;
    if (next != nullptr) {
      next->slot = &block->next;
      return;
    }
    const unsigned word = list / kWordBits;
    words[word] |= std::uint64_t{1} << list % kWordBits;
    summary |= std::uint64_t{1} << word;
  }

  // `block` is the first of `list`: what remove() finds out is known.
  BRIMFUL_INLINE void remove_head(Block* block, unsigned list) {
    Block* const next = block->next;
    heads[list] = next;
    if (next != nullptr) {
      next->slot = &heads[list];
    } else {
      mark_empty(list);
    }
  }

  BRIMFUL_INLINE void remove(Block* block) {
    Block* const next = block->next;
    Block** const slot = block->slot;
    *slot = next;
    if (next != nullptr) {
      next->slot = slot;
      return;
    }
    const std::size_t list =
        static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(slot) - reinterpret_cast<std::uintptr_t>(heads)) /
        sizeof(Block*);
    if (BRIMFUL_LIKELY(list < kLists)) mark_empty(static_cast<unsigned>(list));  // else it was the last of several
  }

 private:
  BRIMFUL_INLINE void mark_empty(unsigned list) {
    const unsigned word = list / kWordBits;
    const std::uint64_t rest = words[word] & std::rotl(~std::uint64_t{1}, static_cast<int>(list % kWordBits));
    words[word] = rest;
    if (rest == 0) summary &= std::rotl(~std::uint64_t{1}, static_cast<int>(word));
  }
};

}  // namespace brimful::tlsf
