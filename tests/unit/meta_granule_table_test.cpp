// SPDX-License-Identifier: MIT
//
// meta/granule_table.h on an instance of its own, over a system that fails on demand.
#include "meta/granule_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "arch/sequences.h"
#include "config/options.h"
#include "fake_os.h"

namespace brimful::meta {
namespace {

using testing::Call;
using testing::FakeOs;

class GranuleTableTest : public ::testing::Test {
 protected:
  ~GranuleTableTest() override { os_.unmap_everything(); }

  FakeOs os_;
  GranuleTable table_;
};

TEST_F(GranuleTableTest, LooksUpTheNoneHeaderForAnyAddressOfAnEmptyTable) {
  ASSERT_TRUE(table_.reserve(4096));
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t address = random();
    EXPECT_EQ(table_.look_up(address), &none);
    const std::uint64_t granule = address >> 17 & ~std::uint64_t{0xFFFF};  // of a program's address space
    EXPECT_GE(static_cast<Slab&>(none).index_of(granule), std::uint64_t{BRIMFUL_MAX_OBJECTS}) << granule;
  }
  EXPECT_EQ(none.kind, Kind::kNone);
  EXPECT_EQ(none.bytes, 0U);
  EXPECT_EQ(none.multiplier, 1U);
}

TEST_F(GranuleTableTest, CoversByDoublingAndPublishesTheMaskThatFreeUses) {
  ASSERT_TRUE(table_.reserve(GranuleTable::kMaxGranules));
  const std::uint64_t least = os::page_bytes() / sizeof(Header*);
  std::uint64_t expected = least;
  for (const std::uint64_t end :
       {std::uint64_t{1}, least, least + 1, least * 4, least * 5, GranuleTable::kMaxGranules}) {
    ASSERT_TRUE(table_.cover(GranuleId(end)));
    while (expected < end) expected *= 2;
    EXPECT_EQ(table_.covered(), expected);
    EXPECT_EQ(arch::brimful_hot.granule_mask, expected - 1);
    EXPECT_EQ(arch::brimful_hot.table[expected - 1], &none);
    EXPECT_EQ(table_.hugepage_of(GranuleId(expected - 1))->state, Hugepage::State::kNone);
    EXPECT_EQ(table_.covered_hugepages(), expected / kGranulesPerHugepage);
    if (expected >= least * 8) break;  // the largest is for the next test: it writes 128 MiB
  }
  EXPECT_FALSE(table_.cover(GranuleId(GranuleTable::kMaxGranules + 1)));
}

TEST_F(GranuleTableTest, StaysOutOfSightOfFreeInTheHardenedTier) {
  config::options.tier = static_cast<std::int64_t>(config::Tier::kHardened);
  Header* const* const before = arch::brimful_hot.table;
  ASSERT_TRUE(table_.reserve(4096));
  ASSERT_TRUE(table_.cover(GranuleId(4096)));
  Header header = {};
  table_.set(GranuleId(7), &header);
  EXPECT_EQ(header_of(7 * kGranuleBytes + 16), &header);
  EXPECT_EQ(header_of(8 * kGranuleBytes), &none);
  EXPECT_EQ(arch::brimful_hot.table, before);
  EXPECT_EQ(arch::brimful_hot.granule_mask, 0U);
}

TEST_F(GranuleTableTest, KeepsWhatWasSetWhileItGrows) {
  ASSERT_TRUE(table_.reserve(1 << 16));
  ASSERT_TRUE(table_.cover(GranuleId(10)));
  Header header = {};
  table_.set_all(GranuleId(3), GranuleCount(4), &header);
  table_.hugepage_of(GranuleId(5))->set_dirty(0x20);
  ASSERT_TRUE(table_.cover(GranuleId(1 << 16)));
  EXPECT_EQ(table_.get(GranuleId(2)), &none);
  EXPECT_EQ(table_.get(GranuleId(3)), &header);
  EXPECT_EQ(table_.look_up(6 * kGranuleBytes + 12345), &header);
  EXPECT_EQ(table_.look_up(((std::uint64_t{9} << 16) + 6) * kGranuleBytes), &header) << "addresses are taken modulo";
  EXPECT_EQ(table_.get(GranuleId(7)), &none);
  EXPECT_EQ(table_.hugepage(0)->dirty(), 0x20U);
  table_.clear(GranuleId(3));
  EXPECT_EQ(table_.get(GranuleId(3)), &none);
}

TEST_F(GranuleTableTest, ChangesNothingWhenCommitFails) {
  ASSERT_TRUE(table_.reserve(1 << 16));
  ASSERT_TRUE(table_.cover(GranuleId(1)));
  const std::uint64_t covered = table_.covered();
  for (const std::size_t n : {1, 2}) {
    os_.fail(Call::kCommit, n);
    EXPECT_FALSE(table_.cover(GranuleId(1 << 16)));
    EXPECT_EQ(os_.succeed(), 1U);
    EXPECT_EQ(table_.covered(), covered);
    EXPECT_EQ(arch::brimful_hot.granule_mask, covered - 1);
    EXPECT_EQ(table_.get(GranuleId(covered)), &none);
  }
  EXPECT_TRUE(table_.cover(GranuleId(1 << 16)));
  EXPECT_EQ(table_.covered(), 1U << 16);
}

TEST_F(GranuleTableTest, ReservesAllThatIsAskedForOrNothing) {
  os_.fail(Call::kReserve, 1);
  EXPECT_FALSE(table_.reserve(4096));
  EXPECT_EQ(table_.span(), 0U);
  EXPECT_EQ(os_.mapped_bytes(), 0U);
  EXPECT_TRUE(table_.reserve(1024));
  EXPECT_EQ(table_.span(), 1024U);
  EXPECT_TRUE(table_.cover(GranuleId(1024)));
  EXPECT_FALSE(table_.cover(GranuleId(1025)));
}

}  // namespace
}  // namespace brimful::meta
