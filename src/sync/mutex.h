// SPDX-License-Identifier: MIT
//
// Futex: a mutex of one word (Drepper, "Futexes Are Tricky", mutex 2): 0 free, 1 held, 2 held with waiters. No
// allocation, no owner record, works in shared and static builds alike. Used on slow paths only.
//
// Mutex<rank>: a futex, its place in the order of locks (sync/rank.h) and its counters (sync/counters.h) behind the word,
// so that the line that is fetched for the lock holds what is counted. Every lock of the library is one. What that costs
// where nobody else wants the lock is a load, an add and a store; the clock is read only by those who wait.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/compiler.h"
#include "sync/counters.h"
#include "sync/rank.h"

namespace brimful::sync {

class Futex {
 public:
  // Never waits. true when it is now ours.
  bool try_lock() {
    std::uint32_t expected = 0;
    // pairs with: unlock() (the previous holder's writes)
    return state_.compare_exchange_strong(expected, 1, std::memory_order_acquire,
                                          std::memory_order_relaxed);  // relaxed: a failed attempt reads nothing
  }

  // Waits until it is ours. For after a failed try_lock(). Returns how often the thread slept.
  std::uint64_t wait();

  // For fork(), which waits and takes in two steps. Never waits. `slept`: wait_for_a_while() came before, and may have used
  // up the one wake-up of an unlock while others sleep on: then unlock() has to wake again. true when it is now ours.
  bool try_lock_after_wait(bool slept) {
    std::uint32_t expected = 0;
    // pairs with: unlock() (the previous holder's writes)
    return state_.compare_exchange_strong(expected, slept ? 2 : 1, std::memory_order_acquire,
                                          std::memory_order_relaxed);  // relaxed: a failed attempt reads nothing
  }

  // Waits until it was free once, for a millisecond at most. Takes nothing. A handler of the calling thread may take it
  // meanwhile, for the thread: then nobody would ever wake this one.
  void wait_for_a_while();

  void unlock() {
    // pairs with: wait(), try_lock() (our writes)
    if (state_.exchange(0, std::memory_order_release) == 2) wake_one();
  }

  // In the child of a fork, whose only thread holds every lock: forget waiters that were not copied.
  void reset() {
    state_.store(0, std::memory_order_relaxed);  // relaxed: the process has one thread
  }

 private:
  void wake_one();

  std::atomic<std::uint32_t> state_{0};
};

// The slow half of Mutex::lock(), the same for every rank.
void lock_contended(Futex& futex, LockCounters& counters);

template <Rank kRank>
class Mutex {
  friend struct ::brimful::Anatomy;

 public:
  void lock() {
    wait_for(kRank);
    if (BRIMFUL_LIKELY(futex_.try_lock())) {
      counters_.count();
    } else {
      lock_contended(futex_, counters_);
    }
    hold(kRank);
  }

  // Never waits. true when the mutex is now ours.
  bool try_lock() {
    if (BRIMFUL_UNLIKELY(!futex_.try_lock())) {
      counters_.count_busy();
      return false;
    }
    counters_.count();
    hold(kRank);
    return true;
  }

  // For fork(), which holds others of this rank: neither checked nor counted, because a sweep over every lock says nothing
  // about the use of this one. Never waits. nullptr when the mutex is now ours, else what to wait for; `slept_on`: what
  // the thread waited for before, in vain.
  Futex* try_lock_for_fork(const Futex* slept_on) {
    if (!futex_.try_lock_after_wait(slept_on == &futex_)) return &futex_;
    hold(kRank);
    return nullptr;
  }

  void unlock() {
    release(kRank);
    futex_.unlock();
  }

  // In the child of a fork, whose only thread holds every lock: unlocks, and forgets waiters that were not copied. The
  // counters go on.
  void reset() {
    release(kRank);
    futex_.reset();
  }

  // Takes no lock.
  [[nodiscard]] LockUse use() const { return counters_.read(); }

 private:
  Futex futex_;  // first: the fast paths look at a context's
  LockCounters counters_;
};

using HeapListMutex = Mutex<Rank::kHeapList>;
using UserHeapMutex = Mutex<Rank::kUserHeap>;
using ContextMutex = Mutex<Rank::kContext>;
using CentralMutex = Mutex<Rank::kCentral>;
using SampleMutex = Mutex<Rank::kSamples>;
using HeapMutex = Mutex<Rank::kHeap>;
static_assert(sizeof(Futex) == 4 && sizeof(ContextMutex) == 48);

template <typename Lock>
class MutexLock {
 public:
  explicit MutexLock(Lock& mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Lock& mutex_;
};

}  // namespace brimful::sync
