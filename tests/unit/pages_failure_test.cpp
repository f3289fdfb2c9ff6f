// SPDX-License-Identifier: MIT
//
// The page heap when the system refuses: the n-th call of a kind fails, for EVERY n of a scripted history. The call in
// question returns 0 and changes nothing; no live run is damaged; and when the system gives again, nothing is lost.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"
#include "own_page_heap.h"

namespace brimful::pages {
namespace {

using testing::Call;
using testing::FakeOs;
using testing::OwnPageHeap;

// Growing, mixed and aligned allocation, growth in place, frees in a mixed order, purges. Whatever is refused is left
// out. Returns how many requests were refused.
int history(OwnPageHeap& heap) {
  std::mt19937_64 random(9);
  std::vector<std::uint64_t> runs;
  int refused = 0;
  for (int step = 0; step < 260; ++step) {
    heap.os.now_ms += 7;
    const std::uint64_t choice = random() % 10;
    const auto count = static_cast<std::uint32_t>(1 + random() % 24);
    const std::uint64_t picked = random();
    if (choice < 5 || runs.empty()) {
      const std::uint64_t run = heap.allocate(count, kGranuleBytes << (picked % 4 == 0 ? picked % 5 : 0));
      run != 0 ? runs.push_back(run) : static_cast<void>(++refused);
    } else if (choice < 8) {
      std::swap(runs[picked % runs.size()], runs.back());
      heap.free(runs.back());
      runs.pop_back();
    } else if (choice == 8) {
      const std::uint64_t run = runs[picked % runs.size()];
      const bool possible = heap.free_behind(run + GranuleCount(heap.live[run]).bytes()) >= count;
      if (!heap.extend(run, count) && possible) ++refused;
    } else {
      heap.pages.purge(heap.os.now_ms - 30, 1 << 20, heap.os.now_ms);
    }
  }
  return refused;
}

std::size_t calls_in_history(Call kind) {
  OwnPageHeap heap;
  EXPECT_EQ(history(heap), 0);
  return heap.os.count(kind);
}

void expect_nothing_lost(OwnPageHeap& heap) {
  for (const auto& [start, count] : heap.live) EXPECT_TRUE(testing::holds_pattern(start, count));
  ASSERT_NE(heap.allocate(1), 0U) << "it does not work again";
  heap.free_all();
  heap.expect_whole();
  // A first window that was refused in its full size is a smaller one for good.
  const bool full_size = heap.pages.stats().reserved_bytes == OwnPageHeap::kReserve;
  const int refused = history(heap);
  if (full_size) {
    EXPECT_EQ(refused, 0) << "works as if nothing had happened";
  }
  heap.free_all();
  heap.expect_whole();
  heap.pages.purge(UINT64_MAX, SIZE_MAX, heap.os.now_ms);
  EXPECT_EQ(heap.pages.stats().dirty_bytes, 0U);
}

class EveryPageCall : public ::testing::TestWithParam<Call> {};

TEST_P(EveryPageCall, MayFailOnceAndNothingIsLost) {
  const std::size_t total = calls_in_history(GetParam());
  ASSERT_GT(total, 0U);
  for (std::size_t n = 1; n <= total && !HasFailure(); ++n) {
    SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(total));
    OwnPageHeap heap;
    heap.os.fail(GetParam(), n);
    history(heap);
    EXPECT_EQ(heap.os.succeed(), 1U) << "the call to fail did not come";
    expect_nothing_lost(heap);
  }
}

TEST_P(EveryPageCall, MayFailFromSomeMomentOnAndNothingIsLost) {
  const std::size_t total = calls_in_history(GetParam());
  for (std::size_t n = 1; n <= total && !HasFailure(); ++n) {
    SCOPED_TRACE("from call " + std::to_string(n) + " of " + std::to_string(total));
    OwnPageHeap heap;
    heap.os.fail(GetParam(), n, FakeOs::kAlways);
    history(heap);
    EXPECT_GE(heap.os.succeed(), 1U);
    expect_nothing_lost(heap);
  }
}

INSTANTIATE_TEST_SUITE_P(PageHeap, EveryPageCall, ::testing::Values(Call::kReserve, Call::kCommit, Call::kPurge),
                         [](const auto& info) { return std::string(testing::name_of(info.param)); });

TEST(PageHeap, RefusesWhatItCantCommitAndKeepsTheRunFree) {
  OwnPageHeap heap;
  const std::uint64_t first = heap.allocate(4);
  const PageStats before = heap.pages.stats();
  heap.os.fail(Call::kCommit, 1, FakeOs::kAlways);
  EXPECT_EQ(heap.allocate(500), 0U);
  EXPECT_FALSE(heap.extend(first, 500));
  EXPECT_EQ(heap.pages.stats().used_bytes, before.used_bytes);
  EXPECT_EQ(heap.pages.stats().committed_bytes, before.committed_bytes);
  heap.os.succeed();
  EXPECT_TRUE(heap.extend(first, 500));
  EXPECT_NE(heap.allocate(100), 0U);
}

TEST(PageHeap, TriesWithoutCommittingAheadBeforeItRefuses) {
  OwnPageHeap heap;
  ASSERT_NE(heap.allocate(1), 0U);
  heap.os.fail(Call::kCommit, 1);
  EXPECT_NE(heap.allocate(40), 0U);  // more than was committed ahead
  EXPECT_EQ(heap.os.succeed(), 1U);
}

// Headers of slabs and blocks must not be what is missing while free memory that can be used lies about.
TEST(PageHeap, TakesMetadataFromWhatIsCommittedWhereTheSystemCommitsNoMore) {
  OwnPageHeap heap;
  for (int i = 0; i < 200; ++i) ASSERT_NE(heap.allocate(1), 0U);
  heap.os.fail(Call::kCommit, 1, FakeOs::kAlways);
  while (heap.allocate(1) != 0) {
  }
  EXPECT_EQ(heap.pages.allocate_for_metadata(), 0U) << "all of it is in use";
  // Hugepages between the first and the one where the committed granules end become free as a whole; only in that one
  // there is room left, which is not committed.
  const std::uint64_t first = heap.live.begin()->first / kHugepageBytes;
  const std::uint64_t last = std::prev(heap.live.end())->first / kHugepageBytes;
  std::vector<std::uint64_t> between;
  for (const auto& [start, count] : heap.live) {
    if (start / kHugepageBytes != first && start / kHugepageBytes != last) between.push_back(start);
  }
  ASSERT_FALSE(between.empty());
  for (const std::uint64_t start : between) heap.free(start);
  EXPECT_NE(heap.pages.allocate_for_metadata(), 0U);
  heap.os.succeed();
}

TEST(PageHeap, KeepsMemoryDirtyThatTheSystemDoesNotTakeBack) {
  OwnPageHeap heap;
  const std::uint64_t locked = heap.allocate(4);
  heap.allocate(1);
  const std::uint64_t other = heap.allocate(2);
  heap.allocate(1);
  heap.free(locked);
  heap.free(other);
  heap.os.fail(Call::kPurge, 1);
  EXPECT_EQ(heap.pages.purge(UINT64_MAX, SIZE_MAX, 5000), 2 * kGranuleBytes);
  EXPECT_EQ(heap.pages.stats().dirty_bytes, 4 * kGranuleBytes);
  EXPECT_TRUE(heap.pages.has_dirty());
  // It waits for another delay, then it is tried again.
  EXPECT_EQ(heap.pages.purge(4999, SIZE_MAX, 6000), 0U);
  // Whoever takes it meanwhile knows that it is dirty.
  const std::uint64_t again = heap.pages.allocate(GranuleCount(4), kGranuleBytes);
  ASSERT_EQ(again, locked);
  EXPECT_NE(*reinterpret_cast<std::uint64_t*>(again), 0U);
  heap.pages.clear(again, 4 * kGranuleBytes);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(again), 0U);
  heap.pages.free(again, GranuleCount(4), 6000);
  EXPECT_EQ(heap.pages.purge(6000, SIZE_MAX, 7000), 4 * kGranuleBytes);
}

