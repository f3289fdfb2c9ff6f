// SPDX-License-Identifier: MIT
//
// purge:free in the page heap: memory is offered to the system first, and counts as free all the time.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>

#include "own_page_heap.h"

namespace brimful {
namespace {

using testing::Call;
using testing::OwnPageHeap;

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Everything that was freed until now is offered.
std::size_t soften_all(OwnPageHeap& heap) {
  heap.os.now_ms += 5000;
  return heap.pages.soften(heap.os.now_ms - 100, SIZE_MAX, heap.os.now_ms);
}

TEST(Muzzy, IsWhatWasOfferedAndStaysUsable) {
  OwnPageHeap heap;
  const std::uint64_t run = heap.allocate(80);
  heap.free(run);
  const std::size_t dirty = heap.pages.stats().dirty_bytes;
  EXPECT_EQ(soften_all(heap), dirty);
  EXPECT_EQ(heap.pages.stats().muzzy_bytes, dirty);
  EXPECT_EQ(heap.pages.stats().dirty_bytes, dirty);
  EXPECT_GT(heap.os.count(Call::kPurgeLazily), 0U);
  EXPECT_EQ(heap.os.count(Call::kPurge), 0U);
  EXPECT_EQ(soften_all(heap), 0U) << "it is offered once";
  heap.allocate(80);
  EXPECT_EQ(heap.pages.stats().muzzy_bytes, 0U);
  heap.free_all();
  heap.expect_whole();
}

TEST(Muzzy, GoesBackAtLastAndThenHoldsZeros) {
  OwnPageHeap heap;
  heap.free(heap.allocate(80));
  soften_all(heap);
  heap.os.now_ms += 1000;
  EXPECT_EQ(heap.pages.purge_muzzy(heap.os.now_ms - 2000, SIZE_MAX, heap.os.now_ms), 0U) << "it is not due yet";
  EXPECT_EQ(heap.pages.purge_muzzy(heap.os.now_ms - 500, SIZE_MAX, heap.os.now_ms), 80 * kGranuleBytes);
  EXPECT_EQ(heap.pages.stats().muzzy_bytes, 0U);
  EXPECT_EQ(heap.pages.stats().dirty_bytes, 0U);
  EXPECT_FALSE(heap.pages.has_dirty());
}

TEST(Muzzy, IsClearedByCallocAllTheSame) {
  OwnPageHeap heap;
  const std::uint64_t run = heap.pages.allocate(GranuleCount(4), kGranuleBytes);
  testing::fill_granules(run, 4);
  heap.pages.free(run, GranuleCount(4), heap.os.now_ms);
  soften_all(heap);
  const std::uint64_t again = heap.pages.allocate(GranuleCount(4), kGranuleBytes);
  ASSERT_EQ(again, run);
  heap.pages.clear(again, 4 * kGranuleBytes);
  for (std::size_t i = 0; i < 4 * kGranuleBytes; i += 512) EXPECT_EQ(reinterpret_cast<const char*>(again)[i], 0);
  heap.pages.free(again, GranuleCount(4), heap.os.now_ms);
}

TEST(Muzzy, IsTrimmedWithTheRest) {
  OwnPageHeap heap;
  const std::uint64_t first = heap.allocate(40);
  const std::uint64_t second = heap.allocate(40);
  heap.free(first);
  soften_all(heap);
  heap.free(second);
  EXPECT_EQ(heap.pages.purge(UINT64_MAX, SIZE_MAX, heap.os.now_ms), 80 * kGranuleBytes);
  EXPECT_EQ(heap.pages.stats().muzzy_bytes, 0U);
  EXPECT_EQ(heap.pages.stats().dirty_bytes, 0U);
}

TEST(Muzzy, IsDirtyAgainWhenTheSystemRefuses) {
  OwnPageHeap heap;
  heap.free(heap.allocate(4));
  heap.os.fail(Call::kPurgeLazily, 1, testing::FakeOs::kAlways);
  EXPECT_EQ(soften_all(heap), 0U);
  EXPECT_EQ(heap.pages.stats().muzzy_bytes, 0U);
  heap.os.succeed();
  EXPECT_EQ(soften_all(heap), 4 * kGranuleBytes);
}

TEST(Muzzy, CountsStayRightThroughAnyHistory) {
  OwnPageHeap heap;
  std::mt19937_64 random(3);
  for (int step = 0; step < 3000 && !::testing::Test::HasFailure(); ++step) {
    heap.os.now_ms += random() % 50;
    const std::uint64_t choice = random() % 100;
    if (choice < 45 || heap.live.empty()) {
      heap.allocate(static_cast<std::uint32_t>(1 + random() % (random() % 8 == 0 ? 120 : 12)));
    } else if (choice < 90) {
      heap.free(std::next(heap.live.begin(), static_cast<long>(random() % heap.live.size()))->first);
    } else if (choice < 95) {
      heap.pages.soften(heap.os.now_ms - 20, random() % (4 * kMiB), heap.os.now_ms);
    } else if (choice < 98) {
      heap.pages.purge_muzzy(heap.os.now_ms - 60, random() % (4 * kMiB), heap.os.now_ms);
    } else {
      heap.pages.purge(heap.os.now_ms - 200, random() % (4 * kMiB), heap.os.now_ms);
    }
    const pages::PageStats stats = heap.pages.stats();
    ASSERT_LE(stats.muzzy_bytes, stats.dirty_bytes) << "step " << step;
  }
  heap.free_all();
  heap.pages.purge(UINT64_MAX, SIZE_MAX, heap.os.now_ms);
  EXPECT_EQ(heap.pages.stats().muzzy_bytes, 0U);
  EXPECT_EQ(heap.pages.stats().dirty_bytes, 0U);
  heap.expect_whole();
}

}  // namespace
}  // namespace brimful
