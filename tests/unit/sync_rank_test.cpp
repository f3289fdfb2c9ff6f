// SPDX-License-Identifier: MIT
//
// sync/rank.h: debug builds stop a thread that waits for locks in the wrong order, before it can be part of a deadlock.
#include "sync/rank.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/compiler.h"
#include "sync/mutex.h"

namespace brimful::sync {
namespace {

class LockOrder : public ::testing::Test {
 protected:
  void SetUp() override {
    if (BRIMFUL_DEBUG_CHECKS == 0) GTEST_SKIP() << "only debug builds keep what a thread holds";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }

  ContextMutex context;
  CentralMutex central;
  CentralMutex other_central;
  HeapMutex heap;
};

TEST_F(LockOrder, AllowsContextThenCentralThenHeap) {
  const MutexLock first(context);
  const MutexLock second(central);
  const MutexLock third(heap);
  EXPECT_EQ(heap.use().acquisitions, 1U);
}

TEST_F(LockOrder, DiesWhenALowerRankIsWaitedFor) {
  const auto wrong_order = [&] {
    const MutexLock first(heap);
    const MutexLock second(central);
  };
  EXPECT_DEATH(wrong_order(), "waits for a lock of rank central index while it holds one of rank heap");
}

TEST_F(LockOrder, DiesWhenTwoOfOneRankAreWaitedFor) {
  const auto two_classes = [&] {
    const MutexLock first(central);
    const MutexLock second(other_central);
  };
  EXPECT_DEATH(two_classes(), "waits for a lock of rank central index while it holds one of rank central index");
}

TEST_F(LockOrder, DiesWhenATriedLockIsHeldAndALowerOneWaitedFor) {
  const auto wrong_order = [&] {
    if (!heap.try_lock()) return;
    const MutexLock second(context);
  };
  EXPECT_DEATH(wrong_order(), "waits for a lock of rank context while it holds one of rank heap");
}

TEST_F(LockOrder, DiesWhenALockIsReleasedThatTheThreadDoesNotHold) { EXPECT_DEATH(heap.unlock(), "internal error"); }

TEST_F(LockOrder, AllowsTryingInAnyOrder) {
  const MutexLock first(heap);
  ASSERT_TRUE(central.try_lock());
  ASSERT_TRUE(context.try_lock());
  context.unlock();
  central.unlock();
}

TEST_F(LockOrder, ForgetsWhatIsReleased) {
  { const MutexLock first(heap); }
  const MutexLock second(context);
  ASSERT_TRUE(heap.try_lock());
  heap.reset();
  const MutexLock third(central);
}

TEST_F(LockOrder, IsEachThreadsOwn) {
  const MutexLock first(heap);
  std::thread([&] { const MutexLock second(context); }).join();
  EXPECT_EQ(context.use().acquisitions, 1U);
}

}  // namespace
}  // namespace brimful::sync
