// SPDX-License-Identifier: MIT
//
// Pages of the system's pool in the windows (pages/hugetlb.cpp), and the node that hugepages are given to (pages/nodes.h).
#include <gtest/gtest.h>

#include <vector>

#include "config/options.h"
#include "own_page_heap.h"

namespace brimful::testing {
namespace {

constexpr std::uint32_t kWhole = kHugepageBytes / kGranuleBytes;

class Pool : public ::testing::Test {
 protected:
  Pool() { config::options.hugetlb = static_cast<std::int64_t>(config::Hugetlb::k2M); }
  ~Pool() override { config::options = config::initial_options(); }
  OwnPageHeap own_;
};

TEST_F(Pool, IsNotAskedWithoutTheOption) {
  config::options.hugetlb = 0;
  own_.allocate(3 * kWhole);
  EXPECT_EQ(own_.os.count(Call::kHugetlb), 0U);
}

TEST_F(Pool, GivesWholeHugepagesWithTheFirstOfTheirGranules) {
  const std::uint64_t start = own_.allocate(1);
  const std::vector<Range> taken = own_.os.log(Call::kHugetlb);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0], (Range{round_down(start, kHugepageBytes), kHugepageBytes}));
  own_.os.reset();
  own_.allocate(1);
  EXPECT_EQ(own_.os.total(), 0U) << "the hugepage is there as a whole";
  own_.allocate(3 * kWhole);
  EXPECT_EQ(own_.os.count(Call::kHugetlb), 3U);
  EXPECT_EQ(own_.os.count(Call::kCommit), 0U);
}

TEST_F(Pool, ThatIsEmptyIsReplacedByOrdinaryPages) {
  own_.os.fail(Call::kHugetlb, 1, FakeOs::kAlways);
  const std::uint64_t run = own_.allocate(3 * kWhole);
  ASSERT_NE(run, 0U);
  EXPECT_EQ(own_.pages.stats().hugetlb_bytes, 0U);
  EXPECT_GT(own_.os.count(Call::kCommit), 0U);
  own_.free(run);
  EXPECT_EQ(own_.pages.purge(UINT64_MAX, SIZE_MAX, own_.os.now_ms), 3 * kHugepageBytes);
}

TEST_F(Pool, GetsFreeHugepagesBackAsWholes) {
  own_.allocate(kWhole - 1);  // the first hugepage, which holds the guard, is never free
  const std::uint64_t run = own_.allocate(3 * kWhole);
  const std::uint64_t part = own_.allocate(5);
  const std::uint64_t rest = own_.allocate(4);
  own_.free(run);
  own_.free(part);
  const std::size_t before = own_.pages.stats().hugetlb_bytes;
  own_.os.reset();
  EXPECT_EQ(own_.pages.purge(UINT64_MAX, SIZE_MAX, own_.os.now_ms), 3 * kHugepageBytes);
  EXPECT_EQ(own_.os.count(Call::kPurge), 0U) << "MADV_DONTNEED loses the reservation";
  EXPECT_EQ(own_.pages.stats().hugetlb_bytes, before - 3 * kHugepageBytes);
  EXPECT_EQ(own_.pages.stats().dirty_bytes, 5 * kGranuleBytes) << "part of a hugepage stays";
  own_.free(rest);
  EXPECT_EQ(own_.pages.purge(UINT64_MAX, SIZE_MAX, own_.os.now_ms), 9 * kGranuleBytes);
  EXPECT_EQ(own_.pages.stats().dirty_bytes, 0U);
  EXPECT_NE(own_.allocate(3 * kWhole), 0U) << "what went back is taken again";
}

TEST_F(Pool, MemoryThatWentBackIsZero) {
  const std::uint64_t run = own_.allocate(kWhole);
  own_.free(run);
  own_.pages.purge(UINT64_MAX, SIZE_MAX, own_.os.now_ms);
  const std::uint64_t again = own_.pages.allocate(GranuleCount(kWhole), kGranuleBytes);
  ASSERT_EQ(again, run);
  own_.pages.clear(again, kHugepageBytes);
  for (std::size_t i = 0; i < kHugepageBytes / 8; i += 512) {
    ASSERT_EQ(reinterpret_cast<const std::uint64_t*>(again)[i], 0U);
  }
}

TEST(Nodes, OfOneNodeCostNoCall) {
  OwnPageHeap own;
  own.allocate(5 * kWhole);
  EXPECT_EQ(own.os.count(Call::kPreferNode), 0U);
}

TEST(Nodes, ShareNoHugepageAsLongAsThereAreFreeOnes) {
  OwnPageHeap own;
  std::vector<std::uint64_t> runs[3];
  for (int i = 0; i < 40; ++i) {
    for (unsigned node = 0; node < 3; ++node) {
      const std::uint64_t run = own.pages.allocate(GranuleCount(1), kGranuleBytes, node);
      ASSERT_NE(run, 0U);
      EXPECT_EQ(own.pages.node_of(run), node);
      runs[node].push_back(run);
    }
  }
  const auto asked = own.os.log(Call::kPreferNode);
  EXPECT_EQ(asked.size(), 5U) << "the kernel is told once for each hugepage, but the one of node 0 before any other";
  for (const auto& of_node : runs) {
    for (const std::uint64_t run : of_node) own.pages.free(run, GranuleCount(1), own.os.now_ms);
  }
}

TEST(Nodes, HelpEachOtherOutWhenTheReserveIsUsedUp) {
  OwnPageHeap own;
  while (own.pages.allocate(GranuleCount(kWhole), kGranuleBytes, 1) != 0) {
  }
  EXPECT_NE(own.pages.allocate(GranuleCount(1), kGranuleBytes, 1), 0U);
  while (own.pages.allocate(GranuleCount(1), kGranuleBytes, 1) != 0) {
  }
  EXPECT_EQ(own.pages.allocate(GranuleCount(1), kGranuleBytes, 0), 0U);
}

}  // namespace
}  // namespace brimful::testing
