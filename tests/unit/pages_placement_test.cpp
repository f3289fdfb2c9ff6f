// SPDX-License-Identifier: MIT
//
// Where the page heap puts runs, in which order it gives memory back, and what it counts on the way.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "own_page_heap.h"

namespace brimful::pages {
namespace {

using testing::Call;
using testing::OwnPageHeap;
using testing::Range;

// A heap whose first hugepage, which begins with the window's guard, is full.
class Placement : public ::testing::Test {
 protected:
  Placement() { heap_.allocate(31); }

  static std::uint64_t hugepage_of(std::uint64_t address) { return round_down(address, kHugepageBytes); }

  // A hugepage of one-granule runs, all in use.
  std::vector<std::uint64_t> full_hugepage() {
    std::vector<std::uint64_t> runs;
    for (int i = 0; i < 32; ++i) runs.push_back(heap_.allocate(1));
    EXPECT_EQ(hugepage_of(runs.front()), hugepage_of(runs.back()));
    return runs;
  }

  OwnPageHeap heap_;
};

TEST_F(Placement, ReusesFullestHugepageFirst) {
  const auto emptier = full_hugepage();
  const auto fuller = full_hugepage();
  for (int i = 0; i < 20; i += 2) heap_.free(emptier[i]);
  for (int i = 0; i < 4; i += 2) heap_.free(fuller[i]);
  EXPECT_EQ(hugepage_of(heap_.allocate(1)), hugepage_of(fuller[0]));
  EXPECT_EQ(hugepage_of(heap_.allocate(1)), hugepage_of(fuller[0]));
  EXPECT_EQ(hugepage_of(heap_.allocate(1)), hugepage_of(emptier[0]));
}

TEST_F(Placement, ProtectsLongFreeRanges) {
  const auto longer = full_hugepage();
  const auto shorter = full_hugepage();
  for (int i = 0; i < 10; ++i) heap_.free(longer[i]);
  // Emptier, but its free ranges are short.
  for (int i = 0; i < 31; ++i) {
    if (i % 4 != 3) heap_.free(shorter[i]);
  }
  for (int i = 0; i < 8; ++i) EXPECT_EQ(hugepage_of(heap_.allocate(3)), hugepage_of(shorter[0]));
  EXPECT_EQ(heap_.allocate(7), longer[0]);
}

TEST_F(Placement, PrefersTheLowestOfTwoEqualHugepages) {
  const auto low = full_hugepage();
  const auto high = full_hugepage();
  heap_.free(high[5]);
  heap_.free(low[9]);
  EXPECT_EQ(heap_.allocate(1), low[9]);
  EXPECT_EQ(heap_.allocate(1), high[5]);
}

TEST_F(Placement, PrefersResidentMemoryThenARangeOfTheRightLength) {
  const auto runs = full_hugepage();
  for (int i = 2; i < 6; ++i) heap_.free(runs[i]);
  for (int i = 8; i < 10; ++i) heap_.free(runs[i]);
  heap_.pages.purge(UINT64_MAX, SIZE_MAX, heap_.os.now_ms);
  for (int i = 20; i < 25; ++i) heap_.free(runs[i]);
  EXPECT_EQ(heap_.allocate(2), runs[20]) << "resident";
  heap_.free(runs[20]);
  heap_.pages.purge(UINT64_MAX, SIZE_MAX, heap_.os.now_ms);
  EXPECT_EQ(heap_.allocate(2), runs[8]) << "just as long";
  EXPECT_EQ(heap_.allocate(2), runs[2]) << "the lowest";
}

TEST_F(Placement, FindsResidentMemoryOrNothingWhenAskedForThatOnly) {
  const auto runs = full_hugepage();
  EXPECT_EQ(heap_.pages.allocate_resident(GranuleCount(1)), 0U) << "all in use";
  for (int i = 2; i < 5; ++i) heap_.free(runs[i]);
  EXPECT_EQ(heap_.pages.allocate_resident(GranuleCount(4)), 0U) << "three in a row";
  const std::uint64_t three = heap_.pages.allocate_resident(GranuleCount(3));
  EXPECT_EQ(three, runs[2]);
  heap_.pages.free(three, GranuleCount(3), heap_.os.now_ms);
  heap_.pages.purge(UINT64_MAX, SIZE_MAX, heap_.os.now_ms);
  EXPECT_EQ(heap_.pages.allocate_resident(GranuleCount(1)), 0U) << "given back";
}

TEST_F(Placement, TakesWhatIsUsableAlreadyWhenTheSystemMakesNoMoreUsable) {
  const auto runs = full_hugepage();
  for (int i = 0; i < 12; ++i) heap_.allocate(1);  // of the next hugepage, whose other 20 granules are a shorter range
  for (int i = 3; i < 28; ++i) heap_.free(runs[i]);
  heap_.os.fail(Call::kCommit, 1, testing::FakeOs::kAlways);
  const auto allocate = [&] {
    return heap_.pages.allocate(GranuleCount(6), kGranuleBytes, 0, kNoClass, Memory::kFresh);
  };
  EXPECT_EQ(allocate(), runs[3]);
  EXPECT_EQ(allocate(), runs[9]);
  EXPECT_EQ(allocate(), runs[15]);
  EXPECT_EQ(allocate(), runs[21]);
  EXPECT_EQ(allocate(), 0U) << "one granule is left";
}

TEST_F(Placement, AlignsInsideAHugepage) {
  const auto runs = full_hugepage();
  for (int i = 1; i < 30; ++i) heap_.free(runs[i]);
  EXPECT_EQ(heap_.allocate(3, 4 * kGranuleBytes), runs[4]);
  EXPECT_EQ(heap_.allocate(1, 16 * kGranuleBytes), runs[16]);
  EXPECT_EQ(heap_.allocate(2, 8 * kGranuleBytes), runs[8]);
  EXPECT_NE(hugepage_of(heap_.allocate(1, kHugepageBytes)), hugepage_of(runs[0]));
}

TEST_F(Placement, StartsLongRunsOnAHugepageAndKeepsTheirTailsForGrowth) {
  const auto others = full_hugepage();
  const std::uint64_t run = heap_.allocate(40);
  EXPECT_EQ(run % kHugepageBytes, 0U);
  heap_.allocate(32);
  for (int i = 0; i < 31; ++i) heap_.free(others[i]);
  EXPECT_EQ(heap_.allocate(24), others[0]) << "though the tail is just as long";
  EXPECT_TRUE(heap_.extend(run, 24));
  EXPECT_FALSE(heap_.extend(run, 1)) << "the next hugepage is in use";
}

TEST_F(Placement, GrowsOverTailFreeHugepagesAndTheFrontOfAnother) {
  const std::uint64_t run = heap_.allocate(40);
  const std::uint64_t middle = heap_.allocate(64);
  const std::uint64_t last = heap_.allocate(32);
  heap_.free(middle);
  heap_.pages.free(last, GranuleCount(5), heap_.os.now_ms);
  heap_.live.erase(last);
  testing::fill_granules(last + GranuleCount(5).bytes(), 27);
  heap_.live[last + GranuleCount(5).bytes()] = 27;
  EXPECT_FALSE(heap_.extend(run, 24 + 64 + 6));
  EXPECT_TRUE(heap_.extend(run, 24 + 64 + 5));
  heap_.free_all();
  heap_.expect_whole();
}

TEST_F(Placement, TakesAResidentRangeThatFitsAboutAsWell) {
  const std::uint64_t clean = heap_.allocate(32 * 8);
  heap_.allocate(32);
  const std::uint64_t resident = heap_.allocate(32 * 9);
  heap_.allocate(32);
  heap_.free(clean);
  heap_.pages.purge(UINT64_MAX, SIZE_MAX, heap_.os.now_ms);
  heap_.free(resident);
  EXPECT_EQ(heap_.allocate(32 * 8), resident);
}

TEST_F(Placement, KeepsTheHugepagesOfTwoNodesApartWhileThereIsRoom) {
  const std::uint64_t here = heap_.pages.allocate(GranuleCount(1), kGranuleBytes, 0);
  const std::uint64_t there = heap_.pages.allocate(GranuleCount(1), kGranuleBytes, 1);
  EXPECT_NE(hugepage_of(here), hugepage_of(there));
  EXPECT_EQ(hugepage_of(heap_.pages.allocate(GranuleCount(1), kGranuleBytes, 0)), hugepage_of(here));
  EXPECT_EQ(hugepage_of(heap_.pages.allocate(GranuleCount(1), kGranuleBytes, 1)), hugepage_of(there));
  while (heap_.pages.allocate(GranuleCount(32), kGranuleBytes, 0) != 0) {
  }
  EXPECT_NE(heap_.pages.allocate(GranuleCount(31 - 1), kGranuleBytes, 0), 0U) << "the own node's last";
  EXPECT_NE(heap_.pages.allocate(GranuleCount(31 - 1), kGranuleBytes, 0), 0U) << "another node's";
}

TEST_F(Placement, GivesFreeHugepagesBackFirstAndNeighboursInOneCall) {
  const auto parts = full_hugepage();
  const std::uint64_t whole = heap_.allocate(32 * 5);
  heap_.allocate(32);
  heap_.free(parts[3]);
  heap_.os.now_ms += 100;
  heap_.free(whole);
  heap_.os.reset();
  EXPECT_EQ(heap_.pages.purge(heap_.os.now_ms, SIZE_MAX, heap_.os.now_ms), 5 * kHugepageBytes + kGranuleBytes);
  EXPECT_EQ(heap_.os.log(Call::kPurge), (std::vector<Range>{{whole, 5 * kHugepageBytes}, {parts[3], kGranuleBytes}}));
}

TEST_F(Placement, PurgesAHugepageThatIsInUseAllTheTime) {
  const auto runs = full_hugepage();
  heap_.free(runs[1]);
  std::uint64_t hot = runs[20];
  std::size_t purged = 0;
  for (int i = 0; i < 400; ++i) {  // 4 s
    heap_.free(hot);
    heap_.os.now_ms += 10;
    purged += heap_.pages.purge(heap_.os.now_ms - 1000, SIZE_MAX, heap_.os.now_ms);
    hot = heap_.allocate(1);
  }
  EXPECT_GE(purged, kGranuleBytes) << "free for 4 s beside one that comes and goes";
}

TEST_F(Placement, CountsWhatIsAskedForSoonAfterItWentBack) {
  const std::uint64_t run = heap_.allocate(32 * 3);
  heap_.free(run);
  heap_.pages.purge(UINT64_MAX, SIZE_MAX, heap_.os.now_ms);
  EXPECT_EQ(heap_.pages.stats().purged_bytes, 3 * kHugepageBytes);
  heap_.os.now_ms += 9000;
  heap_.allocate(32);
  EXPECT_EQ(heap_.pages.stats().refaulted_bytes, kHugepageBytes);
  heap_.os.now_ms += 2000;
  heap_.allocate(32);
  EXPECT_EQ(heap_.pages.stats().refaulted_bytes, kHugepageBytes) << "too late to count";
}

TEST_F(Placement, CountsHugepages) {
  const auto runs = full_hugepage();
  const std::uint64_t two = heap_.allocate(33);
  PageStats stats = heap_.pages.stats();
  EXPECT_EQ(stats.hugepages_in_use, 4U);
  EXPECT_EQ(stats.hugepages_partly_used, 1U);
  EXPECT_EQ(stats.hugepages_free, 0U);
  heap_.free(two);
  heap_.free(runs[0]);
  stats = heap_.pages.stats();
  EXPECT_EQ(stats.hugepages_in_use, 2U);
  EXPECT_EQ(stats.hugepages_partly_used, 1U);
  EXPECT_EQ(stats.hugepages_free, 2U);
  heap_.free(heap_.allocate(64));  // no part of its last hugepage was free
  EXPECT_EQ(heap_.pages.stats().hugepages_partly_used, 1U);
}

TEST(PageHeap, NeedsNoMoreMemoryAfterAHundredThousandRounds) {
  OwnPageHeap heap(std::size_t{1} << 29);
  std::mt19937_64 random(11);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> runs(60);
  std::size_t after_a_tenth = 0;
  for (int round = 0; round < 100'000; ++round) {
    auto& [start, count] = runs[random() % runs.size()];
    if (start != 0) heap.pages.free(start, GranuleCount(count), static_cast<std::uint64_t>(round));
    count = static_cast<std::uint32_t>(1 + random() % (random() % 16 == 0 ? 48 : 8));
    start = heap.pages.allocate(GranuleCount(count), kGranuleBytes);
    ASSERT_NE(start, 0U);
    if (round == 10'000) after_a_tenth = heap.pages.stats().committed_bytes;
  }
  EXPECT_LE(heap.pages.stats().committed_bytes, after_a_tenth + after_a_tenth / 4);
}

}  // namespace
}  // namespace brimful::pages
