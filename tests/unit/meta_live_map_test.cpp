// SPDX-License-Identifier: MIT
//
// meta/live_map.h on an instance of its own, with windows that are nothing but numbers.
#include "meta/live_map.h"

#include <gtest/gtest.h>

#include <atomic>
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
