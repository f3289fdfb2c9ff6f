// SPDX-License-Identifier: MIT
//
// The pools' lock: the mutex of one word that sync/mutex.h has, over the host's wait and wake instead of Linux' futex, so
// that it works where there is no operating system. Counted by its holders, under the lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "arch/spin.h"
#include "base/compiler.h"
#include "brimful/pool_host.h"

namespace brimful::pools {

class Lock {
 public:
  void lock(const brimful_pool_host& host) {
    std::uint32_t expected = 0;
    // pairs with: unlock() (the previous holder's writes)
    if (BRIMFUL_UNLIKELY(!state_.compare_exchange_strong(expected, 1, std::memory_order_acquire,
                                                         std::memory_order_relaxed))) {  // relaxed: reads nothing
      lock_contended(host);
    }
    ++stats_.acquisitions;
  }

  void unlock(const brimful_pool_host& host) {
    // pairs with: lock() (our writes)
    if (state_.exchange(0, std::memory_order_release) == 2) wake(host);
  }

  // The holder's to read.
  [[nodiscard]] const brimful_pool_lock_stats& stats() const { return stats_; }

 private:
  void lock_contended(const brimful_pool_host& host);
  void wake(const brimful_pool_host& host);

  std::atomic<std::uint32_t> state_{0};  // 0 free, 1 held, 2 held and somebody sleeps
  brimful_pool_lock_stats stats_{};      // written by the holder only
};

class LockGuard {
 public:
  LockGuard(Lock& lock, const brimful_pool_host& host) : lock_(lock), host_(host) { lock_.lock(host_); }
  ~LockGuard() { lock_.unlock(host_); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
  const brimful_pool_host& host_;
};

}  // namespace brimful::pools
