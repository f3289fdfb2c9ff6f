// SPDX-License-Identifier: MIT
//
// The pools' lock: excludes, counts, sleeps and wakes through the host's calls, and works without them.
#include "pools/lock.h"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace brimful::pools {
namespace {

constexpr int kThreads = 4;
constexpr std::uint64_t kTurns = 20000;

// Adds under the lock from several threads; returns the sum that is left.
std::uint64_t add_in_turns(Lock& lock, const brimful_pool_host& host) {
  std::uint64_t sum = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
        const LockGuard guard(lock, host);
        ++sum;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return sum;
}

TEST(PoolLock, ExcludesAndCountsEachAcquisition) {
  Lock lock;
  EXPECT_EQ(add_in_turns(lock, *brimful_pool_host_linux()), kThreads * kTurns);
  EXPECT_EQ(lock.stats().acquisitions, kThreads * kTurns);
  EXPECT_LE(lock.stats().contended, lock.stats().acquisitions);
}

TEST(PoolLock, WorksWhereTheHostCannotWait) {
  brimful_pool_host host = *brimful_pool_host_linux();
  host.wait = nullptr;
  host.wake = nullptr;
  host.now_ns = nullptr;
  Lock lock;
  EXPECT_EQ(add_in_turns(lock, host), kThreads * kTurns);
  EXPECT_EQ(lock.stats().sleeps, 0);
  EXPECT_EQ(lock.stats().wait_ns, 0);
}

TEST(PoolLock, SleepsWhileHeldForLongAndIsWoken) {
  const brimful_pool_host& host = *brimful_pool_host_linux();
  Lock lock;
  lock.lock(host);
  std::thread waiter([&] {
    lock.lock(host);
    lock.unlock(host);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  lock.unlock(host);
  waiter.join();
  EXPECT_EQ(lock.stats().contended, 1);
  EXPECT_GE(lock.stats().sleeps, 1);
  EXPECT_GT(lock.stats().wait_ns, 1000000);
}

}  // namespace
}  // namespace brimful::pools
