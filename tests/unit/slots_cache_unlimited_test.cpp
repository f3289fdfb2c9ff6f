// SPDX-License-Identifier: MIT
//
// cache:unlimited: what lies in a cache stays there until somebody asks for memory.
#include <gtest/gtest.h>

#include "alone.h"
#include "brimful/brimful.h"
#include "os/calls.h"
#include "pages/heap.h"
#include "pages/purger.h"
#include "pages/run_cache.h"
#include "slots/front_end.h"
#include "slots/thread.h"

namespace brimful::slots {
namespace {

const testing::Configured unlimited(__FILE__, "front_end:thread,cache:unlimited,purge_delay_ms:10");

TEST(CacheUnlimited, KeepsLargeBlocksLongAfterThePurgeDelayButNotAfterATrim) {
  void* blocks[8];
  for (void*& block : blocks) block = brimful_malloc(std::size_t{2} << 20);
  for (void* block : blocks) brimful_free(block);
  const std::size_t cached = pages::cached_run_bytes();
  EXPECT_EQ(cached, std::size_t{16} << 20);
  const std::uint64_t later_ms = os::calls.now_ms() + 10000;
  EXPECT_EQ(pages::purge_due(later_ms), 0U) << "and nobody waits for it";
  tick(later_ms + 1000);
  EXPECT_EQ(pages::cached_run_bytes(), cached);
  reclaim_all();
  EXPECT_EQ(pages::cached_run_bytes(), 0U);
}

}  // namespace
}  // namespace brimful::slots
