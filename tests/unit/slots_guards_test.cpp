// SPDX-License-Identifier: MIT
//
// Guarded objects: where they lie, what they answer, whose turn it is, and that nothing is lost when the system refuses.
// What a fault is reported as: tests/misuse/run.py.
#include "slots/guards.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "alone.h"
#include "brimful/brimful.h"
#include "fake_os.h"
#include "os/calls.h"
#include "os/probe.h"
#include "slots/thread.h"

namespace brimful::slots {
namespace {

using brimful::testing::Call;
using brimful::testing::Configured;

const Configured every_object(__BASE_FILE__, "front_end:thread,guards:1");

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

class Guards : public ::testing::Test {
 protected:
  void SetUp() override { prepare_heap(); }

  static void prepare_heap() {
    const SlowScope scope;
    prepare();
  }

  static void* take(std::size_t bytes) {
    const SlowScope scope;
    return allocate_guarded(bytes);
  }
};

TEST_F(Guards, LieAtTheEndOrTheStartOfAPageBesidePagesWithoutAccess) {
  const std::uint64_t page = os::page_bytes();
  unsigned left = 0;
  for (std::size_t bytes = 0; bytes <= kMostGuardedBytes; bytes += 7) {
    void* object = take(bytes);
    ASSERT_NE(object, nullptr);
    const std::uint64_t start = address_of(object);
    EXPECT_EQ(start % kObjectAlignment, 0U);
    const std::uint64_t end = start + (bytes != 0 ? bytes : 1);
    const bool is_left = start % page == 0;
    left += is_left && bytes <= page - kObjectAlignment;
    if (!is_left) {
      EXPECT_EQ(round_up(end, kObjectAlignment) % page, 0U);
    }
    EXPECT_EQ(round_down(start, page), round_down(end - 1, page));
    EXPECT_TRUE(os::is_readable(start & -8));
    EXPECT_FALSE(os::is_readable(round_down(start, page) - 8));
    EXPECT_FALSE(os::is_readable(round_down(start, page) + page));
    free_guarded(start, "free");
    EXPECT_FALSE(os::is_readable(start & -8));
  }
  // One in four: of 584 objects 146, with a deviation of 10.
  EXPECT_GT(left, 80U);
  EXPECT_LT(left, 220U);
}

TEST_F(Guards, AnswerWhatWasAskedForAndKeepContentsWhenTheyMove) {
  auto* object = static_cast<char*>(brimful_malloc(61));
  ASSERT_TRUE(is_guarded(address_of(object)));
  EXPECT_EQ(brimful_usable_size(object), 61U);
  std::memset(object, 'x', 61);
  EXPECT_EQ(brimful_realloc(object, 61), object);
  auto* moved = static_cast<char*>(brimful_realloc(object, 62));
  EXPECT_NE(moved, object);
  for (int i = 0; i < 61; ++i) EXPECT_EQ(moved[i], 'x');
  moved = static_cast<char*>(brimful_realloc(moved, 100'000));
  for (int i = 0; i < 61; ++i) EXPECT_EQ(moved[i], 'x');
  EXPECT_FALSE(is_guarded(address_of(moved)));
  moved = static_cast<char*>(brimful_realloc(moved, 10));
  EXPECT_TRUE(is_guarded(address_of(moved)));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(moved[i], 'x');
  brimful_free(moved);
}

TEST_F(Guards, LieOnTheAlignmentThatIsAskedFor) {
  for (std::size_t alignment = 16; alignment <= kMostGuardedBytes; alignment *= 2) {
    for (int i = 0; i < 16; ++i) {
      void* object = brimful_aligned_alloc(alignment, 40);
      EXPECT_EQ(address_of(object) % alignment, 0U);
      brimful_free(object);
    }
  }
}

TEST_F(Guards, TheOneThatWaitsLongestIsTakenAgain) {
  std::vector<std::uint64_t> order;
  for (;;) {
    const std::uint64_t object = address_of(take(4096));
    if (!order.empty() && object == order.front()) break;
    order.push_back(object);
    free_guarded(object, "free");
    ASSERT_LE(order.size(), meta::guard_pool.slots);
  }
  EXPECT_EQ(order.size(), meta::guard_pool.slots);
  EXPECT_EQ(std::set<std::uint64_t>(order.begin(), order.end()).size(), order.size());
}

TEST_F(Guards, OthersGoWithoutWhenAllLive) {
  std::vector<void*> live;
  for (void* object = take(16); object != nullptr; object = take(16)) live.push_back(object);
  EXPECT_EQ(guarded_use().objects, live.size());
  EXPECT_EQ(guarded_use().bytes, live.size() * 16);
  void* other = brimful_malloc(16);
  ASSERT_NE(other, nullptr);
  EXPECT_FALSE(is_guarded(address_of(other)));
  brimful_free(other);
  for (void* object : live) brimful_free(object);
  EXPECT_EQ(guarded_use().objects, 0U);
  void* again = brimful_malloc(16);
  EXPECT_TRUE(is_guarded(address_of(again)));
  brimful_free(again);
}

TEST_F(Guards, ThreadsThatFreeEachOthersObjectsLoseNone) {
  constexpr int kRounds = 2000;
  std::atomic<void*> handed[2] = {nullptr, nullptr};
  const auto work = [&](int self) {
    for (int i = 0; i < kRounds; ++i) {
      void* mine = brimful_malloc(48);
      std::memset(mine, self, 48);
      brimful_free(handed[i % 2].exchange(mine));
    }
  };
  std::thread first(work, 1);
  std::thread second(work, 2);
  first.join();
  second.join();
  for (auto& left : handed) brimful_free(left.load());
  EXPECT_LE(guarded_use().objects, 2U);  // of the C library, for its threads
}

TEST_F(Guards, ARefusedCallLosesNoSlot) {
  brimful::testing::FakeOs os;
  for (std::size_t n = 1; n <= 2; ++n) {  // the records' memory, and a page's
    os.fail(Call::kCommit, n);
    while (os.count(Call::kCommit) < n) take(16);
    os.succeed();
  }
  const std::uint64_t live = guarded_use().objects;
  std::uint64_t more = 0;
  while (take(16) != nullptr) ++more;
  EXPECT_EQ(live + more, meta::guard_pool.slots);
}

TEST_F(Guards, WithoutAddressSpaceThereAreNone) {
  brimful::testing::FakeOs os;
  os.fail(Call::kReserve, 1, 100);
  EXPECT_EQ(take(16), nullptr);
  os.succeed();
  void* object = brimful_malloc(16);
  EXPECT_NE(object, nullptr);
  EXPECT_FALSE(is_guarded(address_of(object)));
  brimful_free(object);
}

}  // namespace
}  // namespace brimful::slots
