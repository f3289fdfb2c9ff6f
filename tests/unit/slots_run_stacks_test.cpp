// SPDX-License-Identifier: MIT
//
// Stacks of freed large blocks (pages/run_stacks.h, slots/run_stacks.h): what malloc and free do with them, and who gets back
// what lies there.
#include "slots/run_stacks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "arch/sequences.h"
#include "brimful/brimful.h"
#include "brimful/heap.h"
#include "config/options.h"
#include "meta/granule_table.h"
#include "pages/heap.h"
#include "pages/run_cache.h"
#include "slots/front_end.h"
#include "slots/thread.h"
#include "slots_test_support.h"

namespace brimful::slots {
namespace {

constexpr std::size_t kKiB = 1024;

class RunStacks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!arch::kRestartable) GTEST_SKIP() << "without sequences large blocks wait in the run caches";
    brimful_free(brimful_malloc(1));  // attached
    context_ = current_context();
    ASSERT_NE(context_, nullptr);
    empty();
    // The clock was looked at a moment ago, and the next look is far.
    stacks().clock.until_look = 1000;
    stacks().clock.now_ms = 5000;
  }
  void TearDown() override {
    if (arch::kRestartable) empty();
  }
  static void empty() {
    const sync::MutexLock guard(pages::heap.lock);
    flush_own_runs(UINT64_MAX);
    pages::flush_cached_runs(UINT64_MAX);
  }
  pages::RunStacks& stacks() { return context_->run_stacks; }
  std::uint32_t count_of(std::size_t granules) { return stacks().of(granules).count; }
  static std::size_t used() {
    const sync::MutexLock guard(pages::heap.lock);
    return pages::heap.pages.stats().used_bytes;
  }

  Context* context_ = nullptr;
};

TEST_F(RunStacks, GiveTheBlockOfTheLengthThatWasFreedLast) {
  void* first = brimful_malloc(100 * kKiB);
  void* second = brimful_malloc(128 * kKiB);
  void* other = brimful_malloc(64 * kKiB);
  brimful_free(first);
  brimful_free(second);
  brimful_free(other);
  EXPECT_EQ(count_of(2), 2U);
  EXPECT_EQ(count_of(1), 1U);
  EXPECT_EQ(brimful_malloc(70 * kKiB), second);
  EXPECT_EQ(brimful_malloc(128 * kKiB), first);
  EXPECT_EQ(brimful_malloc(33 * kKiB), other);
  EXPECT_FALSE(holds_runs(context_));
  for (void* block : {first, second, other}) brimful_free(block);
}

TEST_F(RunStacks, GiveBlocksAsLongAsWasAskedForAndKnowThatTheyWereUsed) {
  void* block = brimful_malloc(128 * kKiB);
  memset(block, 1, 128 * kKiB);
  brimful_free(block);
  ASSERT_EQ(brimful_malloc(70 * kKiB + 1), block);
  EXPECT_EQ(brimful_usable_size(block), 72 * kKiB);
  brimful_free(block);
  auto* cleared = static_cast<unsigned char*>(brimful_calloc(1, 128 * kKiB));
  ASSERT_EQ(cleared, block);
  for (std::size_t i = 0; i < 128 * kKiB; ++i) ASSERT_EQ(cleared[i], 0);
  brimful_free(cleared);
}

TEST_F(RunStacks, HoldNoMoreThanTheirLimitAndSendOnTheRest) {
  for (const std::size_t granules : {1U, 4U, 16U}) {
    const std::uint32_t limit = stacks().of(granules).limit;
    ASSERT_GT(limit, 0U);
    ASSERT_LE(limit, pages::RunStack::kRoom);
    std::vector<void*> blocks;
    for (std::uint32_t i = 0; i < limit + 2; ++i) blocks.push_back(brimful_malloc(granules * kGranuleBytes));
    const std::size_t before = pages::cached_run_bytes();
    for (void* block : blocks) brimful_free(block);
    EXPECT_EQ(count_of(granules), limit);
    EXPECT_EQ(pages::cached_run_bytes() - before, (limit + 2) * granules * kGranuleBytes);
  }
}

TEST_F(RunStacks, TakeNoBlockThatIsTooLong) {
  brimful_free(brimful_malloc(17 * kGranuleBytes));
  EXPECT_FALSE(holds_runs(context_));
}

