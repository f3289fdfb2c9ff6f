// SPDX-License-Identifier: MIT
//
// When free memory is worth a look at the clock by somebody who hardly ever comes by (pages::is_waiting()).
#include <gtest/gtest.h>

#include "brimful/brimful.h"
#include "os/calls.h"
#include "pages/heap.h"
#include "pages/purger.h"

namespace brimful::pages {
namespace {

class Waiting : public ::testing::Test {
 protected:
  void SetUp() override {
    brimful_free(brimful_malloc(1));  // the heap is there
    now_ms_ = os::calls.now_ms();
    tick(now_ms_ + 1000, true);  // the next one is not due for long
  }

  // So much is taken from the page heap and comes back at once, dirty.
  void free_mib(std::size_t mib) const {
    const sync::MutexLock guard(heap.lock);
    const GranuleCount granules = GranuleCount::covering(mib << 20);
    const std::uint64_t start = heap.pages.allocate(granules, kGranuleBytes);
    ASSERT_NE(start, 0U);
    heap.pages.free(start, granules, now_ms_);
    note_freed(now_ms_, granules.bytes());
  }

  std::uint64_t now_ms_ = 0;
};

TEST_F(Waiting, BeginsWhenMuchWasFreedAndMakesTheNextTickDue) {
  free_mib(1);
  EXPECT_FALSE(is_waiting());
  EXPECT_FALSE(is_tick_due(now_ms_));
  free_mib(16);
  EXPECT_TRUE(is_waiting());
  EXPECT_TRUE(is_tick_due(now_ms_));
}

TEST_F(Waiting, EndsWhenTheMemoryHasGoneBack) {
  free_mib(16);
  ASSERT_TRUE(is_waiting());
  tick(now_ms_, true);
  EXPECT_TRUE(is_waiting()) << "nothing is due so soon";
  trim();
  tick(now_ms_ + 100, true);
  EXPECT_FALSE(is_waiting());
}

// Or each slab that is freed would make a tick due, which leaves all to the thread.
TEST_F(Waiting, IsNobodysConcernWhileTheBackgroundThreadPurges) {
  tick(now_ms_ + 2000, false);
  free_mib(16);
  EXPECT_FALSE(is_waiting());
  EXPECT_FALSE(is_tick_due(now_ms_));
  tick(now_ms_ + 3000, true);
  free_mib(16);
  EXPECT_TRUE(is_waiting());
}

}  // namespace
}  // namespace brimful::pages
