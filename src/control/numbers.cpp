// SPDX-License-Identifier: MIT
//
// control/numbers.h.
#include "control/numbers.h"

#include <errno.h>

#include "base/compiler.h"
#include "os/calls.h"
#include "os/clock.h"
#include "pages/heap.h"
#include "slots/thread.h"

namespace brimful::control {
namespace {

constexpr std::uint64_t kCheapNs = 500'000;
constexpr std::uint64_t kRestFactor = 50;

// Guarded by the heap lock.
struct Latest {
  Numbers numbers;
  std::uint64_t taken_ns;  // when
  std::uint64_t cost_ns;   // and how much of the processor's time that took
};
BRIMFUL_ZEROS_COLD constinit Latest latest = {};

bool is_fresh(std::uint64_t now_ns) {
  const slots::SlowScope scope;  // a handler that allocates must not wait for our lock
  const sync::MutexLock guard(pages::heap.lock);
  return latest.cost_ns > kCheapNs && now_ns - latest.taken_ns < kRestFactor * latest.cost_ns;
}

Numbers numbers_of(const stats::Snapshot& heap, const pages::PageStats& pages) {
  Numbers now = {};
  now.allocated = heap.live_bytes;
  now.large = heap.large_bytes + heap.huge_bytes;
  now.small = now.allocated - now.large;
  now.active = round_up(heap.live_bytes + heap.slab_free_bytes, os::page_bytes());
  now.dirty = heap.dirty_bytes;
  now.muzzy = pages.muzzy_bytes;
  now.metadata = heap.metadata_bytes;
  now.resident = now.active + now.dirty + now.metadata;
  now.mapped = now.active + now.metadata;
  const std::uint64_t held = pages.used_bytes + pages.dirty_bytes;
  now.retained = pages.committed_bytes > held ? pages.committed_bytes - held : 0;
  now.purged = pages.purged_bytes;
  for (std::size_t c = 0; c < kClassCount; ++c) now.classes[c] = heap.classes[c];
  return now;
}

}  // namespace

int renew() {
  if (slots::thread_state.depth != 0) return EDEADLK;
  if (is_fresh(os::monotonic_ns())) return 0;
  const std::uint64_t began_cpu_ns = os::thread_cpu_ns();  // waiting for a processor costs nothing
  stats::Snapshot heap;
  stats::take_snapshot(heap);
  const slots::SlowScope scope;
  const sync::MutexLock guard(pages::heap.lock);
  const std::uint64_t epoch = latest.numbers.epoch + 1;
  latest.numbers = numbers_of(heap, pages::heap.pages.stats());
  latest.numbers.epoch = epoch;
  latest.taken_ns = os::monotonic_ns();
  latest.cost_ns = os::thread_cpu_ns() - began_cpu_ns;
  return 0;
}

int read(Numbers& into) {
  if (slots::thread_state.depth != 0) return EDEADLK;
  for (;;) {
    {
      const slots::SlowScope scope;
      const sync::MutexLock guard(pages::heap.lock);
      into = latest.numbers;
    }
    if (into.epoch != 0) return 0;
    if (const int fault = renew()) return fault;
  }
}

}  // namespace brimful::control
