// SPDX-License-Identifier: MIT
//
// slots/free_pages.cpp: which pages inside slabs go back, seen by the system calls of an operating system that counts them.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "brimful/brimful.h"
#include "config/options.h"
#include "fake_os.h"
#include "slots/front_end.h"
#include "slots/thread.h"
#include "slots_test_support.h"

namespace brimful {
namespace {

using testing::Call;
using testing::FakeOs;

constexpr std::size_t kPage = 4096;

// Every object of `slabs` slabs, each filled with its number.
std::vector<unsigned char*> fill(std::size_t bytes, std::size_t slabs) {
  std::vector<unsigned char*> objects(slabs * kSizeClasses[class_of(bytes)].groups * kGroupObjects);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    objects[i] = static_cast<unsigned char*>(brimful_malloc(bytes));
    for (std::size_t b = 0; b < bytes; ++b) objects[i][b] = static_cast<unsigned char>(i % 251 + 1);
  }
  return objects;
}

// Frees all but each 64th; those keep their contents whatever is purged.
void free_most(std::vector<unsigned char*>& objects) {
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (i % 64 != 0) brimful_free(objects[i]);
  }
}

void expect_survivors(const std::vector<unsigned char*>& objects, std::size_t bytes) {
  for (std::size_t i = 0; i < objects.size(); i += 64) {
    for (std::size_t b = 0; b < bytes; ++b) ASSERT_EQ(objects[i][b], i % 251 + 1) << "object " << i << " byte " << b;
  }
}

std::size_t purged_bytes(const FakeOs& os) {
  std::size_t sum = 0;
  for (const testing::Range& range : os.log(Call::kPurge)) sum += range.bytes;
  return sum;
}

int purge_all() {
  const slots::SlowScope scope;
  return slots::purge_all_pages();
}

class FreePages : public ::testing::TestWithParam<std::size_t> {};

TEST_P(FreePages, OfAThreadsOwnSlabsGoBackAndNoSurvivorIsTouched) {
  const std::size_t bytes = GetParam();
  auto objects = fill(bytes, 8);
  free_most(objects);
  FakeOs os;
  EXPECT_GT(purge_all(), 0);
  const std::size_t free = objects.size() * bytes / 64 * 63;
  EXPECT_GT(purged_bytes(os), free / 2);
  expect_survivors(objects, bytes);
}

TEST_P(FreePages, GoBackOnceOnlyUntilMoreIsFreed) {
  const std::size_t bytes = GetParam();
  auto objects = fill(bytes, 8);
  free_most(objects);
  FakeOs os;
  purge_all();
  EXPECT_EQ(purge_all(), 0);
  for (std::size_t i = 0; i < objects.size() / 2; i += 64) brimful_free(objects[i]);
  os.reset();
  purge_all();
  for (std::size_t i = objects.size() / 2 / 64 * 64 + 64; i < objects.size(); i += 64) {
    EXPECT_EQ(objects[i][0], i % 251 + 1);
  }
}

TEST_P(FreePages, OfAGoneThreadsSlabsGoBack) {
  const std::size_t bytes = GetParam();
  std::vector<unsigned char*> objects;
  std::thread([&objects, bytes] {
    objects = fill(bytes, 8);
    free_most(objects);
  }).join();
  FakeOs os;
  EXPECT_GT(purge_all(), 0);
  EXPECT_GT(purged_bytes(os), objects.size() * bytes / 64 * 63 / 2);
  expect_survivors(objects, bytes);
}

TEST_P(FreePages, OfTheIndexGoBackAtTheThirdLook) {
  const std::size_t bytes = GetParam();
  std::vector<unsigned char*> objects;
  std::thread([&objects, bytes] {
    objects = fill(bytes, 8);
    free_most(objects);
  }).join();
  config::options.purge_delay_ms = 1000;
  static std::uint64_t later_ms = 10000;
  FakeOs os;
  const slots::SlowScope scope;
  for (std::uint64_t look = 0; look < 2; ++look) {
    slots::purge_idle_pages(later_ms += 1000, 0);
    EXPECT_EQ(purged_bytes(os), 0U);
  }
  slots::purge_idle_pages(later_ms += 1000, 0);
  EXPECT_GT(purged_bytes(os), objects.size() * bytes / 64 * 63 / 2);
  expect_survivors(objects, bytes);
  config::options.purge_delay_ms = -1;
}

TEST(FreePagesByLooks, OfMoreSlabsThanALookTakesGoBackInTheNextOnesAndNoneIsLeftOver) {
  constexpr std::size_t kBytes = 1024;
  constexpr int kSlabs = 20;
  auto objects = fill(kBytes, kSlabs);
  free_most(objects);
  FakeOs os;
  const slots::SlowScope scope;
  Context* context = slots::current_context();
  ASSERT_NE(context, nullptr);
  ASSERT_TRUE(context->lock.try_lock());
  std::vector<std::size_t> after;
  for (int look = 0; look < 12; ++look) {
    slots::purge_free_pages(context, kSlabs / 4);
    after.push_back(purged_bytes(os));
    if (look >= 2 && !context->has_slabs_left_over()) break;
  }
  context->lock.unlock();
  EXPECT_EQ(after[1], 0U) << "they had not waited";
  EXPECT_GT(after[2], 0U);
  EXPECT_LE(after[2], objects.size() * kBytes / 2);
  EXPECT_GT(after.back(), objects.size() * kBytes * 8 / 10) << "in the same look, so without waiting for eight more";
  EXPECT_LE(after.size(), 8U);
  expect_survivors(objects, kBytes);
}

INSTANTIATE_TEST_SUITE_P(Of, FreePages, ::testing::Values<std::size_t>(256, 1024, 2 * kPage));

}  // namespace
}  // namespace brimful
