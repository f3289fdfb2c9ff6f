// SPDX-License-Identifier: MIT
//
// base/bits.h against the slow way to say the same.
#include "base/bits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace brimful {
namespace {

unsigned run_at(std::uint32_t word, unsigned bit) {
  unsigned length = 0;
  while (bit + length < 32 && (word >> (bit + length) & 1) != 0) ++length;
  return length;
}

std::vector<std::uint32_t> words() {
  std::vector<std::uint32_t> result = {0,           1,           kAllBits,   kAllBits - 1, kAllBits >> 1,
                                       0x80000000U, 0xFFFF0000U, 0x55555555U};
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) result.push_back((random() & (random() << i % 7)) | (random() >> i % 31));
  return result;
}

TEST(Bits, FindEachPlaceOfARun) {
  for (const std::uint32_t word : words()) {
    for (unsigned length = 1; length <= 32; ++length) {
      std::uint32_t expected = 0;
      for (unsigned bit = 0; bit < 32; ++bit) expected |= std::uint32_t{run_at(word, bit) >= length} << bit;
      ASSERT_EQ(run_starts(word, length), expected) << std::hex << word << " length " << std::dec << length;
    }
  }
}

TEST(Bits, KnowTheLongestRun) {
  for (const std::uint32_t word : words()) {
    unsigned expected = 0;
    for (unsigned bit = 0; bit < 32; ++bit) expected = run_at(word, bit) > expected ? run_at(word, bit) : expected;
    ASSERT_EQ(longest_run(word), expected) << std::hex << word;
  }
}

TEST(Bits, VisitEachRunOnce) {
  for (const std::uint32_t word : words()) {
    std::uint32_t seen = 0;
    for_each_run(word, [&](unsigned first, unsigned count) {
      EXPECT_EQ(run_at(word, first), count);
      EXPECT_EQ(seen & bits_from(first, count), 0U);
      seen |= bits_from(first, count);
    });
    ASSERT_EQ(seen, word);
  }
}

TEST(Bits, AreTakenFromTheLowest) {
  EXPECT_EQ(lowest_ones(0xB4, 0), 0U);
  EXPECT_EQ(lowest_ones(0xB4, 1), 0x04U);
  EXPECT_EQ(lowest_ones(0xB4, 3), 0x34U);
  EXPECT_EQ(lowest_ones(0xB4, 5), 0xB4U) << "there are no more";
  EXPECT_EQ(lowest_ones(~std::uint64_t{0}, 64), ~std::uint64_t{0});
}

TEST(Bits, StepFromTheFirst) {
  for (unsigned step = 1; step <= 32; step *= 2) {
    std::uint32_t expected = 0;
    for (unsigned bit = 0; bit < 32; bit += step) expected |= std::uint32_t{1} << bit;
    EXPECT_EQ(every_bit(step), expected);
  }
}

}  // namespace
}  // namespace brimful
