// SPDX-License-Identifier: MIT
//
// slots/events.h: each kind of event is counted where it happens, and hits are not.
#include "slots/events.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "alloc/allocate.h"
#include "brimful/brimful.h"
#include "slots_test_support.h"

namespace brimful::slots {
namespace {

// What happened while `action` ran.
template <class Action>
EventCounts events_of(Action action) {
  const EventCounts before = count_events();
  action();
  EventCounts now = count_events();
  for (std::size_t i = 0; i < kEventCount; ++i) now[i] -= before[i];
  return now;
}

std::uint64_t of(const EventCounts& counts, Event event) { return counts[static_cast<std::size_t>(event)]; }

std::vector<void*> allocate(std::size_t count, std::size_t bytes) {
  std::vector<void*> objects;
  for (std::size_t i = 0; i < count; ++i) objects.push_back(brimful_malloc(bytes));
  return objects;
}

void free_all(const std::vector<void*>& objects) {
  for (void* object : objects) brimful_free(object);
}

constexpr std::size_t objects_of_a_slab(std::size_t bytes) {
  return kSizeClasses[class_of(bytes)].groups * kGroupObjects;
}

TEST(Events, HitsAreNotCounted) {
  brimful_free(brimful_malloc(80));
  const EventCounts events = events_of([] {
    // Fewer than a young slab offers at a time.
    for (int i = 0; i < 30; ++i) brimful_free(brimful_malloc(80));
  });
  EXPECT_EQ(events, EventCounts());
}

TEST(Events, NewSlabsAndFullOnesAreCounted) {
  constexpr std::size_t kBytes = 96;
  std::vector<void*> objects;
  const EventCounts events = events_of([&objects] { objects = allocate(3 * objects_of_a_slab(kBytes), kBytes); });
  EXPECT_EQ(of(events, Event::kRefillNew), 3U);
  EXPECT_EQ(of(events, Event::kDetach), 2U) << "the third is current";
  EXPECT_EQ(of(events, Event::kReleaseSlab), 0U);
  const EventCounts frees = events_of([&objects] { free_all(objects); });
  EXPECT_EQ(of(frees, Event::kAdopt), 2U) << "the first free of each detached slab";
  EXPECT_GE(of(frees, Event::kReleaseSlab), 2U);
  EXPECT_EQ(of(frees, Event::kTell), 0U);
}

TEST(Events, FreesOfAnotherThreadsObjectsAreKeptAndTold) {
  constexpr std::size_t kBytes = 112;
  const std::vector<void*> objects = allocate(objects_of_a_slab(kBytes) / 2, kBytes);
  const EventCounts events = events_of([&objects] { std::thread([&objects] { free_all(objects); }).join(); });
  EXPECT_GE(of(events, Event::kFlush), 1U) << "a full magazine";
  EXPECT_LE(of(events, Event::kSlowFree), objects.size() / 8) << "the others are hits";
  EXPECT_GE(of(events, Event::kTell), objects.size() / kGroupObjects);
  EXPECT_LE(of(events, Event::kTell), objects.size() / 8) << "many objects to a tell";
  const EventCounts later = events_of([] { free_all(allocate(objects_of_a_slab(kBytes), kBytes)); });
  EXPECT_GE(of(later, Event::kCollect), objects.size() / kGroupObjects) << "the owner takes what it was told";
}

TEST(Events, SlabsThatAnotherContextGoesOnWithAreCounted) {
  constexpr std::size_t kBytes = 240;
  const std::vector<void*> objects = allocate(objects_of_a_slab(kBytes), kBytes);
  void* other = brimful_malloc(kBytes);  // the first slab is full and nobody's
  const EventCounts frees = events_of([&objects] { std::thread([&objects] { free_all(objects); }).join(); });
  EXPECT_EQ(of(frees, Event::kPublish), 1U);
  EXPECT_GE(of(frees, Event::kCentralAdd), 1U);
  brimful_free(other);
}

TEST(Events, ASlabOfTheIndexThatBecomesCurrentIsCounted) {
  constexpr std::size_t kBytes = 288;
  std::vector<void*> kept;
  std::thread([&kept] {
    kept = allocate(40, kBytes);
    for (int i = 0; i < 20; ++i) {
      brimful_free(kept.back());
      kept.pop_back();
    }
  }).join();
  void* object = nullptr;
  const EventCounts events = events_of([&object] { object = brimful_malloc(kBytes); });
  EXPECT_EQ(of(events, Event::kRefillCentral), 1U);
  EXPECT_EQ(of(events, Event::kRefillNew), 0U);
  brimful_free(object);
  free_all(kept);
}

TEST(Events, AreInTheSnapshot) {
  free_all(allocate(objects_of_a_slab(320), 320));
  EXPECT_EQ(testing::snapshot().events, count_events());
}

}  // namespace
}  // namespace brimful::slots
