// SPDX-License-Identifier: MIT
//
// slots/magazine.h: what a context keeps of others' objects, when it tells of them, and that a second free of what it keeps
// is found. In the front end with a context per thread; other contexts' slabs are made up by their owner number.
#include "slots/magazine.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "brimful/brimful.h"
#include "meta/block.h"
#include "slots/front_end.h"
#include "slots/slab.h"
#include "slots/thread.h"
#include "slots_test_support.h"

namespace brimful::slots {
namespace {

constexpr std::uint32_t kSomeId = 1234;  // no thread has it

class MagazineTest : public ::testing::Test {
 protected:
  MagazineTest() { prepare(); }

  // A slab of another context whose objects are all live.
  static Slab* foreign_slab(ClassId id, std::uint32_t owner = kSomeId) {
    Slab* slab = make_slab(id, owner);
    for (unsigned g = 0; g < slab->groups; ++g) slab->word(g).store(0);
    return slab;
  }
  static void free_object(Slab* slab, std::uint64_t index) {
    brimful_free(reinterpret_cast<void*>(slab->object(index)));
  }
  static std::uint32_t kept(ClassId id) { return current_context()->counts[id]; }
  static std::uint64_t told(Slab* slab, unsigned group) { return slab->remote(group).load(); }
  static std::uint64_t events(Event event) { return count_events()[static_cast<std::size_t>(event)]; }
  static std::string twice(Slab* slab, std::uint64_t index) {
    char line[64];
    std::snprintf(line, sizeof line, "double free: free\\(0x%llx\\)",
                  static_cast<unsigned long long>(slab->object(index)));
    return line;
  }
};

TEST_F(MagazineTest, HoldsLessOfLargeObjectsAndWithManyContexts) {
  const auto limit = [](std::size_t bytes) { return unsigned{arch::brimful_block.limits[class_of(bytes)]}; };
  set_magazine_limits(1);
  EXPECT_EQ(limit(16), kMagazineObjects);
  EXPECT_EQ(limit(2048), kMagazineObjects);
  EXPECT_EQ(limit(8192), 8U) << "64 KiB";
  EXPECT_EQ(limit(32768), 2U);
  set_magazine_limits(64);
  EXPECT_EQ(limit(16), kMagazineObjects);
  set_magazine_limits(128);
  EXPECT_EQ(limit(16), kMagazineObjects / 2);
  EXPECT_EQ(limit(8192), 4U);
  EXPECT_EQ(limit(32768), 2U) << "never below two";
  set_magazine_limits(4000);
  for (std::size_t c = 0; c < kClassCount; ++c) EXPECT_EQ(arch::brimful_block.limits[c], 2U);
  set_magazine_limits(1);
}

TEST_F(MagazineTest, KeepsTheSlabsOfItsObjectsAndSaysNothing) {
  constexpr ClassId kId = class_of(96);
  Slab* slab = foreign_slab(kId);
  for (std::uint64_t i = 0; i < 5; ++i) free_object(slab, i);
  EXPECT_EQ(kept(kId), 5U);
  EXPECT_EQ(told(slab, 0), 0U);
  EXPECT_EQ(slab->owner.load(), kSomeId) << "no mark";
  EXPECT_FALSE(is_all_free(slab));
}

TEST_F(MagazineTest, TellsOneMaskForEachGroupOfEachSlab) {
  constexpr ClassId kId = class_of(112);
  Slab* first = foreign_slab(kId);
  Slab* second = foreign_slab(kId);
  const std::uint64_t before = events(Event::kTell);
  for (const std::uint64_t i : {0U, 70U, 3U, 65U, 5U}) {
    free_object(first, i);
    free_object(second, i + 1);
  }
  flush_magazine(current_context(), kId);
  EXPECT_EQ(events(Event::kTell), before + 4);
  EXPECT_EQ(told(first, 0), 0b101001U);
  EXPECT_EQ(told(first, 1), 0b1000010U);
  EXPECT_EQ(told(second, 0), 0b1010010U);
  EXPECT_EQ(told(second, 1), 0b10000100U);
  EXPECT_EQ(first->owner.load(), kSomeId | kOwnerHasRemote);
  EXPECT_EQ(kept(kId), 0U);
}

TEST_F(MagazineTest, IsEmptiedWhenItIsFullAndTakesTheNext) {
  constexpr ClassId kId = class_of(128);
  Slab* slab = foreign_slab(kId);
  for (std::uint64_t i = 0; i < kMagazineObjects; ++i) free_object(slab, i);
  EXPECT_EQ(kept(kId), kMagazineObjects);
  EXPECT_EQ(told(slab, 0), 0U);
  free_object(slab, kMagazineObjects);
  EXPECT_EQ(kept(kId), 1U);
  EXPECT_EQ(told(slab, 0), 0xFFFFFFFFU);
}

TEST_F(MagazineTest, FindsASecondFreeOfAnyOfItsObjects) {
  constexpr ClassId kId = class_of(144);
  Slab* slab = foreign_slab(kId);
  const std::uint64_t most = arch::brimful_block.limits[kId];
  for (std::uint64_t i = 0; i < most; ++i) free_object(slab, i);
  for (const std::uint64_t i : {std::uint64_t{0}, most / 2, most - 1}) {
    EXPECT_DEATH(free_object(slab, i), twice(slab, i));
  }
}

TEST_F(MagazineTest, FindsASecondFreeWhenThereIsRoomForMore) {
  constexpr ClassId kId = class_of(160);
  Slab* slab = foreign_slab(kId);
  free_object(slab, 7);
  EXPECT_DEATH(free_object(slab, 7), twice(slab, 7));
}

TEST_F(MagazineTest, TakesNoObjectThatItsSlabSaysIsFree) {
  constexpr ClassId kId = class_of(176);
  Slab* slab = foreign_slab(kId);
  slab->word(0).store(1);
  slab->offered(0).store(2);
  slab->remote(0).store(4);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_DEATH(free_object(slab, i), twice(slab, i));
  free_object(slab, 3);
  EXPECT_EQ(kept(kId), 1U);
}

TEST_F(MagazineTest, ReportsWhatTheOwnerFreedMeanwhileWhenItTells) {
  constexpr ClassId kId = class_of(192);
  Slab* slab = foreign_slab(kId);
  free_object(slab, 9);
  slab->word(0).store(std::uint64_t{1} << 9);
  EXPECT_DEATH(flush_magazine(current_context(), kId), twice(slab, 9));
}

TEST_F(MagazineTest, ReportsAnObjectWhoseSlabIsGoneWhenItTells) {
  constexpr ClassId kId = class_of(208);
  Slab* slab = foreign_slab(kId);
  free_object(slab, 9);
  for (unsigned g = 0; g < slab->groups; ++g) slab->word(g).store(kAllFree);  // its owner freed it, too
  release_slab(slab);
  EXPECT_DEATH(flush_magazine(current_context(), kId), "its memory was already given back");
}

TEST_F(MagazineTest, IsForSlabsOfOthersAndOfNobody) {
  constexpr ClassId kId = class_of(224);
  const std::uint32_t own = current_context()->id;
  Slab* slab = foreign_slab(kId);
  std::uint64_t next = 0;
  slab->last_owner = kSomeId;
  for (const std::uint32_t owner : {kSomeId, kSomeId | kOwnerHasRemote, kOwnerDetached, kOwnerCentral, kOwnerMoving}) {
    slab->owner.store(owner);
    EXPECT_TRUE(keep(current_context(), slab, next++)) << owner;
  }
  for (const std::uint32_t owner : {own, own | kOwnerHasRemote, kOwnerShared, kOwnerReleased}) {
    slab->owner.store(owner);
    EXPECT_FALSE(keep(current_context(), slab, next++)) << owner;
  }
  slab->owner.store(kOwnerDetached);
  slab->last_owner = own;
  EXPECT_FALSE(keep(current_context(), slab, next)) << "it should be adopted";
  EXPECT_EQ(kept(kId), 5U);
}

TEST_F(MagazineTest, IsEmptiedByTheExitOfItsThread) {
  constexpr ClassId kId = class_of(240);
  Slab* slab = foreign_slab(kId);
  std::thread([slab] {
    free_object(slab, 1);
    free_object(slab, 2);
    EXPECT_EQ(told(slab, 0), 0U);
  }).join();
  EXPECT_EQ(told(slab, 0), 6U);
}

TEST_F(MagazineTest, IsEmptiedWithAllOthersWhenItsContextIs) {
  Slab* small = foreign_slab(class_of(16));
  Slab* large = foreign_slab(class_of(32768));
  free_object(small, 1);
  free_object(large, 1);
  Context* context = current_context();
  context->lock.lock();
  release_context(context);
  context->lock.unlock();
  EXPECT_EQ(told(small, 0), 2U);
  EXPECT_EQ(told(large, 0), 2U);
  EXPECT_EQ(kept(class_of(16)) + kept(class_of(32768)), 0U);
  free_object(small, 2);
  EXPECT_EQ(kept(class_of(16)), 1U) << "and goes on";
}

TEST_F(MagazineTest, IsEmptiedBeforeItsContextTakesASlabFromTheIndex) {
  constexpr ClassId kId = class_of(304);
  std::vector<void*> objects;
  std::thread([&objects] {
    for (int i = 0; i < 20; ++i) objects.push_back(brimful_malloc(304));
    brimful_free(objects[0]);
  }).join();
  brimful_free(objects[5]);
  EXPECT_EQ(kept(kId), 1U);
  void* mine = brimful_malloc(304);  // of the same slab, which is ours now
  EXPECT_EQ(kept(kId), 0U);
  EXPECT_DEATH(brimful_free(objects[5]), "double free: free\\(0x") << mine;
}

}  // namespace
}  // namespace brimful::slots
