// SPDX-License-Identifier: MIT
//
// The slow half of sync/mutex.h: a short bounded spin, then sleep.
#include "sync/mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/spin.h"
#include "os/errno_guard.h"

namespace brimful::sync {
namespace {

// A critical section here lasts 50–500 ns; waking a sleeper costs 5 µs and more.
constexpr int kSpins = 100;

}  // namespace

void Mutex::lock_contended() {
  const os::ErrnoGuard guard;
  for (int i = 0; i < kSpins; ++i) {
    arch::spin_hint();
    // relaxed: only whether an attempt is worth the cache line
    if (state_.load(std::memory_order_relaxed) != 0) continue;
    std::uint32_t expected = 0;
    // pairs with: unlock() (the previous holder's writes)
    if (state_.compare_exchange_weak(expected, 1, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {  // relaxed: a failed attempt reads nothing
      return;
    }
  }
  // pairs with: unlock() (the previous holder's writes)
  while (state_.exchange(2, std::memory_order_acquire) != 0) {
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
  }
}

void Mutex::wake_one() {
  const os::ErrnoGuard guard;
  syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace brimful::sync
