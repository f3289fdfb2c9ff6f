// SPDX-License-Identifier: MIT
//
// Compaction: what it gives back, what it leaves alone, that it ends, and the goal: after random churn to 30 % live,
// resident bytes at most 1.08 times the live ones.
#include <algorithm>
#include <chrono>
#include <random>

#include "handle_support.h"

namespace brimful::tests {
namespace {

struct Object {
  brimful_handle handle = 0;
  std::size_t bytes = 0;
  std::uint64_t seed = 0;
};

// Objects of 1 … 4096 bytes at random, filled.
class HandleChurn {
 public:
  HandleChurn(HandlePool& pool, std::size_t count) : pool_(pool), objects_(count) {
    for (Object& object : objects_) put(object);
  }
  void churn(std::size_t operations) {
    for (; operations != 0; --operations) {
      Object& object = objects_[random_() % objects_.size()];
      EXPECT_EQ(brimful_handle_free(*pool_, object.handle), BRIMFUL_HANDLE_OK);
      put(object);
    }
  }
  void leave(std::size_t percent) {
    std::shuffle(objects_.begin(), objects_.end(), random_);
    const std::size_t kept = objects_.size() * percent / 100;
    for (std::size_t i = kept; i < objects_.size(); ++i) brimful_handle_free(*pool_, objects_[i].handle);
    objects_.resize(kept);
  }
  std::vector<Object>& objects() { return objects_; }
  [[nodiscard]] bool is_intact() const {
    return std::all_of(objects_.begin(), objects_.end(),
                       [&](const Object& object) { return holds(*pool_, object.handle, object.bytes, object.seed); });
  }

 private:
  void put(Object& object) {
    object = {0, 1 + random_() % 4096, random_()};
    object.handle = pool_.alloc(object.bytes);
    EXPECT_TRUE(fill(*pool_, object.handle, object.bytes, object.seed));
  }

