// SPDX-License-Identifier: MIT
//
// stats/snapshot.h against a scripted live set: every number, exactly.
#include "stats/snapshot.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "alloc/allocate.h"
#include "brimful/brimful.h"
#include "os/calls.h"
#include "slots_test_support.h"

namespace brimful::stats {
namespace {

using testing::snapshot;

// What the script holds.
struct LiveSet {
  std::uint64_t classes[kClassCount] = {};
  std::uint64_t large_blocks = 0;
  std::uint64_t large_bytes = 0;
  std::uint64_t huge_blocks = 0;
  std::uint64_t huge_bytes = 0;

  void count(std::size_t bytes, std::uint64_t change) {
    const std::size_t usable = round_up(bytes, os::page_bytes());
    if (bytes <= kMaxClassBytes) {
      classes[class_of(bytes)] += change;
    } else if (usable <= (std::size_t{4} << 30)) {  // 1/8 of the default reserve of 32 GiB
      large_blocks += change;
      large_bytes += change * usable;
    } else {
      huge_blocks += change;
      huge_bytes += change * usable;
    }
  }

  void expect(const Snapshot& before) const {
    const Snapshot now = snapshot();
    std::uint64_t live_bytes = 0;
    std::uint64_t free_bytes = 0;
    for (std::size_t c = 0; c < kClassCount; ++c) {
      const SizeClass& shape = kSizeClasses[c];
      EXPECT_EQ(now.classes[c].live - before.classes[c].live, classes[c]) << shape.bytes;
      EXPECT_EQ(now.classes[c].live + now.classes[c].free, now.classes[c].slabs * shape.groups * kGroupObjects)
          << shape.bytes;
      live_bytes += classes[c] * shape.bytes;
      free_bytes += now.classes[c].free * shape.bytes;
    }
    EXPECT_EQ(now.large_blocks - before.large_blocks, large_blocks);
    EXPECT_EQ(now.large_bytes - before.large_bytes, large_bytes);
    EXPECT_EQ(now.huge_blocks - before.huge_blocks, huge_blocks);
    EXPECT_EQ(now.huge_bytes - before.huge_bytes, huge_bytes);
    EXPECT_EQ(now.live_bytes - before.live_bytes, live_bytes + large_bytes + huge_bytes);
    EXPECT_EQ(now.slab_free_bytes, free_bytes);
    EXPECT_LE(now.committed_bytes, now.reserved_bytes);
    EXPECT_LE(now.dirty_bytes, now.committed_bytes);
  }
};

TEST(Snapshot, CountsEveryObjectAndBlockOfAScriptedLiveSet) {
  brimful_free(brimful_malloc(1));  // starts the allocator
  const Snapshot before = snapshot();
  LiveSet live;
  std::mt19937_64 random(12);
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (int step = 0; step < 30000; ++step) {
    if (blocks.empty() || random() % 5 < 3) {
      const std::uint64_t choice = random() % 1000;
      const std::size_t bytes = choice == 0   ? (std::size_t{4} << 30) + random() % (1 << 30)
                                : choice < 10 ? 32769 + random() % 3000000
                                : choice < 99 ? random() % 32769
                                              : random() % 600;
      void* block = brimful_malloc(bytes);
      if (block == nullptr && choice == 0) continue;  // an address-space limit
      ASSERT_NE(block, nullptr);
      blocks.emplace_back(block, bytes);
      live.count(bytes, 1);
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      brimful_free(blocks.back().first);
      live.count(blocks.back().second, ~std::uint64_t{0});  // minus one
      blocks.pop_back();
    }
    if (step % 3000 == 0) live.expect(before);
  }
  live.expect(before);
  for (const auto& [block, bytes] : blocks) {
    brimful_free(block);
    live.count(bytes, ~std::uint64_t{0});
  }
  live.expect(before);
  EXPECT_EQ(live.large_bytes + live.huge_bytes, 0U);
}

TEST(Snapshot, CountsFreedMemoryAsDirtyUntilItIsTrimmed) {
  void* block = brimful_malloc(10 << 20);
  const std::uint64_t before = snapshot().dirty_bytes;
  brimful_free(block);
  EXPECT_EQ(snapshot().dirty_bytes - before, std::uint64_t{10} << 20);
  EXPECT_GE(alloc::trim(), std::size_t{10} << 20);
  EXPECT_EQ(snapshot().dirty_bytes, 0U);
}

}  // namespace
}  // namespace brimful::stats
