// SPDX-License-Identifier: MIT
//
// meta/live_map.h on an instance of its own, with windows that are nothing but numbers.
#include "meta/live_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <thread>
#include <vector>

#include "classes/size_classes.h"
#include "fake_os.h"

namespace brimful::meta {
namespace {

using testing::Call;
using testing::FakeOs;

class LiveMapTest : public ::testing::Test {
 protected:
  ~LiveMapTest() override { os_.unmap_everything(); }

  static constexpr std::uint64_t kWindow = std::uint64_t{0x700000} << 16;
  static constexpr std::size_t kBytes = std::size_t{64} << 20;

  FakeOs os_;
  LiveMap map_;
};

TEST_F(LiveMapTest, OneOfManyClearsEndsALife) {
  ASSERT_TRUE(map_.add_window(kWindow, kBytes));
  ASSERT_TRUE(map_.cover(kWindow + kGranuleBytes));
  constexpr unsigned kThreads = 3;
  constexpr unsigned kObjects = 4096;
  for (unsigned i = 0; i < kObjects; ++i) map_.set(kWindow + i * kObjectAlignment);
  std::atomic<unsigned> ended{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (unsigned i = 0; i < kObjects; ++i) ended += map_.clear(kWindow + i * kObjectAlignment) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended.load(), kObjects);
}

TEST_F(LiveMapTest, KnowsNothingOfAddressesOutsideOfItsWindows) {
  ASSERT_TRUE(map_.add_window(kWindow, kBytes));
  ASSERT_TRUE(map_.cover(kWindow + kBytes));
  map_.set(kWindow);
  map_.set(kWindow + kBytes - kObjectAlignment);
  EXPECT_FALSE(map_.clear(0));
  EXPECT_FALSE(map_.clear(kWindow + 8)) << "not the start of an object";
  EXPECT_FALSE(map_.clear(kWindow - kBytes)) << "the same low digits";
  EXPECT_FALSE(map_.clear(kWindow + kBytes));
  EXPECT_FALSE(map_.clear(kWindow + 2 * kBytes - kObjectAlignment));
  EXPECT_TRUE(map_.is_set(kWindow));
  EXPECT_TRUE(map_.clear(kWindow));
  EXPECT_TRUE(map_.clear(kWindow + kBytes - kObjectAlignment));
}

TEST_F(LiveMapTest, CoversAWindowStepByStepAndKeepsItsBits) {
  ASSERT_TRUE(map_.add_window(kWindow, kBytes));
  ASSERT_TRUE(map_.cover(kWindow + kGranuleBytes));
  EXPECT_FALSE(map_.is_set(kWindow + kBytes - kGranuleBytes)) << "beyond what is usable";
  map_.set(kWindow + 48);
  os_.reset();
  ASSERT_TRUE(map_.cover(kWindow + 2 * kGranuleBytes));
  EXPECT_EQ(os_.count(Call::kCommit), 0U) << "usable already";
  ASSERT_TRUE(map_.cover(kWindow + kBytes));
  map_.set(kWindow + kBytes - 16);
  EXPECT_TRUE(map_.is_set(kWindow + 48));
  EXPECT_TRUE(map_.is_set(kWindow + kBytes - 16));
}

TEST_F(LiveMapTest, TellsNeighbouringWindowsApart) {
  constexpr std::size_t kSmall = std::size_t{1} << 20;
  ASSERT_TRUE(map_.add_window(kWindow, kSmall));
  ASSERT_TRUE(map_.cover(kWindow + kSmall));
  ASSERT_TRUE(map_.add_window(kWindow + kSmall, kSmall));
  EXPECT_FALSE(map_.is_set(kWindow + kSmall));
  ASSERT_TRUE(map_.cover(kWindow + kSmall + kGranuleBytes));
  map_.set(kWindow + kSmall);
  EXPECT_FALSE(map_.is_set(kWindow));
  EXPECT_TRUE(map_.clear(kWindow + kSmall));
}

TEST_F(LiveMapTest, SetsAndClearsTheObjectsOfAGroupAtOnceAndNoOthers) {
  ASSERT_TRUE(map_.add_window(kWindow, kBytes));
  ASSERT_TRUE(map_.cover(kWindow + kBytes));
  constexpr std::uint64_t kMasks[] = {1, ~std::uint64_t{0}, 0x8000000000000001, 0x0123456789ABCDEF};
  for (const SizeClass& shape : kSizeClasses) {
    const std::uint64_t start = kWindow + std::uint64_t{64} * shape.bytes;  // the second group
    const auto object = [&](unsigned i) { return start + std::uint64_t{i} * shape.bytes; };
    for (const std::uint64_t mask : kMasks) {
      const std::uint64_t others = ~mask & 0x00FF00FF00FF00FF;
      map_.set_group(start, shape.bytes, others);
      map_.set_group(start, shape.bytes, mask);
      std::uint64_t live = 0;
      for (unsigned i = 0; i < 64; ++i) live |= std::uint64_t{map_.is_set(object(i))} << i;
      ASSERT_EQ(live, mask | others) << shape.bytes;
      ASSERT_FALSE(map_.is_set(start - 16) || map_.is_set(object(64)) ||
                   map_.is_set(start + 16) != (shape.bytes == 16 && (live & 2) != 0));
      const unsigned lost = static_cast<unsigned>(std::countr_zero(mask));
      ASSERT_TRUE(map_.clear(object(lost)));
      EXPECT_EQ(map_.clear_group(start, shape.bytes, mask), mask & (mask - 1)) << shape.bytes << ": one was not live";
      EXPECT_EQ(map_.clear_group(start, shape.bytes, ~std::uint64_t{0}), others) << shape.bytes;
    }
  }
}

TEST_F(LiveMapTest, LosesNoBitWhereAGroupIsSetBesideObjectsThatEnd) {
  ASSERT_TRUE(map_.add_window(kWindow, kBytes));
  ASSERT_TRUE(map_.cover(kWindow + kGranuleBytes));
  constexpr std::uint64_t kEven = 0x5555555555555555;
  constexpr unsigned kRounds = 200;
  std::atomic<unsigned> round{0};
  std::atomic<unsigned> lost{0};
  // The odd ones live, and end one by one while the even ones are set.
  std::thread freer([&] {
    for (unsigned r = 1; r <= kRounds; ++r) {
      while (round.load() < r) std::this_thread::yield();
      for (unsigned i = 1; i < 64; i += 2) lost += map_.clear(kWindow + i * kObjectAlignment) ? 0 : 1;
      round.store(r + kRounds);
      while (round.load() > kRounds) std::this_thread::yield();
    }
  });
  for (unsigned r = 1; r <= kRounds; ++r) {
    map_.set_group(kWindow, kObjectAlignment, ~kEven);
    round.store(r);
    map_.set_group(kWindow, kObjectAlignment, kEven);
    while (round.load() != r + kRounds) std::this_thread::yield();
    EXPECT_EQ(map_.clear_group(kWindow, kObjectAlignment, ~std::uint64_t{0}), kEven);
    round.store(r);
  }
  freer.join();
  EXPECT_EQ(lost.load(), 0U);
}

TEST_F(LiveMapTest, ChangesNothingWhenTheSystemRefuses) {
  os_.fail(Call::kReserve, 1);
  EXPECT_FALSE(map_.add_window(kWindow, kBytes));
  ASSERT_TRUE(map_.add_window(kWindow, kBytes));
  os_.fail(Call::kCommit, 1);
  EXPECT_FALSE(map_.cover(kWindow + kGranuleBytes));
  EXPECT_FALSE(map_.is_set(kWindow));
  ASSERT_TRUE(map_.cover(kWindow + kGranuleBytes));
  map_.set(kWindow);
  EXPECT_TRUE(map_.clear(kWindow));
}

TEST_F(LiveMapTest, ForgetsAWindowThatCouldNotBeUsed) {
  ASSERT_TRUE(map_.add_window(kWindow, kBytes));
  const std::size_t before = os_.mapped_bytes();
  ASSERT_TRUE(map_.add_window(kWindow + kBytes, kBytes));
  map_.remove_last_window();
  EXPECT_EQ(os_.mapped_bytes(), before);
  ASSERT_TRUE(map_.add_window(kWindow - kBytes, kBytes));
  ASSERT_TRUE(map_.cover(kWindow));
  map_.set(kWindow - kObjectAlignment);
  EXPECT_TRUE(map_.is_set(kWindow - kObjectAlignment));
}

}  // namespace
}  // namespace brimful::meta
