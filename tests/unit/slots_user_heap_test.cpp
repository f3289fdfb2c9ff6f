// SPDX-License-Identifier: MIT
//
// slots/user_heap.h and alloc/heaps.h where the public calls can't look: what a destroy costs, what a system that
// refuses memory leaves behind, what signal handlers free, how handles are numbered, and the rank of the locks.
#include <errno.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <set>
#include <vector>

#include "brimful/brimful.h"
#include "brimful/heap.h"
#include "fake_os.h"
#include "pages/heap.h"
#include "slots/front_end.h"
#include "slots/stand_in.h"
#include "slots/user_heap.h"
#include "slots_test_support.h"

namespace brimful {
namespace {

using testing::Call;
using testing::FakeOs;

brimful_heap_stats stats_of(brimful_heap* heap) {
  brimful_heap_stats stats = {};
  stats.size = sizeof stats;
  EXPECT_EQ(brimful_heap_get_stats(heap, &stats), 0);
  return stats;
}

std::uint64_t number_of(const brimful_heap* heap) {
  return reinterpret_cast<std::uint64_t>(heap) & ((std::uint64_t{1} << slots::kHeapNumberBits) - 1);
}

std::uint64_t heap_locks_of_destroy(std::size_t objects, std::size_t bytes) {
  brimful_heap* heap = brimful_heap_create(0);
  for (std::size_t i = 0; i < objects; ++i) EXPECT_NE(brimful_heap_malloc(heap, bytes), nullptr);
  const std::uint64_t before = pages::heap.lock.use().acquisitions;
  EXPECT_EQ(brimful_heap_destroy(heap), 0);
  return pages::heap.lock.use().acquisitions - before;
}

TEST(UserHeap, IsDestroyedBySlabsAndNotByObjects) {
  // Slabs of 4096 objects; 64 of them go while the lock is held once.
  EXPECT_EQ(heap_locks_of_destroy(64 * 4096, 16), 1U);
  EXPECT_EQ(heap_locks_of_destroy(1, 16), 1U);
  EXPECT_EQ(heap_locks_of_destroy(65 * 4096, 16), 2U);
}

TEST(UserHeap, ThatIsDestroyedLeavesNoSlabAndNoBlock) {
  const stats::Snapshot before = testing::snapshot();
  brimful_heap* heap = brimful_heap_create(0);
  for (std::size_t bytes = 1; bytes < 300'000; bytes += bytes / 8 + 1) {
    ASSERT_NE(brimful_heap_malloc(heap, bytes), nullptr);
  }
  EXPECT_GT(testing::snapshot().live_bytes, before.live_bytes + (1 << 20));
  EXPECT_EQ(brimful_heap_destroy(heap), 0);
  const stats::Snapshot after = testing::snapshot();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.large_blocks, before.large_blocks);
  for (std::size_t c = 0; c < kClassCount; ++c) {
    EXPECT_EQ(after.classes[c].live, before.classes[c].live) << "class " << c;
  }
}

TEST(UserHeap, ReusesTheNumberThatWasFreedTheLongestAgoWithAnotherGeneration) {
  brimful_heap* first = brimful_heap_create(0);
  brimful_heap* second = brimful_heap_create(0);
  EXPECT_NE(number_of(first), number_of(second));
  brimful_heap_destroy(first);
  brimful_heap_destroy(second);
  brimful_heap* third = brimful_heap_create(0);
  EXPECT_EQ(number_of(third), number_of(first));
  EXPECT_NE(third, first);
  EXPECT_EQ(number_of(brimful_heap_create(0)), number_of(second));
}

TEST(UserHeap, NeverGivesAHandleTwice) {
  std::set<brimful_heap*> seen;
  for (int i = 0; i < 5000; ++i) {
    brimful_heap* heap = brimful_heap_create(0);
    EXPECT_TRUE(seen.insert(heap).second);
    brimful_heap_destroy(heap);
  }
}

TEST(UserHeap, FillsTheLowestPlacesFirst) {
  brimful_heap* heap = brimful_heap_create(0);
  std::vector<char*> objects;
  for (int i = 0; i < 1000; ++i) objects.push_back(static_cast<char*>(brimful_heap_malloc(heap, 32)));
  for (std::size_t i = 1; i < objects.size(); ++i) ASSERT_EQ(objects[i], objects[i - 1] + 32);
  brimful_free(objects[700]);
  brimful_free(objects[20]);
  EXPECT_EQ(brimful_heap_malloc(heap, 32), objects[20]);
  EXPECT_EQ(brimful_heap_malloc(heap, 32), objects[700]);
  brimful_heap_destroy(heap);
}

// What a signal handler does that interrupted a slow path of this thread.
template <class Handler>
void in_nested_handler(Handler handler) {
  const slots::SlowScope interrupted;
  handler();
}

TEST(UserHeap, TakesOverWhatNestedHandlersFreed) {
  brimful_heap* heap = brimful_heap_create(0);
  std::vector<void*> objects;
  for (int i = 0; i < 5000; ++i) objects.push_back(brimful_heap_malloc(heap, 64));
  void* large = brimful_heap_malloc(heap, 100'000);
  in_nested_handler([&] {
    for (void* object : objects) brimful_free(object);
    brimful_free(large);
  });
  const brimful_heap_stats stats = stats_of(heap);
  EXPECT_EQ(stats.live_blocks, 0U);
  EXPECT_EQ(stats.live_bytes, 0U);
  EXPECT_EQ(stats.large_blocks, 0U);
  EXPECT_LE(stats.slabs, 1U);
  EXPECT_NE(brimful_heap_malloc(heap, 64), nullptr);
  EXPECT_EQ(brimful_heap_destroy(heap), 0);
}

TEST(UserHeap, IsDestroyedWithNestedFreesOutstanding) {
  const stats::Snapshot before = testing::snapshot();
  brimful_heap* heap = brimful_heap_create(0);
  void* object = brimful_heap_malloc(heap, 64);
  void* large = brimful_heap_malloc(heap, 100'000);
  in_nested_handler([&] {
    brimful_free(object);
    brimful_free(large);
  });
  EXPECT_EQ(brimful_heap_destroy(heap), 0);
  EXPECT_EQ(testing::snapshot().live_bytes, before.live_bytes);
}

TEST(UserHeap, ServesNestedHandlersFromTheirReserveAndRefusesTheRest) {
  brimful_heap* heap = brimful_heap_create(0);
  brimful_free(brimful_heap_malloc(heap, 1));
  in_nested_handler([&] {
    void* object = brimful_heap_malloc(heap, 100);
    EXPECT_NE(object, nullptr);
    EXPECT_EQ(brimful_heap_of(object), nullptr);
    brimful_free(object);
    EXPECT_EQ(brimful_heap_create(0), nullptr);
    EXPECT_EQ(brimful_heap_set_current(heap), EDEADLK);
    EXPECT_EQ(brimful_heap_set_limit(heap, 1), EDEADLK);
    EXPECT_EQ(brimful_heap_destroy(heap), EBUSY);
  });
  EXPECT_EQ(brimful_heap_destroy(heap), 0);
}

TEST(UserHeap, GivesBackTheFreePagesOfASlabThatIsLeftAlone) {
  brimful_heap* heap = brimful_heap_create(0);
  std::vector<void*> objects;
  for (int i = 0; i < 512; ++i) objects.push_back(brimful_heap_malloc(heap, 4096));
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (i % 16 != 0) brimful_free(objects[i]);
  }
  FakeOs os;
  EXPECT_GT(slots::purge_heaps(true), 0);
  std::size_t purged = 0;
  for (const testing::Range& range : os.log(Call::kPurge)) purged += range.bytes;
  EXPECT_EQ(purged, std::size_t{512} / 16 * 15 * 4096);
  EXPECT_EQ(slots::purge_heaps(true), 0) << "nothing was freed since";
  brimful_heap_destroy(heap);
}

TEST(UserHeap, CurrentHeapIsPutAsideForOrdinaryWork) {
  brimful_heap* heap = brimful_heap_create(0);
  brimful_free(brimful_malloc(1));
  const std::uint32_t id = slots::current_id();
  ASSERT_EQ(brimful_heap_set_current(heap), 0);
  EXPECT_EQ(slots::context_of(slots::current_id()), nullptr);
  EXPECT_EQ(slots::current_context(), nullptr);
  {
    const slots::OutsideHeap outside;
    EXPECT_EQ(slots::current_id(), id);
    EXPECT_EQ(brimful_heap_current(), nullptr);
  }
  EXPECT_EQ(slots::context_of(slots::current_id()), nullptr);
  EXPECT_EQ(brimful_heap_current(), heap);
  ASSERT_EQ(brimful_heap_set_current(nullptr), 0);
  EXPECT_EQ(slots::current_id(), id);
  EXPECT_EQ(brimful_heap_destroy(heap), 0);
}

TEST(StandIn, GetsUpToAGroupAndReturnsWhatIsLeft) {
  brimful_heap* heap = brimful_heap_create(0);
  ASSERT_EQ(brimful_heap_set_current(heap), 0);
  void* first = brimful_malloc(64);
  slots::UserHeap& of = *slots::heap_of(reinterpret_cast<std::uint64_t>(heap), "test");
  EXPECT_EQ(of.counts.live_blocks, 64U) << "63 wait for the hits that follow";
  EXPECT_EQ(stats_of(heap).live_blocks, 1U);
  const std::uint64_t before = of.lock.use().acquisitions;
  for (int i = 1; i < 64; ++i) EXPECT_EQ(brimful_malloc(64), static_cast<char*>(first) + 64 * i);
  EXPECT_EQ(of.lock.use().acquisitions, before);
  void* next = brimful_malloc(64);
  EXPECT_GT(of.lock.use().acquisitions, before);
  ASSERT_EQ(brimful_heap_set_current(nullptr), 0);
  EXPECT_EQ(of.counts.live_blocks, 65U);
  EXPECT_TRUE(of.lent.empty());
  EXPECT_EQ(brimful_heap_malloc(heap, 64), static_cast<char*>(next) + 64);
  EXPECT_EQ(brimful_heap_destroy(heap), 0);
}

TEST(StandIn, GetsOneObjectAtATimeOfAHeapWithALimit) {
  brimful_heap* heap = brimful_heap_create(1 << 20);
  ASSERT_EQ(brimful_heap_set_current(heap), 0);
  brimful_malloc(64);
  EXPECT_EQ(slots::heap_of(reinterpret_cast<std::uint64_t>(heap), "test")->counts.live_blocks, 1U);
  ASSERT_EQ(brimful_heap_set_current(nullptr), 0);
  EXPECT_EQ(brimful_heap_destroy(heap), 0);
}

TEST(StandIn, IsNoContextAndThereAreOnlySoMany) {
  brimful_free(brimful_malloc(1));
  std::vector<slots::StandIn*> taken;
  while (slots::StandIn* stand_in = slots::take_stand_in()) {
    EXPECT_EQ(slots::context_of(stand_in->id), nullptr);
    taken.push_back(stand_in);
  }
  EXPECT_EQ(taken.size(), slots::kMaxStandIns);
  slots::recycle_stand_in(taken.back());
  EXPECT_EQ(slots::take_stand_in(), taken.back());
  // A thread without one has no hits, and works.
  brimful_heap* heap = brimful_heap_create(0);
  ASSERT_EQ(brimful_heap_set_current(heap), 0);
  EXPECT_EQ(brimful_heap_of(brimful_malloc(64)), heap);
  ASSERT_EQ(brimful_heap_set_current(nullptr), 0);
  EXPECT_EQ(brimful_heap_destroy(heap), 0);
}

// Makes a heap, fills it and destroys it. Returns how many requests got NULL.
int script() {
  int refused = 0;
  errno = 0;
  brimful_heap* heap = brimful_heap_create(0);
  if (heap == nullptr) {
    EXPECT_EQ(errno, ENOMEM);
    return 1;
  }
  std::size_t live = 0;
  for (std::size_t bytes = 1; bytes < (6U << 20); bytes += bytes / 2 + 1) {
    errno = 0;
    auto* block = static_cast<unsigned char*>(brimful_heap_calloc(heap, 1, bytes));
    if (block == nullptr) {
      EXPECT_EQ(errno, ENOMEM);
      ++refused;
      continue;
    }
    EXPECT_EQ(block[bytes - 1], 0);
    block[0] = 1;
    auto* moved = static_cast<unsigned char*>(brimful_heap_realloc(heap, block, bytes * 2));
    if (moved == nullptr) ++refused;
    EXPECT_EQ((moved != nullptr ? moved : block)[0], 1);
    ++live;
  }
  const brimful_heap_stats stats = stats_of(heap);
  EXPECT_EQ(stats.live_blocks, live);
  EXPECT_EQ(brimful_heap_destroy(heap), 0);
  return refused;
}

// In a process of its own: the n-th call to the system fails, `times` of them. True: it passed; *reached: a call
// failed.
bool passes_with_failure(std::size_t n, std::size_t times, bool* reached) {
  const pid_t child = fork();
  if (child == 0) {
    FakeOs os;
    const std::size_t live = testing::snapshot().live_bytes;
    os.fail_any(n, times);
    script();
    const bool failed = os.succeed() != 0;
    EXPECT_EQ(script(), 0);
    EXPECT_EQ(testing::snapshot().live_bytes, live);
    _exit(::testing::Test::HasFailure() ? 1 : failed ? 0 : 77);
  }
  int status = 0;
  waitpid(child, &status, 0);
  *reached = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return *reached || (WIFEXITED(status) && WEXITSTATUS(status) == 77);
}

TEST(UserHeap, SurvivesASystemThatRefusesAtAnyMoment) {
  std::size_t failures = 0;
  for (const std::size_t times : {std::size_t{1}, FakeOs::kAlways}) {
    bool reached = true;
    for (std::size_t n = 1; reached; ++n) {
      ASSERT_TRUE(passes_with_failure(n, times, &reached)) << "call " << n;
      failures += reached ? 1 : 0;
      ASSERT_LT(n, 1000U);
    }
  }
  EXPECT_GT(failures, 10U);
}

}  // namespace
}  // namespace brimful
