// SPDX-License-Identifier: MIT
//
// Nothing that is free stays with somebody who does not come back for it: slabs that become empty are released, by
// whoever empties them, and a thread that exits leaves nothing behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "brimful/brimful.h"
#include "slots_test_support.h"

namespace brimful {
namespace {

using testing::use_of;

std::vector<void*> allocate(std::size_t count, std::size_t bytes) {
  std::vector<void*> objects;
  for (std::size_t i = 0; i < count; ++i) {
    objects.push_back(brimful_malloc(bytes));
    EXPECT_NE(objects.back(), nullptr);
  }
  return objects;
}

void free_all(const std::vector<void*>& objects) {
  for (void* object : objects) brimful_free(object);
}

std::size_t objects_of_slabs(std::size_t bytes, std::size_t slabs) {
  return slabs * kSizeClasses[class_of(bytes)].groups * kGroupObjects;
}

enum class Order { kFirstFirst, kLastFirst, kMixed };

std::vector<void*> ordered(std::vector<void*> objects, Order order) {
  std::mt19937_64 random(8);
  if (order == Order::kLastFirst) std::reverse(objects.begin(), objects.end());
  if (order == Order::kMixed) std::shuffle(objects.begin(), objects.end(), random);
  return objects;
}

class Slabs : public ::testing::TestWithParam<std::tuple<std::size_t, Order>> {};

TEST_P(Slabs, AreReleasedButForOneWhenTheirOwnerFreesAll) {
  const auto [bytes, order] = GetParam();
  const std::size_t before = use_of(bytes).slabs;
  const auto objects = allocate(objects_of_slabs(bytes, 12) - 5, bytes);
  EXPECT_GE(use_of(bytes).slabs, 12U);
  EXPECT_EQ(use_of(bytes).live, objects.size());
  free_all(ordered(objects, order));
  EXPECT_EQ(use_of(bytes).live, 0U);
  EXPECT_LE(use_of(bytes).slabs, std::max<std::size_t>(before, 1));
}

TEST_P(Slabs, AreReleasedButForOneWhenAnotherThreadFreesAllAndExits) {
  const auto [bytes, order] = GetParam();
  const std::size_t before = use_of(bytes).slabs;
  const auto objects = ordered(allocate(objects_of_slabs(bytes, 12) - 5, bytes), order);
  std::thread([&objects] { free_all(objects); }).join();
  EXPECT_EQ(use_of(bytes).live, 0U) << "frees that nobody was told of";
  EXPECT_LE(use_of(bytes).slabs, std::max<std::size_t>(before, 1));
}

TEST_P(Slabs, GoWithTheThreadThatAllocatedAndFreed) {
  const auto [bytes, order] = GetParam();
  const auto before = use_of(bytes);
  std::thread([bytes = bytes, order = order] {
    free_all(ordered(allocate(objects_of_slabs(bytes, 3) + 7, bytes), order));
  }).join();
  EXPECT_EQ(use_of(bytes).slabs, before.slabs);
  EXPECT_EQ(use_of(bytes).live, before.live);
}

TEST_P(Slabs, AreReleasedWhenOthersFreeWhatAGoneThreadAllocated) {
  const auto [bytes, order] = GetParam();
  const auto before = use_of(bytes);
  std::vector<void*> objects;
  std::thread([&objects, bytes = bytes] { objects = allocate(objects_of_slabs(bytes, 3) + 7, bytes); }).join();
  EXPECT_EQ(use_of(bytes).live, before.live + objects.size());
  std::thread([&objects, order = order] { free_all(ordered(objects, order)); }).join();
  EXPECT_EQ(use_of(bytes).live, before.live);
  EXPECT_LE(use_of(bytes).slabs, before.slabs);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<std::size_t, Order>>& info) {
  constexpr const char* kNames[] = {"FirstFirst", "LastFirst", "Mixed"};
  const auto [bytes, order] = info.param;
  return std::to_string(bytes) + kNames[static_cast<int>(order)];
}

INSTANTIATE_TEST_SUITE_P(Of, Slabs,
                         ::testing::Combine(::testing::Values<std::size_t>(16, 48, 320, 1024, 3584, 32768),
                                            ::testing::Values(Order::kFirstFirst, Order::kLastFirst, Order::kMixed)),
                         name_of);

TEST(Contexts, AreTakenOverByTheNextThread) {
  constexpr std::size_t kBytes = 208;
  std::thread([] { brimful_free(brimful_malloc(kBytes)); }).join();
  const std::uint64_t before = testing::snapshot().metadata_bytes;
  const std::uint64_t slabs = use_of(kBytes).slabs;
  for (int i = 0; i < 300; ++i) {
    std::thread([] { free_all(allocate(100, kBytes)); }).join();
  }
  EXPECT_EQ(use_of(kBytes).slabs, slabs);
  EXPECT_EQ(testing::snapshot().metadata_bytes, before) << "threads that are gone cost metadata";
}

TEST(Contexts, ReuseWhatAGoneThreadLeftHalfFull) {
  constexpr std::size_t kBytes = 224;
  std::vector<void*> kept;
  for (int i = 0; i < 100; ++i) {
    std::thread([&kept] {
      const auto objects = allocate(30, kBytes);
      kept.insert(kept.end(), objects.begin(), objects.begin() + 10);
      free_all({objects.begin() + 10, objects.end()});
    }).join();
  }
  // 1000 objects in slabs of 256: 4, and one that was not found in time.
  EXPECT_LE(use_of(kBytes).slabs, 1000 / objects_of_slabs(kBytes, 1) + 2);
  EXPECT_EQ(use_of(kBytes).live, kept.size());
  free_all(kept);
}

}  // namespace
}  // namespace brimful
