// SPDX-License-Identifier: MIT
//
// slots/central.h and slots/slab.h, driven directly: each transition of a slab that no context owns.
#include "slots/central.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "alloc/allocate.h"
#include "brimful/brimful.h"
#include "fake_os.h"
#include "meta/block.h"
#include "meta/granule_table.h"
#include "os/calls.h"
#include "os/numa.h"
#include "slots/front_end.h"
#include "slots/slab.h"
#include "slots/thread.h"
#include "slots_test_support.h"

namespace brimful::slots {
namespace {

constexpr std::uint32_t kSomeId = 1234;  // no thread has it

// Each test has a class of its own, so that they may share a process.
class CentralTest : public ::testing::Test {
 protected:
  CentralTest() { prepare(); }

  // A slab in nobody's hands, whose objects are all live.
  static Slab* full_slab(ClassId id) {
    Slab* slab = make_slab(id, kOwnerMoving);
    for (unsigned g = 0; g < slab->groups; ++g) slab->word(g).store(0);
    return slab;
  }
  static std::size_t slabs(ClassId id) { return testing::snapshot().classes[id].slabs; }
};

TEST_F(CentralTest, HandsSlabsOutOldestFirstAndMarkedForCollecting) {
  constexpr ClassId kId = class_of(96);
  Slab* first = make_slab(kId, kOwnerMoving);
  Slab* second = make_slab(kId, kOwnerMoving);
  EXPECT_EQ(central[kId].take(kSomeId), nullptr);
  central[kId].add(first);
  central[kId].add(second);
  EXPECT_EQ(first->owner.load(), kOwnerCentral);
  EXPECT_EQ(listed(first), Listed::kCentral);
  EXPECT_EQ(central[kId].take(kSomeId), first);
  EXPECT_EQ(first->owner.load(), kSomeId | kOwnerHasRemote);
  EXPECT_EQ(listed(first), Listed::kNowhere);
  EXPECT_EQ(central[kId].take(kSomeId), second);
  EXPECT_EQ(central[kId].take(kSomeId), nullptr);
  release_slab(first);
  release_slab(second);
  EXPECT_EQ(slabs(kId), 0U);
}

// What happens while a thread whose lock is busy lets the others run. Tests alone, one process each.
int yields = 0;
Context* busy_context = nullptr;

TEST_F(CentralTest, AThreadWhoseLockIsBusyLetsTheHolderGoOnAndThenTakesFromItsContext) {
  constexpr ClassId kId = class_of(1536);
  busy_context = current_context();
  busy_context->lock.lock();
  os::calls.yield = [] {
    ++yields;
    busy_context->lock.unlock();
  };
  void* object = brimful_malloc(1536);
  os::calls = os::linux_calls();
  EXPECT_EQ(yields, 1);
  EXPECT_EQ(busy_context->queues[kId].current, meta::header_of(reinterpret_cast<std::uint64_t>(object)))
      << "not the shared slab's";
  brimful_free(object);
}

TEST_F(CentralTest, AThreadLetsOthersRunOnceAndThenTakesAnObjectOfTheSharedSlab) {
  constexpr ClassId kId = class_of(1792);
  Context* context = current_context();
  context->lock.lock();
  os::calls.yield = [] { ++yields; };
  void* object = brimful_malloc(1792);
  os::calls = os::linux_calls();
  EXPECT_EQ(yields, 1);
  EXPECT_EQ(context->queues[kId].current, nullptr);
  EXPECT_EQ(meta::header_of(reinterpret_cast<std::uint64_t>(object))->owner.load(), kOwnerShared);
  context->lock.unlock();
  brimful_free(object);
}

TEST_F(CentralTest, ReleasesASlabWithTheLastOfItsObjects) {
  constexpr ClassId kId = class_of(112);
  Slab* slab = full_slab(kId);
  const unsigned groups = slab->groups;
  central[kId].add(slab);
  std::uint64_t before = 1;
  for (unsigned g = 0; g < groups; ++g) {
    EXPECT_TRUE(central[kId].tell(slab, g, kAllFree >> 1, &before));
    EXPECT_EQ(before, 0U);
  }
  EXPECT_EQ(slabs(kId), 1U);
  for (unsigned g = 0; g < groups; ++g) {
    EXPECT_TRUE(central[kId].tell(slab, g, std::uint64_t{1} << 63, &before));
    EXPECT_EQ(before, kAllFree >> 1);
    EXPECT_EQ(slabs(kId), g + 1 < groups ? 1U : 0U);
  }
  EXPECT_EQ(central[kId].take(kSomeId), nullptr) << "released, and not in the index any more";
}

TEST_F(CentralTest, SaysWhichObjectsWereFreeBefore) {
  constexpr ClassId kId = class_of(128);
  Slab* slab = full_slab(kId);
  central[kId].add(slab);
  std::uint64_t before = 0;
  EXPECT_TRUE(central[kId].tell(slab, 0, 6, &before));
  EXPECT_TRUE(central[kId].tell(slab, 0, 2, &before));
  EXPECT_EQ(before & 2, 2U) << "a double free";
}

TEST_F(CentralTest, TellsOfAnObjectThatItsOwnerFreedAtTheSameMoment) {
  constexpr ClassId kId = class_of(304);
  Slab* slab = full_slab(kId);
  central[kId].add(slab);
  slab->word(0).store(2);
  slab->offered(0).store(4);
  tell_owner(slab, 0, 8);
  EXPECT_DEATH(tell_owner(slab, 0, 2), "double free: free\\(0x");
  EXPECT_DEATH(tell_owner(slab, 0, 4), "double free: free\\(0x");
  slab->remote(1).store(1);
  check_uncollected(slab);
  slab->word(1).store(1);
  EXPECT_DEATH(check_uncollected(slab), "double free: free\\(0x");
}

TEST_F(CentralTest, TellsOfAnObjectWhoseSlabWasGivenBackMeanwhile) {
  Slab* slab = make_slab(class_of(336), kOwnerMoving);
  const std::uint64_t object = slab->object(1);
  release_slab(slab);
  char line[64];
  std::snprintf(line, sizeof line, "double free: free\\(0x%llx\\)", static_cast<unsigned long long>(object));
  EXPECT_DEATH(tell_owner(slab, 0, 2), line);
}

TEST_F(CentralTest, IsToldNothingAboutASlabThatIsNotInIt) {
  constexpr ClassId kId = class_of(144);
  Slab* slab = full_slab(kId);
  std::uint64_t before = 4711;
  for (const std::uint32_t owner : {kSomeId, kOwnerDetached, kOwnerShared, kOwnerReleased, kOwnerMoving}) {
    slab->owner.store(owner);
    EXPECT_FALSE(central[kId].tell(slab, 0, kAllFree, &before));
    EXPECT_EQ(before, 4711U);
    EXPECT_EQ(slab->remote(0).load(), 0U);
  }
}

TEST_F(CentralTest, GetsDetachedSlabsPublishedAndNoOthers) {
  constexpr ClassId kId = class_of(160);
  Slab* slab = full_slab(kId);
  for (const std::uint32_t owner : {kSomeId, kOwnerShared, kOwnerReleased, kOwnerMoving, kOwnerCentral}) {
    slab->owner.store(owner);
    publish(slab);
    EXPECT_EQ(slab->owner.load(), owner);
    EXPECT_EQ(central[kId].take(kSomeId), nullptr);
  }
  slab->owner.store(kOwnerDetached);
  publish(slab);
  publish(slab);
  EXPECT_EQ(central[kId].take(kSomeId), slab);
  EXPECT_EQ(central[kId].take(kSomeId), nullptr) << "in the index once, however often it was published";
}

TEST_F(CentralTest, ReleasesItsEmptySlabsAndKeepsTheOthers) {
  constexpr ClassId kId = class_of(176);
  Slab* kept = full_slab(kId);
  central[kId].add(make_slab(kId, kOwnerMoving));
  central[kId].add(kept);
  central[kId].add(make_slab(kId, kOwnerMoving));
  central[kId].release_empty();
  EXPECT_EQ(slabs(kId), 1U);
  EXPECT_EQ(central[kId].take(kSomeId), kept);
}

TEST_F(CentralTest, ServesObjectsOneByOneFromASharedSlab) {
  constexpr ClassId kId = class_of(192);
  const std::size_t count = 2 * kSizeClasses[kId].groups * kGroupObjects + 3;
  std::set<void*> objects;
  for (std::size_t i = 0; i < count; ++i) {
    void* object = central[kId].allocate_shared(kId);
    ASSERT_NE(object, nullptr);
    ASSERT_TRUE(objects.insert(object).second) << "given twice";
    std::memset(object, 0xAB, 192);
  }
  EXPECT_EQ(slabs(kId), 3U);
  EXPECT_EQ(testing::snapshot().classes[kId].live, count);
  for (void* object : objects) brimful_free(object);
  alloc::trim();
  EXPECT_EQ(testing::snapshot().classes[kId].live, 0U);
  EXPECT_EQ(slabs(kId), 0U);
}

TEST_F(CentralTest, LetsAContextGoOnWithWhatAnotherFreed) {
  constexpr ClassId kId = class_of(240);
  const std::size_t count = kSizeClasses[kId].groups * kGroupObjects;
  std::vector<void*> objects;
  for (std::size_t i = 0; i < count; ++i) objects.push_back(brimful_malloc(240));
  void* other = brimful_malloc(240);  // from a second slab: the first, full, is nobody's now
  std::set<void*> freed(objects.begin(), objects.begin() + static_cast<long>(count / 2));
  std::thread([&freed] {
    for (void* object : freed) brimful_free(object);
  }).join();
  EXPECT_EQ(slabs(kId), 2U);
  std::thread([&freed, count] {
    for (std::size_t i = 0; i < count / 2; ++i) EXPECT_EQ(freed.count(brimful_malloc(240)), 1U);
  }).join();
  EXPECT_EQ(slabs(kId), 2U) << "a published slab serves whoever needs memory";
  brimful_free(other);
}

TEST_F(CentralTest, HandsOutSlabsOfTheOwnNodeFirst) {
  constexpr ClassId kId = class_of(5120);
  testing::FakeOs os;
  Slab* slabs_of[3] = {};
  for (std::uint32_t node = 0; node < 3; ++node) {
    os.node = node;
    slabs_of[node] = make_slab(kId, kOwnerMoving);
    EXPECT_EQ(slabs_of[node]->node, node);
    central[kId].add(slabs_of[node]);
  }
  os.node = 2;
  EXPECT_EQ(central[kId].take(kSomeId), slabs_of[2]);
  os.node = 1;
  EXPECT_EQ(central[kId].take(kSomeId), slabs_of[1]);
  EXPECT_EQ(central[kId].take(kSomeId), slabs_of[0]) << "another node's is better than new memory";
  EXPECT_EQ(central[kId].take(kSomeId), nullptr);
  for (Slab* slab : slabs_of) release_slab(slab);
}

TEST_F(CentralTest, ReleasesEmptySlabsOfEveryNode) {
  constexpr ClassId kId = class_of(6144);
  testing::FakeOs os;
  for (std::uint32_t node = 0; node < os::kMaxNodes; ++node) {
    os.node = node;
    central[kId].add(make_slab(kId, kOwnerMoving));
  }
  EXPECT_EQ(slabs(kId), os::kMaxNodes);
  central[kId].release_empty();
  EXPECT_EQ(slabs(kId), 0U);
  EXPECT_EQ(central[kId].take(kSomeId), nullptr);
}

}  // namespace
}  // namespace brimful::slots
