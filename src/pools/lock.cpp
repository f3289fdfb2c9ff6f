// SPDX-License-Identifier: MIT
//
// The slow half of pools/lock.h: a short bounded spin, then sleep, if the host can.
#include "pools/lock.h"

namespace brimful::pools {
namespace {

constexpr int kSpins = 100;  // as sync/mutex.cpp

// The host's calls take a plain word, as the kernel does.
std::uint32_t* word(std::atomic<std::uint32_t>& state) { return reinterpret_cast<std::uint32_t*>(&state); }

}  // namespace

BRIMFUL_COLD void Lock::lock_contended(const brimful_pool_host& host) {
  const std::uint64_t began_ns = host.now_ns != nullptr ? host.now_ns(host.context) : 0;
  std::uint64_t sleeps = 0;
  bool ours = false;
  for (int i = 0; !ours && (i < kSpins || host.wait == nullptr); ++i) {
    arch::spin_hint();
    // relaxed: only whether an attempt is worth the cache line
    if (state_.load(std::memory_order_relaxed) != 0) continue;
    std::uint32_t expected = 0;
    // pairs with: unlock() (the previous holder's writes)
    ours = state_.compare_exchange_weak(expected, 1, std::memory_order_acquire,
                                        std::memory_order_relaxed);  // relaxed: a failed attempt reads nothing
  }
  // pairs with: unlock() (the previous holder's writes)
  while (!ours && state_.exchange(2, std::memory_order_acquire) != 0) {
    ++sleeps;
    host.wait(host.context, word(state_), 2);
  }
  ++stats_.contended;
  stats_.sleeps += sleeps;
  if (host.now_ns != nullptr) stats_.wait_ns += host.now_ns(host.context) - began_ns;
}

BRIMFUL_COLD void Lock::wake(const brimful_pool_host& host) {
  if (host.wake != nullptr) host.wake(host.context, word(state_));
}

}  // namespace brimful::pools