  HandlePool& pool_;
  std::vector<Object> objects_;
  std::mt19937_64 random_{7};
};

double held_to_live(const HandlePool& pool) {
  const brimful_handle_stats stats = pool.stats();
  return static_cast<double>(stats.held_bytes + stats.metadata_bytes) / static_cast<double>(stats.live_bytes);
}

TEST(HandleCompaction, LeavesAtMostEightPercentAboveLiveAfterChurnTo30Percent) {
  HandlePool pool(brimful_pool_host_linux());
  HandleChurn churn(pool, 100000);
  churn.churn(100000);
  churn.leave(30);
  EXPECT_GT(held_to_live(pool), 2);
  double longest_ms = 0;
  for (int more = 1; more != 0;) {
    const auto began = std::chrono::steady_clock::now();
    brimful_handle_compact(*pool, 16, &more);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    longest_ms = std::max(longest_ms, took.count());
  }
  EXPECT_LE(held_to_live(pool), 1.08);
  EXPECT_TRUE(churn.is_intact());
  EXPECT_EQ(pool.broken(), nullptr);
  EXPECT_LT(longest_ms, 100);  // the goal is 1 ms on a quiet machine, see docs/design/0022-handle-pool.md
}

TEST(HandleCompaction, GivesBackNothingWhereAllIsFull) {
  HandleHost host;
  HandlePool pool(host.table());
  const std::size_t slots = pool.class_for(2048).run_objects;
  for (std::size_t i = 0; i < 3 * slots; ++i) ASSERT_NE(pool.alloc(2048), 0);
  int more = 1;
  EXPECT_EQ(brimful_handle_compact(*pool, 0, &more), 0);
  EXPECT_EQ(more, 0);
  EXPECT_EQ(pool.stats().moved, 0);
}

TEST(HandleCompaction, GivesBackAsMuchAsItSays) {
  HandleHost host;
  HandlePool pool(host.table());
  HandleChurn churn(pool, 2000);
  churn.leave(20);
  const std::size_t before = host.held();
  const std::size_t given = pool.compact(5);
  EXPECT_GT(given, 0);
  EXPECT_EQ(before - host.held(), given);
  EXPECT_EQ(pool.stats().given_bytes, given);
  EXPECT_GT(pool.stats().moved, 0);
  EXPECT_TRUE(churn.is_intact());
}

TEST(HandleCompaction, MovesAtMostAsManyObjectsInAStepAsItMay) {
  HandleHost host;
  HandlePool pool(host.table());
  HandleChurn churn(pool, 2000);
  churn.leave(20);
  std::uint64_t moved = 0;
  for (int more = 1; more != 0;) {
    brimful_handle_compact(*pool, 3, &more);
    const std::uint64_t now = pool.stats().moved;
    ASSERT_LE(now - moved, 3);
    moved = now;
  }
  for (const brimful_handle_class_stats& one : pool.classes()) EXPECT_EQ(one.compactable, 0) << one.object_bytes;
}

TEST(HandleCompaction, LeavesMappedObjectsWhereTheyAreAndEndsAllTheSame) {
  HandleHost host;
  HandlePool pool(host.table());
  HandleChurn churn(pool, 3000);
  churn.leave(30);
  std::vector<std::pair<brimful_handle, void*>> mapped;
  for (std::size_t i = 0; i < churn.objects().size(); i += 3) {
    const Object& object = churn.objects()[i];
    void* pointer = nullptr;
    const auto mode = i % 2 == 0 ? BRIMFUL_HANDLE_READ : BRIMFUL_HANDLE_WRITE;
    ASSERT_EQ(brimful_handle_map(*pool, object.handle, mode, &pointer), BRIMFUL_HANDLE_OK);
    mapped.emplace_back(object.handle, pointer);
  }
  pool.compact(4);
  EXPECT_EQ(brimful_handle_count_mapped(*pool), mapped.size());
  EXPECT_EQ(pool.broken(), nullptr);
  const double with_mapped = held_to_live(pool);
  for (const auto& [handle, pointer] : mapped) {
    EXPECT_EQ(brimful_handle_unmap(*pool, handle), BRIMFUL_HANDLE_OK);
    void* now = nullptr;
    ASSERT_EQ(brimful_handle_map(*pool, handle, BRIMFUL_HANDLE_READ, &now), BRIMFUL_HANDLE_OK);
    EXPECT_EQ(now, pointer);
    EXPECT_EQ(brimful_handle_unmap(*pool, handle), BRIMFUL_HANDLE_OK);
  }
  EXPECT_TRUE(churn.is_intact());
  EXPECT_GT(pool.compact(4), 0);
  EXPECT_LT(held_to_live(pool), with_mapped);
  EXPECT_TRUE(churn.is_intact());
}

TEST(HandleCompaction, MovesALastFewObjectsToSlightlyLargerSlots) {
  HandleHost host;
  HandlePool pool(host.table());
  // Two classes of neighbours with a run each, nearly empty: one run is enough for both.
  std::vector<Object> objects;
  for (const std::size_t bytes : {std::size_t{3000}, std::size_t{3030}}) {
    std::vector<Object> filled;
    const std::size_t slots = pool.class_for(bytes).run_objects;
    for (std::size_t i = 0; i < slots; ++i) {
      filled.push_back({pool.alloc(bytes), bytes, bytes + i});
      ASSERT_TRUE(fill(*pool, filled.back().handle, bytes, filled.back().seed));
    }
    for (std::size_t i = 2; i < slots; ++i) brimful_handle_free(*pool, filled[i].handle);
    objects.insert(objects.end(), filled.begin(), filled.begin() + 2);
  }
  ASSERT_EQ(pool.class_for(3000).runs, 1);
  ASSERT_EQ(pool.class_for(3030).runs, 1);
  pool.compact();
  EXPECT_EQ(pool.class_for(3000).runs, 0);
  EXPECT_EQ(pool.class_for(3030).objects, 4);
  for (const Object& object : objects) {
    EXPECT_TRUE(holds(*pool, object.handle, object.bytes, object.seed));
    std::size_t bytes = 0;
    EXPECT_EQ(brimful_handle_size(*pool, object.handle, &bytes), BRIMFUL_HANDLE_OK);
    EXPECT_EQ(bytes, object.bytes);
  }
  EXPECT_EQ(pool.broken(), nullptr);
}

}  // namespace
}  // namespace brimful::tests