TEST_F(RunStacks, TakeNoBlockOfAHeap) {
  brimful_heap* heap = brimful_heap_create(0);
  void* block = brimful_heap_malloc(heap, 100 * kKiB);
  ASSERT_NE(block, nullptr);
  brimful_free(block);
  EXPECT_EQ(count_of(2), 0U);
  EXPECT_EQ(brimful_heap_destroy(heap), 0);
}

TEST_F(RunStacks, FollowABlockThatChangesItsLength) {
  void* block = brimful_malloc(256 * kKiB);
  ASSERT_EQ(brimful_realloc(block, 100 * kKiB), block);
  brimful_free(block);
  EXPECT_EQ(count_of(4), 0U);
  EXPECT_EQ(count_of(2), 1U);
}

TEST_F(RunStacks, GiveBackWhatIsOldAndKeepWhatIsNot) {
  void* old = brimful_malloc(200 * kKiB);
  void* young = brimful_malloc(200 * kKiB);
  const std::size_t before = used();
  brimful_free(old);
  stacks().clock.now_ms = 6000;
  brimful_free(young);
  const sync::MutexLock guard(pages::heap.lock);
  flush_own_runs(4999);
  EXPECT_EQ(count_of(4), 2U);
  flush_own_runs(5000);
  EXPECT_EQ(count_of(4), 0U);
  EXPECT_EQ(pages::heap.pages.stats().used_bytes, before - 256 * kKiB) << "the old one is free, the other is kept";
  EXPECT_NE(pages::take_cached_run(current_id(), GranuleCount(4)), nullptr);
}

TEST_F(RunStacks, LeaveNothingBehindWhenTheirThreadEnds) {
  std::thread([] { brimful_free(brimful_malloc(1)); }).join();  // its context is made, and waits for the next thread
  const std::size_t before = used();
  std::thread([] {
    std::vector<void*> blocks;
    for (int i = 0; i < 3; ++i) blocks.push_back(brimful_malloc(300 * kKiB));
    current_context()->run_stacks.clock.until_look = 1000;
    for (void* block : blocks) brimful_free(block);
    EXPECT_TRUE(holds_runs(current_context()));
  }).join();
  EXPECT_LE(used(), before);
}

TEST_F(RunStacks, GiveUpAllWhenMemoryIsWanted) {
  void* block = brimful_malloc(300 * kKiB);
  const std::size_t before = used();
  brimful_free(block);
  ASSERT_TRUE(holds_runs(context_));
  const SlowScope scope;
  reclaim_all();
  EXPECT_FALSE(holds_runs(context_));
  EXPECT_LE(used(), before - 320 * kKiB);
}

TEST_F(RunStacks, ReportASecondFree) {
  void* block = brimful_malloc(100 * kKiB);
  brimful_free(block);
  ASSERT_EQ(count_of(2), 1U);
  EXPECT_DEATH(brimful_free(block), "brimful: .*free\\(");
}

TEST(RunStackClock, LooksOftenWhereFreesAreFarApartAndSeldomWhereNot) {
  pages::RunStacks stacks = {};
  for (std::uint64_t now_ms = 1000; now_ms < 1100; now_ms += 10) pages::note_look(stacks, now_ms);
  EXPECT_EQ(stacks.clock.until_look, 0) << "the next free looks again";
  for (int i = 0; i < 20; ++i) pages::note_look(stacks, 2000);
  EXPECT_EQ(stacks.clock.until_look, 32);
  EXPECT_EQ(stacks.clock.now_ms, 2000U);
  for (std::uint64_t now_ms = 3000; now_ms < 3060; now_ms += 10) pages::note_look(stacks, now_ms);
  EXPECT_EQ(stacks.clock.until_look, 0);
}

TEST(RunStackLimits, AreNoneWhereNothingMayWait) {
  pages::RunStacks stacks = {};
  const std::int64_t delay_ms = config::options.purge_delay_ms;
  config::options.purge_delay_ms = 0;
  pages::begin_stacks(stacks);
  config::options.purge_delay_ms = delay_ms;
  for (const pages::RunStack& stack : stacks.stacks) EXPECT_EQ(stack.limit, 0U);
}

}  // namespace
}  // namespace brimful::slots