// Where the table gets less address space than it asks for, the window must shrink with it.
TEST(PageHeap, PlacesNoWindowThatItsTableCanNotDescribe) {
  for (std::size_t times = 1; times <= 14 && !::testing::Test::HasFailure(); ++times) {
    OwnPageHeap heap(std::size_t{1} << 30);
    heap.os.fail(Call::kReserve, 3, times);  // after a probe and the window itself
    const std::uint64_t first = heap.pages.allocate(GranuleCount(1), kGranuleBytes);
    heap.os.succeed();
    if (first == 0) continue;
    EXPECT_LE(heap.pages.stats().reserved_bytes, heap.table.span() << kGranuleShift) << times << " refusals";
  }
}

// 48 places for each of some 90 pairs of a size and a span, at every malloc of a process without address space.
TEST(PageHeap, TriesNoFurtherPlaceWhereThereIsRoomNowhere) {
  OwnPageHeap heap(std::size_t{32} << 30);
  heap.os.fail(Call::kReserve, 1, FakeOs::kAlways);
  EXPECT_EQ(heap.allocate(1), 0U);
  EXPECT_LE(heap.os.succeed(), 250U);
  EXPECT_NE(heap.allocate(1), 0U);
}

TEST(PageHeap, FreesAndJoinsWhileTheSystemRefusesEverything) {
  OwnPageHeap heap;
  for (std::uint32_t count = 1; count < 90; count += 7) heap.allocate(count);
  heap.os.fail_any(1, FakeOs::kAlways);
  heap.free_all();
  heap.os.succeed();
  heap.expect_whole();
}

}  // namespace
}  // namespace brimful::pages
