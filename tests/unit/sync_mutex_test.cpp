// SPDX-License-Identifier: MIT
//
// sync/mutex.h. The counter under the lock is plain, so that the thread sanitizer sees a lock that does not order.
#include "sync/mutex.h"

#include <gtest/gtest.h>

#include <errno.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace brimful::sync {
namespace {

TEST(Mutex, LetsOneThreadInAtATime) {
  constexpr int kRounds = 20000;
  Mutex mutex;
  long counter = 0;
  int inside = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        const MutexLock guard(mutex);
        EXPECT_EQ(++inside, 1);
        ++counter;
        if (i % 1000 == 0) std::this_thread::yield();  // so that others find it held
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, 4 * kRounds);
}

TEST(Mutex, TryLockNeverWaitsAndNeverSharesTheLock) {
  Mutex mutex;
  ASSERT_TRUE(mutex.try_lock());
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  mutex.unlock();
  ASSERT_TRUE(mutex.try_lock());
  mutex.unlock();
  long counter = 0;
  std::atomic<long> entered{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        if (!mutex.try_lock()) continue;
        ++counter;
        mutex.unlock();
        entered.fetch_add(1, std::memory_order_relaxed);  // relaxed: read after join
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, entered.load());
  EXPECT_GT(counter, 0);
}

TEST(Mutex, WakesEveryThreadThatSleepsOnIt) {
  Mutex mutex;
  mutex.lock();
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const MutexLock guard(mutex);
      done.fetch_add(1);
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // long enough that they sleep
  EXPECT_EQ(done.load(), 0);
  mutex.unlock();
  for (std::thread& thread : threads) thread.join();  // a lost wake-up hangs here
  EXPECT_EQ(done.load(), 4);
}

TEST(Mutex, LeavesErrnoAloneWhenItWaits) {
  Mutex mutex;
  mutex.lock();
  std::thread waiter([&] {
    errno = 4711;
    mutex.lock();
    mutex.unlock();
    EXPECT_EQ(errno, 4711);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  errno = 4712;
  mutex.unlock();
  EXPECT_EQ(errno, 4712);
  waiter.join();
}

TEST(Mutex, ForgetsItsHolderAndWaitersWhenReset) {
  Mutex mutex;
  mutex.lock();
  mutex.reset();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

}  // namespace
}  // namespace brimful::sync
