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
  HeapMutex mutex;
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
  HeapMutex mutex;
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
  HeapMutex mutex;
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
  HeapMutex mutex;
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
  HeapMutex mutex;
  mutex.lock();
  mutex.reset();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(Mutex, CountsAcquisitionsThatNobodyDisputes) {
  HeapMutex mutex;
  for (int i = 0; i < 5; ++i) {
    const MutexLock guard(mutex);
  }
  ASSERT_TRUE(mutex.try_lock());
  mutex.unlock();
  const LockUse use = mutex.use();
  EXPECT_EQ(use.acquisitions, 6U);
  EXPECT_EQ(use.contended, 0U);
  EXPECT_EQ(use.sleeps, 0U);
  EXPECT_EQ(use.wait_ns, 0U);
  EXPECT_EQ(use.busy, 0U);
}

TEST(Mutex, CountsWhoWaitsHowOftenItSleepsAndHowLong) {
  HeapMutex mutex;
  mutex.lock();
  std::thread waiter([&] { const MutexLock guard(mutex); });
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(mutex.use().acquisitions, 1U) << "who waits is counted when the wait is over";
  mutex.unlock();
  waiter.join();
  const LockUse use = mutex.use();
  EXPECT_EQ(use.acquisitions, 2U);
  EXPECT_EQ(use.contended, 1U);
  EXPECT_GE(use.sleeps, 1U);
  // The waiter may have started late on a busy machine, but not by all of it.
  EXPECT_GE(use.wait_ns, 1'000'000U);
  EXPECT_LE(use.wait_ns, 60'000'000'000U);
}

TEST(Mutex, CountsAttemptsThatFindItHeldAsBusyOnly) {
  HeapMutex mutex;
  mutex.lock();
  std::thread([&] {
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(mutex.try_lock());
  }).join();
  mutex.unlock();
  const LockUse use = mutex.use();
  EXPECT_EQ(use.busy, 3U);
  EXPECT_EQ(use.acquisitions, 1U);
  EXPECT_EQ(use.contended, 0U);
}

TEST(Mutex, LosesNoCountAmongManyThreads) {
  HeapMutex mutex;
  std::atomic<std::uint64_t> taken{0};
  std::atomic<std::uint64_t> busy{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        if (i % 3 == 0 && !mutex.try_lock()) {
          ++busy;
          continue;
        }
        if (i % 3 != 0) mutex.lock();
        ++taken;
        mutex.unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mutex.use().acquisitions, taken.load());
  EXPECT_EQ(mutex.use().busy, busy.load());
}

TEST(Mutex, KeepsItsCountsWhenResetAndGoesOnCounting) {
  HeapMutex mutex;
  { const MutexLock guard(mutex); }
  ASSERT_EQ(mutex.try_lock_for_fork(nullptr), nullptr);
  mutex.reset();
  EXPECT_EQ(mutex.use().acquisitions, 1U) << "fork is not counted";
  { const MutexLock guard(mutex); }
  EXPECT_EQ(mutex.use().acquisitions, 2U);
}

TEST(Mutex, ForkIsToldWhatToWaitForAndWaitsForALimitedTime) {
  HeapMutex mutex;
  mutex.lock();
  Futex* busy = mutex.try_lock_for_fork(nullptr);
  ASSERT_NE(busy, nullptr);
  for (int i = 0; i < 3; ++i) busy->wait_for_a_while();  // nobody unlocks: a wait without end hangs here
  EXPECT_EQ(mutex.try_lock_for_fork(busy), busy);
  mutex.unlock();
  EXPECT_EQ(mutex.try_lock_for_fork(busy), nullptr);
  mutex.unlock();
}

TEST(Mutex, ForkWakesThreadsWhoseWakeUpItUsedUp) {
  HeapMutex mutex;
  mutex.lock();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) threads.emplace_back([&] { const MutexLock guard(mutex); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // long enough that they sleep
  mutex.unlock();  // wakes one; as if that were the forking thread, which then takes the lock
  Futex* busy = nullptr;
  for (;;) {
    Futex* now = mutex.try_lock_for_fork(busy);
    if (now == nullptr) break;
    busy = now;
    busy->wait_for_a_while();
  }
  mutex.unlock();
  for (std::thread& thread : threads) thread.join();  // a lost wake-up hangs here
}

}  // namespace
}  // namespace brimful::sync
