// SPDX-License-Identifier: MIT
//
// A mutex of one word on a futex (Drepper, "Futexes Are Tricky", mutex 2): 0 free, 1 held, 2 held with waiters. No
// allocation, no owner record, works in shared and static builds alike. Used on slow paths only.
//
// Ranks, lowest first; a thread takes them in this order and never the other way: context (try only) → central index
// of a class → heap. fork() takes them all in the same order.
#pragma once

#include <atomic>
#include <cstdint>

namespace brimful::sync {

class Mutex {
 public:
  void lock() {
    std::uint32_t expected = 0;
    // pairs with: unlock() (the previous holder's writes)
    if (!state_.compare_exchange_strong(expected, 1, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {  // relaxed: a failed attempt reads nothing
      lock_contended();
    }
  }

  // Never waits. true when the mutex is now ours.
  bool try_lock() {
    std::uint32_t expected = 0;
    // pairs with: unlock() (the previous holder's writes)
    return state_.compare_exchange_strong(expected, 1, std::memory_order_acquire,
                                          std::memory_order_relaxed);  // relaxed: a failed attempt reads nothing
  }

  void unlock() {
    // pairs with: lock(), try_lock() (our writes)
    if (state_.exchange(0, std::memory_order_release) == 2) wake_one();
  }

  // In the child of a fork, whose only thread holds every lock: forget waiters that were not copied.
  void reset() {
    state_.store(0, std::memory_order_relaxed);  // relaxed: the process has one thread
  }

 private:
  void lock_contended();
  void wake_one();

  std::atomic<std::uint32_t> state_{0};
};

class MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace brimful::sync
