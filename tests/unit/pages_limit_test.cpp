// SPDX-License-Identifier: MIT
//
// pages/limit.h and pages/pressure.h: what counts, what goes back first, when a request is refused, and when memory is short.
#include "pages/limit.h"
#include "pages/run_cache.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "alloc/allocate.h"
#include "arch/sequences.h"
#include "config/options.h"
#include "pages/heap.h"
#include "pages/pressure.h"
#include "slots_test_support.h"

namespace brimful::pages {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::size_t counted() {
  const sync::MutexLock guard(heap.lock);
  return counted_bytes();
}

// Limits for one test, and the options as they were.
class Limit : public ::testing::Test {
 protected:
  Limit() { arch::brimful_free(arch::brimful_malloc(1)); }
  ~Limit() override {
    limits = {};
    config::options.limit = config::options.soft_limit = 0;
    for (void* block : blocks_) arch::brimful_free(block);
    alloc::trim();
  }
  void set(std::size_t soft, std::size_t hard) { limits = {soft, hard, 0}; }
  bool take(std::size_t bytes) {
    void* block = arch::brimful_malloc(bytes);
    if (block != nullptr) blocks_.push_back(block);
    return block != nullptr;
  }
  void free_all() {
    for (void* block : blocks_) arch::brimful_free(block);
    blocks_.clear();
  }
  std::vector<void*> blocks_;
};

TEST_F(Limit, IsNoneUnlessAskedFor) {
  const Limits wanted = wanted_limits({100 * kMiB, 50 * kMiB});
  EXPECT_EQ(wanted.hard, 0U);
  EXPECT_EQ(wanted.soft, 0U);
}

TEST_F(Limit, AutoLeavesHeadroomInTheControlGroup) {
  EXPECT_EQ(without_headroom(16 * kMiB), 12 * kMiB) << "a quarter at most";
  EXPECT_EQ(without_headroom(128 * kMiB), 112 * kMiB) << "16 MiB at least";
  EXPECT_EQ(without_headroom(1024 * kMiB), 960 * kMiB) << "a sixteenth";
  config::options.limit = config::options.soft_limit = config::kAutoBytes;
  Limits wanted = wanted_limits({1024 * kMiB, 512 * kMiB});
  EXPECT_EQ(wanted.hard, 960 * kMiB);
  EXPECT_EQ(wanted.soft, 480 * kMiB);
  wanted = wanted_limits({1024 * kMiB, os::kNoLimit});
  EXPECT_EQ(wanted.soft, 840 * kMiB) << "7/8 of the hard limit";
  wanted = wanted_limits({os::kNoLimit, os::kNoLimit});
  EXPECT_EQ(wanted.hard, 0U);
  EXPECT_EQ(wanted.soft, 0U);
}

TEST_F(Limit, RefusesWhatWouldPassItAndServesWhatFits) {
  set(0, counted() + 20 * kMiB);
  EXPECT_TRUE(take(12 * kMiB));
  EXPECT_FALSE(take(12 * kMiB));
  EXPECT_GT(limits.refusals, 0U);
  EXPECT_TRUE(take(4 * kMiB)) << "a refusal changes nothing";
  free_all();
  EXPECT_TRUE(take(18 * kMiB)) << "what was freed is there again";
  EXPECT_LE(counted(), limits.hard);
}

TEST_F(Limit, HoldsForSmallObjectsToo) {
  set(0, counted() + 8 * kMiB);
  while (take(100)) ASSERT_LT(blocks_.size(), 200000U);
  EXPECT_GT(blocks_.size(), 50000U);
  EXPECT_LE(counted(), limits.hard + kMiB) << "metadata may come on top";
  const std::size_t first = blocks_.size();
  free_all();
  while (take(3000)) ASSERT_LT(blocks_.size(), 200000U);
  EXPECT_GT(blocks_.size() * 3000, first * 100 / 2) << "slabs of another class get the memory";
}

TEST_F(Limit, HoldsForGrowthInPlaceAndByMoving) {
  set(0, counted() + 40 * kMiB);
  ASSERT_TRUE(take(24 * kMiB));
  void* grown = alloc::reallocate(blocks_[0], 34 * kMiB);
  ASSERT_NE(grown, nullptr) << "only the difference counts";
  blocks_[0] = grown;
  EXPECT_EQ(alloc::reallocate(blocks_[0], 60 * kMiB), nullptr);
  EXPECT_LE(counted(), limits.hard);
}

TEST_F(Limit, GivesFreeMemoryBackBeforeItRefuses) {
  const std::size_t before = counted();
  std::vector<void*> small;
  for (int i = 0; i < 100; ++i) small.push_back(arch::brimful_malloc(100 << 10));
  for (void* block : small) arch::brimful_free(block);
  ASSERT_GT(heap.pages.stats().dirty_bytes, 8 * kMiB);
  set(0, before + 14 * kMiB);
  EXPECT_TRUE(take(13 * kMiB));
  EXPECT_LE(counted(), limits.hard);
}

TEST_F(Limit, DoesNotGiveMemoryBackForAHopelessRequest) {
  ASSERT_TRUE(take(8 * kMiB));
  free_all();
  const std::size_t dirty = heap.pages.stats().dirty_bytes;
  set(0, counted() + kMiB);
  {
    const sync::MutexLock guard(heap.lock);
    EXPECT_FALSE(may_grow(std::size_t{1} << 40));
  }
  EXPECT_EQ(heap.pages.stats().dirty_bytes, dirty);
}

TEST_F(Limit, SoftGivesBackAndGoesOn) {
  ASSERT_TRUE(take(8 * kMiB));
  free_all();
  ASSERT_GE(heap.pages.stats().dirty_bytes + cached_run_bytes(), 8 * kMiB);
  set(kMiB, 0);
  EXPECT_TRUE(take(33000));
  EXPECT_TRUE(take(9 * kMiB));
  EXPECT_EQ(heap.pages.stats().dirty_bytes, 0U);
  EXPECT_EQ(limits.refusals, 0U);
}

TEST_F(Limit, SoftOrdersReclaimingOnceASecond) {
  constexpr std::uint64_t kLater = std::uint64_t{1} << 40;  // after all that this process may have done before
  set(kMiB, 0);
  EXPECT_TRUE(take(9 * kMiB));
  EXPECT_TRUE(takes_reclaim_order(kLater));
  EXPECT_TRUE(take(9 * kMiB));
  EXPECT_FALSE(takes_reclaim_order(kLater + 500));
  EXPECT_TRUE(takes_reclaim_order(kLater + 1500));
  EXPECT_FALSE(takes_reclaim_order(kLater + 5000)) << "nothing was ordered since";
}

TEST(Pressure, IsAStallOfATenthOrAReachedLimit) {
  char name[] = "/tmp/brimful-pressure-XXXXXX";
  const std::string root = mkdtemp(name);
  const std::string file = root + "/memory";
  const auto write = [&](const std::string& path, const std::string& text) { std::ofstream(root + path) << text; };
  os::MemoryGroup group = {};
  std::uint64_t refusals = 0;
  write("/memory", "some avg10=9.99 avg60=90.00\n");
  EXPECT_FALSE(look_for_pressure(group, file.c_str(), &refusals));
  write("/memory", "some avg10=10.00 avg60=0.00\n");
  EXPECT_TRUE(look_for_pressure(group, file.c_str(), &refusals));
  write("/memory", "some avg10=0.00\n");
  group.mount_length = root.copy(group.folder, sizeof group.folder);
  group.is_unified = true;
  write("/memory.events", "low 0\nhigh 4\nmax 0\n");
  EXPECT_TRUE(look_for_pressure(group, file.c_str(), &refusals));
  EXPECT_FALSE(look_for_pressure(group, file.c_str(), &refusals)) << "not again since the last look";
  write("/memory.events", "low 0\nhigh 4\nmax 1\n");
  EXPECT_TRUE(look_for_pressure(group, file.c_str(), &refusals));
  std::filesystem::remove_all(root);
}

TEST(Pressure, IsNotLookedForByASmallHeap) {
  poll_pressure(std::uint64_t{1} << 41);
  EXPECT_FALSE(under_pressure());
}

}  // namespace
}  // namespace brimful::pages
