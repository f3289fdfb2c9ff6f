// SPDX-License-Identifier: MIT
//
// Bits of a word, and runs of set bits in a word of 32.
#pragma once

#include <bit>
#include <cstdint>

namespace brimful {

// How many bits are set. std::popcount is a call into the compiler's runtime on x86-64, whose first processors had no
// instruction for it; this is 12 operations. Source: Warren, Hacker's Delight, 5-1.
constexpr unsigned count_ones(std::uint64_t word) {
  word -= word >> 1 & 0x5555555555555555U;
  word = (word & 0x3333333333333333U) + (word >> 2 & 0x3333333333333333U);
  word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0FU;
  return static_cast<unsigned>(word * 0x0101010101010101U >> 56);
}

// The `count` lowest bits that are set; all, if there are no more.
constexpr std::uint64_t lowest_ones(std::uint64_t word, unsigned count) {
  std::uint64_t rest = word;
  for (; count != 0 && rest != 0; --count) rest &= rest - 1;
  return word ^ rest;
}

inline constexpr std::uint32_t kAllBits = ~std::uint32_t{0};

// `count` (1 to 32) bits from bit `first` on.
constexpr std::uint32_t bits_from(unsigned first, unsigned count) { return kAllBits >> (32 - count) << first; }

// Every `step`-th bit, bit 0 among them. `step` is a power of two up to 32.
constexpr std::uint32_t every_bit(unsigned step) {
  return static_cast<std::uint32_t>(kAllBits / ((std::uint64_t{1} << step) - 1));
}

// Bit i is set where `length` (at least 1) set bits begin: bits i to i + length - 1 of `word`. O(log length).
// Source: Warren, Hacker's Delight, 6-2.
constexpr std::uint32_t run_starts(std::uint32_t word, unsigned length) {
  while (length > 1) {
    const unsigned half = length / 2;
    word &= word >> half;
    length -= half;
  }
  return word;
}

// The length of the longest run of set bits. Runs of 1, 2, 4, 8 and 16 are found by doubling, and put together from the
// longest on: 25 operations for any word, where a loop over its runs takes up to 16 rounds.
constexpr unsigned longest_run(std::uint32_t word) {
  if (word == kAllBits) return 32;
  const std::uint32_t twos = word & word >> 1;
  const std::uint32_t fours = twos & twos >> 2;
  const std::uint32_t eights = fours & fours >> 4;
  const std::uint32_t powers[] = {eights & eights >> 8, eights, fours, twos, word};
  std::uint32_t starts = kAllBits;
  unsigned length = 0;
  unsigned power = 16;
  for (const std::uint32_t runs : powers) {
    const std::uint32_t longer = starts & runs >> length;
    if (longer != 0) {
      starts = longer;
      length += power;
    }
    power /= 2;
  }
  return length;
}

// Calls visit(first, count) for each maximal run of set bits, the lowest first.
template <class Visit>
void for_each_run(std::uint32_t word, Visit visit) {
  while (word != 0) {
    const auto first = static_cast<unsigned>(std::countr_zero(word));
    const auto count = static_cast<unsigned>(std::countr_one(word >> first));
    visit(first, count);
    word &= ~bits_from(first, count);
  }
}

}  // namespace brimful
