// SPDX-License-Identifier: MIT
//
// classes/size_classes.h, once more at run time and by other means than the header proves itself: brute force.
#include "classes/size_classes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>

#include "arch/sequences.h"
#include "meta/block.h"

namespace brimful {
namespace {

// What free() computes.
std::uint64_t index_of(const SizeClass& c, std::uint64_t offset) {
  return std::rotr(offset * c.multiplier, BRIMFUL_DIVISION_SHIFT);
}

std::uint64_t count_of(const SizeClass& c) { return std::uint64_t{c.groups} * kGroupObjects; }

TEST(SizeClasses, MapEveryRequestToTheSmallestClassThatHoldsIt) {
  std::size_t smallest = 0;
  for (std::size_t bytes = 0; bytes <= kMaxClassBytes; ++bytes) {
    while (kSizeClasses[smallest].bytes < bytes) ++smallest;
    ASSERT_EQ(class_of(bytes), smallest) << bytes;
  }
}

TEST(SizeClasses, WasteAtMostFifteenBytesOrAnEighth) {
  for (std::size_t bytes = 1; bytes <= kMaxClassBytes; ++bytes) {
    const std::size_t waste = kSizeClasses[class_of(bytes)].bytes - bytes;
    ASSERT_TRUE(waste <= 15 || waste * 8 <= bytes) << bytes << " wastes " << waste;
  }
}

TEST(SizeClasses, GiveTheFastPathsTablesThatSayTheSame) {
  const Block& block = arch::brimful_block;
  for (std::size_t bytes = 0; bytes <= kMaxClassBytes; ++bytes) {
    const std::size_t step = std::size_t{1} << BRIMFUL_MEDIUM_SHIFT;
    const unsigned doubled = bytes <= BRIMFUL_SMALL_MAX ? block.small[bytes] : block.medium[(bytes + step - 1) / step];
    ASSERT_EQ(doubled, 2U * class_of(bytes)) << bytes;
    ASSERT_EQ(block.sizes[doubled / 2], kSizeClasses[class_of(bytes)].bytes);
  }
}

TEST(SizeClasses, ServeEveryAlignmentWithTheSmallestClassWhoseObjectsAllLieOnIt) {
  for (std::size_t alignment = 1; alignment <= 2 * kMaxClassBytes; alignment *= 2) {
    for (std::size_t bytes = 0; bytes <= kMaxClassBytes + 1; bytes += bytes < 2048 ? 1 : 61) {
      std::size_t expected = 0;
      while (expected < kClassCount &&
             (kSizeClasses[expected].bytes < bytes || kSizeClasses[expected].bytes % alignment != 0)) {
        ++expected;
      }
      ASSERT_EQ(class_of_aligned(bytes, alignment), expected) << bytes << " on " << alignment;
    }
  }
}

TEST(SizeClasses, FitTheirObjectsIntoTheGranulesOfASlab) {
  for (const SizeClass& c : kSizeClasses) {
    const std::size_t used = count_of(c) * c.bytes;
    EXPECT_LE(used, GranuleCount(c.granules).bytes()) << c.bytes;
    EXPECT_LE((GranuleCount(c.granules).bytes() - used) * kTailShare, GranuleCount(c.granules).bytes()) << c.bytes;
    EXPECT_GT(used + kGroupObjects * std::size_t{c.bytes}, GranuleCount(c.granules).bytes()) << "room for a group more";
    for (std::uint32_t shorter = 1; shorter < c.granules; ++shorter) {
      const std::size_t bytes = GranuleCount(shorter).bytes();
      EXPECT_GT(bytes % (kGroupObjects * std::size_t{c.bytes}) * kTailShare, bytes)
          << c.bytes << ": fewer granules would do";
    }
    EXPECT_LE(count_of(c), std::uint64_t{BRIMFUL_MAX_OBJECTS});
    const unsigned offered = 64U - c.batch;
    EXPECT_TRUE(std::has_single_bit(offered) && offered <= 64) << c.bytes;
    const unsigned young = 64U - c.young;
    EXPECT_TRUE(std::has_single_bit(young) && young <= offered) << c.bytes;
  }
}

TEST(ExactDivision, AcceptsObjectStartsAndNoOtherByteOfASlabOrItsNeighbours) {
  for (const SizeClass& c : kSizeClasses) {
    // Every byte for a few classes of each kind (power of two, odd factor), every 16th for the rest, which are many.
    const bool every = c.bytes <= 48 || c.bytes == 256 || c.bytes == 320 || c.bytes == 1024 || c.bytes == 3584;
    const auto end = static_cast<std::int64_t>(GranuleCount(c.granules).bytes() + kGranuleBytes);
    for (std::int64_t offset = -static_cast<std::int64_t>(kGranuleBytes); offset < end; offset += every ? 1 : 16) {
      const auto quotient = static_cast<std::uint64_t>(offset / static_cast<std::int64_t>(c.bytes));
      const bool starts = offset >= 0 && offset % c.bytes == 0 && quotient < count_of(c);
      const std::uint64_t index = index_of(c, static_cast<std::uint64_t>(offset));
      if (starts) {
        ASSERT_EQ(index, quotient) << c.bytes << " at " << offset;
      } else {
        ASSERT_GE(index, count_of(c)) << c.bytes << " at " << offset;
      }
    }
  }
}

// An address and a slab are at most 2^52 bytes apart: the division ignores the bits above, for the smallest shift (4)
// the upper 12 of them.
TEST(ExactDivision, RefusesForeignAddressesOfTheWholeAddressSpace) {
  std::mt19937_64 random(2);
  for (const SizeClass& c : kSizeClasses) {
    for (int i = 0; i < 20000; ++i) {
      const auto offset = static_cast<std::uint64_t>(static_cast<std::int64_t>(random()) >> (13 + random() % 40));
      const bool starts = offset % c.bytes == 0 && offset / c.bytes < count_of(c);
      ASSERT_EQ(index_of(c, offset) < count_of(c), starts) << c.bytes << " at " << offset;
      // The same at multiples of the size: those a mere divisibility test would let through.
      const std::uint64_t multiple = offset / c.bytes * c.bytes;
      if ((multiple >> 51) == 0) {
        ASSERT_EQ(index_of(c, multiple) < count_of(c), multiple / c.bytes < count_of(c)) << c.bytes;
      }
    }
  }
}

}  // namespace
}  // namespace brimful
