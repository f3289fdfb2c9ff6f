// SPDX-License-Identifier: MIT
//
// slots/heap_end.cpp in tier:hardened: addresses of destroyed heaps stay out of use, up to a bound, without memory.
#include <gtest/gtest.h>

#include <set>

#include "alone.h"
#include "brimful/brimful.h"
#include "brimful/heap.h"
#include "fake_os.h"
#include "pages/heap.h"
#include "slots/user_heap.h"
#include "stats/snapshot.h"

namespace brimful {
namespace {

using testing::FakeOs;

const testing::Configured hardened(__FILE__, "front_end:thread,purge_delay_ms:-1,tier:hardened");

stats::Snapshot snapshot() {
  stats::Snapshot result;
  stats::take_snapshot(result);
  return result;
}

// Destroys a heap that held one block of so many bytes. Returns where that was.
void* make_and_destroy(std::size_t bytes) {
  brimful_heap* heap = brimful_heap_create(0);
  void* block = brimful_heap_malloc(heap, bytes);
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(brimful_heap_destroy(heap), 0);
  return block;
}

TEST(HeapQuarantine, KeepsAddressesOutOfUse) {
  std::set<void*> seen;
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(seen.insert(make_and_destroy(64)).second);
    EXPECT_TRUE(seen.insert(make_and_destroy(100'000)).second);
  }
}

TEST(HeapQuarantine, HoldsNoMemoryAndCountsAsNothing) {
  const stats::Snapshot before = snapshot();
  {
    const FakeOs os;
    make_and_destroy(1 << 20);
    make_and_destroy(64);
    EXPECT_EQ(os.count(testing::Call::kPurge), 2U);
  }
  const stats::Snapshot after = snapshot();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.large_blocks, before.large_blocks);
}

TEST(HeapQuarantine, IsBounded) {
  void* first = make_and_destroy(256U << 20);
  bool is_reused = false;
  for (int i = 0; i < 12 && !is_reused; ++i) is_reused = make_and_destroy(256U << 20) == first;
  EXPECT_TRUE(is_reused);
}

TEST(HeapQuarantine, EndsBeforeMemoryIsRefused) {
  brimful_free(brimful_malloc(1));
  const std::size_t before = pages::heap.pages.stats().used_bytes;
  make_and_destroy(100'000);
  EXPECT_GE(pages::heap.pages.stats().used_bytes, before + 100'000);
  const slots::SlowScope scope;
  slots::reclaim_heaps();
  EXPECT_LE(pages::heap.pages.stats().used_bytes, before + (64 << 10)) << "perhaps metadata";
}

TEST(HeapQuarantineDeathTest, SaysThatTheHeapWasDestroyed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(brimful_free(make_and_destroy(64)), "use after destroy: free");
  EXPECT_DEATH(brimful_free(make_and_destroy(100'000)), "use after destroy: free");
}

}  // namespace
}  // namespace brimful
