// SPDX-License-Identifier: MIT
//
// The slow half of sync/mutex.h: a short bounded spin, then sleep; and the clock around it.
#include "sync/mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch/spin.h"
#include "os/clock.h"
#include "os/errno_guard.h"

namespace brimful::sync {
namespace {

// A critical section here lasts 50–500 ns; waking a sleeper costs 5 µs and more.
constexpr int kSpins = 100;

}  // namespace

std::uint64_t Futex::wait() {
  const os::ErrnoGuard guard;
  for (int i = 0; i < kSpins; ++i) {
    arch::spin_hint();
    // relaxed: only whether an attempt is worth the cache line
    if (state_.load(std::memory_order_relaxed) != 0) continue;
    std::uint32_t expected = 0;
    // pairs with: unlock() (the previous holder's writes)
    if (state_.compare_exchange_weak(expected, 1, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {  // relaxed: a failed attempt reads nothing
      return 0;
    }
  }
  std::uint64_t sleeps = 0;
  // pairs with: unlock() (the previous holder's writes)
  while (state_.exchange(2, std::memory_order_acquire) != 0) {
    ++sleeps;
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
  }
  return sleeps;
}

void Futex::wait_for_a_while() {
  const os::ErrnoGuard guard;
  for (int i = 0; i < kSpins; ++i) {
    // relaxed: only whether an attempt is worth the cache line
    if (state_.load(std::memory_order_relaxed) == 0) return;
    arch::spin_hint();
  }
  std::uint32_t expected = 1;
  // relaxed: nothing is taken, so nothing is read after it; that somebody sleeps is all that this says
  state_.compare_exchange_strong(expected, 2, std::memory_order_relaxed);
  constexpr timespec kMost = {0, 1000000};
  if (expected != 0) syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, 2, &kMost, nullptr, 0);
}

void Futex::wake_one() {
  const os::ErrnoGuard guard;
  syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// The counters are the holder's to write, so the second look at the clock comes under the lock: some 20 ns, in a section
// that somebody waited microseconds for.
void lock_contended(Futex& futex, LockCounters& counters) {
  const std::uint64_t began_ns = os::monotonic_ns();
  const std::uint64_t sleeps = futex.wait();
  counters.count_wait(sleeps, os::monotonic_ns() - began_ns);
}

}  // namespace brimful::sync
