// SPDX-License-Identifier: MIT
//
// pages/run_cache.h: one cache by itself, and the process's own under the page heap.
#include "pages/run_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "config/options.h"
#include "pages/heap.h"
#include "pages/large_run.h"

namespace brimful::pages {
namespace {

using Block = brimful::Run;  // Test::Run hides the name

constexpr std::size_t kRoom = kMostCapacity;

Block* block_of(std::uint32_t granules) {
  // Never taken apart: a header is all that a cache looks at.
  static std::deque<Block> blocks;
  Block& block = blocks.emplace_back();
  block.granules = GranuleCount(granules);
  return &block;
}

TEST(RunCache, GivesABlockOfTheLengthOrUpToAnEighthLonger) {
  RunCache cache;
  Block* block = block_of(18);
  ASSERT_TRUE(cache.put(block, 1, kRoom));
  EXPECT_EQ(cache.bytes(), 18 * kGranuleBytes);
  EXPECT_EQ(cache.take(GranuleCount(19)), nullptr);
  EXPECT_EQ(cache.take(GranuleCount(15)), nullptr);
  EXPECT_EQ(cache.take(GranuleCount(16)), block);
  EXPECT_EQ(cache.take(GranuleCount(16)), nullptr) << "given twice";
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(RunCache, PrefersTheShortestThatFits) {
  RunCache cache;
  Block* longer = block_of(35);
  Block* fitting = block_of(33);
  ASSERT_TRUE(cache.put(longer, 1, kRoom));
  ASSERT_TRUE(cache.put(fitting, 1, kRoom));
  EXPECT_EQ(cache.take(GranuleCount(32)), fitting);
  EXPECT_EQ(cache.take(GranuleCount(32)), longer);
}

TEST(RunCache, HoldsNoMoreThanItsPlacesAndItsCapacity) {
  RunCache cache;
  for (std::size_t i = 0; i < RunCache::kRowPlaces; ++i) ASSERT_TRUE(cache.put(block_of(1), 1, kRoom));
  EXPECT_FALSE(cache.put(block_of(1), 1, kRoom));
  RunCache narrow;
  EXPECT_FALSE(narrow.put(block_of(101), 1, 100 * kGranuleBytes));
  EXPECT_TRUE(narrow.put(block_of(60), 1, 100 * kGranuleBytes));
  EXPECT_FALSE(narrow.put(block_of(41), 1, 100 * kGranuleBytes));
  EXPECT_TRUE(narrow.put(block_of(40), 1, 100 * kGranuleBytes));
}

TEST(RunCache, KeepsLengthsApartSoThatOneDoesNotCrowdOutAnother) {
  RunCache cache;
  for (std::size_t i = 0; i < RunCache::kRowPlaces; ++i) ASSERT_TRUE(cache.put(block_of(1), 1, kRoom));
  for (std::uint32_t granules = 2; granules < RunCache::kRows + 3; ++granules) {
    Block* block = block_of(granules);
    ASSERT_TRUE(cache.put(block, 1, kRoom)) << granules;
    EXPECT_EQ(cache.take(GranuleCount(granules)), block);
  }
}

TEST(RunCache, GivesUpWhatIsOldAndKeepsWhatIsNot) {
  RunCache cache;
  Block* old = block_of(1);
  ASSERT_TRUE(cache.put(old, 100, kRoom));
  ASSERT_TRUE(cache.put(block_of(2), 200, kRoom));
  std::size_t row = 0;
  const RunCache::Taken taken = cache.take_older(199, &row);
  EXPECT_EQ(taken.run, old);
  EXPECT_EQ(taken.stamp_ms, 100U);
  EXPECT_EQ(cache.take_older(199, &row).run, nullptr);
  row = 0;
  EXPECT_NE(cache.take_older(UINT64_MAX, &row).run, nullptr);
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(RunCache, GivesEachBlockToOneOfManyThreads) {
  // Blocks go round through one small cache; each is held by one thread at a time, or by the cache, and none is lost.
  constexpr int kThreads = 4;
  constexpr int kRounds = 30000;
  RunCache cache;
  std::atomic<int> held_twice{0};
  const auto work = [&](Block* own) {
    for (int i = 0; i < kRounds; ++i) {
      if (own != nullptr) {
        if (own->prev != nullptr) ++held_twice;
        own->prev = own;  // written without an atomic: a sanitizer would see two holders, too
        own->prev = nullptr;
        if (cache.put(own, 1, kRoom)) own = nullptr;
      } else {
        std::size_t row = 0;
        own = i % 16 == 0 ? cache.take_older(UINT64_MAX, &row).run : cache.take(GranuleCount(1));
      }
    }
    while (own != nullptr && !cache.put(own, 1, kRoom)) std::this_thread::yield();
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(work, block_of(1));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(held_twice.load(), 0);
  EXPECT_EQ(cache.bytes(), kThreads * kGranuleBytes);
  std::size_t row = 0;
  for (int t = 0; t < kThreads; ++t)
    EXPECT_NE(cache.take_older(UINT64_MAX, &row).run, nullptr) << "its row was forgotten";
  EXPECT_EQ(cache.take_older(UINT64_MAX, &row).run, nullptr);
  EXPECT_FALSE(cache.may_hold());
}

TEST(Claim, EndsALifeOnce) {
  Block* block = block_of(1);
  EXPECT_FALSE(claim(block)) << "never lived";
  revive(block);
  EXPECT_TRUE(is_live(block));
  EXPECT_TRUE(claim(block));
  EXPECT_FALSE(claim(block));
  EXPECT_FALSE(is_live(block));
}

class CachedRuns : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const sync::MutexLock guard(heap.lock);
    heap.begin();
  }
  static Block* make(std::size_t bytes) {
    const sync::MutexLock guard(heap.lock);
    return allocate_large_run(bytes, kGranuleBytes);
  }
  static void keep(Block* block, std::uint64_t now_ms) {
    ASSERT_TRUE(claim(block));
    ASSERT_TRUE(keep_run(0, block, now_ms));
  }
  static std::size_t used() {
    const sync::MutexLock guard(heap.lock);
    return heap.pages.stats().used_bytes;
  }
};

constexpr std::size_t kBytes = 3 * kGranuleBytes;

TEST_F(CachedRuns, GoToThePageHeapWhenTheTickFindsThemTooOld) {
  Block* block = make(kBytes);
  const std::size_t before = used();
  keep(block, 5000);
  const sync::MutexLock guard(heap.lock);
  flush_cached_runs(4999);
  EXPECT_EQ(heap.pages.stats().used_bytes, before) << "too young";
  flush_cached_runs(5000);
  EXPECT_EQ(heap.pages.stats().used_bytes, before - kBytes);
  EXPECT_EQ(take_cached_run(0, GranuleCount(3)), nullptr);
}

TEST_F(CachedRuns, GoBeforeFreshMemoryIsTouched) {
  keep(make(kBytes), 5000);
  const sync::MutexLock guard(heap.lock);
  heap.pages.purge(UINT64_MAX, SIZE_MAX, 1);
  ASSERT_EQ(heap.pages.stats().dirty_bytes, 0U);
  const std::size_t before = heap.pages.stats().used_bytes;
  use_cached_before_fresh(GranuleCount(1));
  EXPECT_EQ(heap.pages.stats().used_bytes, before - kBytes);
}

TEST_F(CachedRuns, StayWhileThePageHeapHasDirtyMemoryToServe) {
  Block* dirty = make(64 * kGranuleBytes);
  Block* block = make(kBytes);
  {
    const sync::MutexLock guard(heap.lock);
    ASSERT_TRUE(claim(dirty));
    free_large_run(dirty, 5000);
  }
  keep(block, 5000);
  const sync::MutexLock guard(heap.lock);
  use_cached_before_fresh(GranuleCount(1));
  EXPECT_EQ(take_cached_run(0, GranuleCount(3)), block);
}

TEST_F(CachedRuns, AreNotKeptWhereEachGranuleIsCounted) {
  Block* block = make(kBytes);
  ASSERT_TRUE(claim(block));
  for (const auto exhaustion : {config::Exhaustion::kHook, config::Exhaustion::kAbort}) {
    config::options.on_exhaustion = static_cast<std::int64_t>(exhaustion);
    EXPECT_FALSE(keep_run(0, block, 1));
  }
  config::options.on_exhaustion = 0;
  config::options.purge_delay_ms = 0;
  EXPECT_FALSE(keep_run(0, block, 1));
  config::options.purge_delay_ms = 1000;
  EXPECT_TRUE(keep_run(0, block, 1));
}

}  // namespace
}  // namespace brimful::pages
