// SPDX-License-Identifier: MIT
//
// TLSF under a lock of the caller's: each call locks and unlocks once, and threads that share a pool lose nothing.
#include "brimful/tlsf_lock.h"

#include <mutex>
#include <thread>

#include "tlsf_fixture.h"

namespace {

struct CountedLock {
  std::mutex mutex;
  int locks = 0;
  int unlocks = 0;

  static void lock(void* context) {
    auto* const self = static_cast<CountedLock*>(context);
    self->mutex.lock();
    ++self->locks;
  }
  static void unlock(void* context) {
    auto* const self = static_cast<CountedLock*>(context);
    ++self->unlocks;
    self->mutex.unlock();
  }
};

TEST(TlsfLock, EachCallLocksOnceAndUnlocksOnce) {
  const TlsfPool pool(65536);
  CountedLock lock;
  const brimful_tlsf_locked locked = {pool, CountedLock::lock, CountedLock::unlock, &lock};
  int calls = 0;
  const auto once = [&] {
    ++calls;
    EXPECT_EQ(lock.locks, calls);
    EXPECT_EQ(lock.unlocks, calls);
  };
  void* const block = brimful_tlsf_locked_malloc(&locked, 100);
  once();
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(brimful_tlsf_locked_realloc(&locked, block, 200), block);
  once();
  brimful_tlsf_locked_free(&locked, block);
  once();
  EXPECT_NE(brimful_tlsf_locked_calloc(&locked, 10, 10), nullptr);
  once();
  EXPECT_TRUE(is_aligned(brimful_tlsf_locked_aligned_alloc(&locked, 256, 10), 256));
  once();
  EXPECT_EQ(brimful_tlsf_locked_malloc(&locked, 1 << 20), nullptr);
  once();
  std::byte region[1024];
  EXPECT_TRUE(brimful_tlsf_locked_add_region(&locked, region, sizeof(region)));
  once();
  EXPECT_TRUE(brimful_tlsf_locked_remove_region(&locked, region));
  once();
  brimful_tlsf_stats stats{};
  stats.size = sizeof(stats);
  brimful_tlsf_locked_get_stats(&locked, &stats);
  once();
  EXPECT_EQ(stats.live_blocks, 2);
  std::size_t blocks = 0;
  brimful_tlsf_locked_walk(
      &locked, [](void* context, void*, std::size_t, bool) { return ++*static_cast<std::size_t*>(context) > 0; },
      &blocks);
  once();
  EXPECT_EQ(blocks, stats.live_blocks + stats.free_blocks);
  EXPECT_EQ(brimful_tlsf_locked_check(&locked, nullptr), nullptr);
  once();
  brimful_tlsf_locked_reset(&locked);
  once();
}

TEST(TlsfLock, ThreadsShareAPool) {
  const TlsfPool pool(1 << 18);
  CountedLock lock;
  const brimful_tlsf_locked locked = {pool, CountedLock::lock, CountedLock::unlock, &lock};
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([&locked, id] {
      std::vector<void*> blocks(32);
      for (int i = 0; i < 3000; ++i) {
        void*& block = blocks[(i * 7 + id) % 32];
        EXPECT_TRUE(block == nullptr || is_painted(block, 100, id));
        block = brimful_tlsf_locked_realloc(&locked, block, 100 + (i * 31) % 500);
        ASSERT_NE(block, nullptr);
        paint(block, 100, id);
      }
      for (void* const block : blocks) brimful_tlsf_locked_free(&locked, block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.stats().live_blocks, 0);
  EXPECT_EQ(pool.stats().free_blocks, 1);
}

}  // namespace
