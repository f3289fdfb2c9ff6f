// SPDX-License-Identifier: MIT
//
// Bits of a word.
#pragma once

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

}  // namespace brimful
