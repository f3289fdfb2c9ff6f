// SPDX-License-Identifier: MIT
//
// pages/heap.h: the instance and the clockwork of purging.
#include "pages/heap.h"

#include <atomic>

#include "base/compiler.h"
#include "config/options.h"
#include "os/calls.h"

namespace brimful::pages {
namespace {

constexpr std::uint64_t kTickMs = 10;
// One slice stalls other slow paths for about 2 ms (240 ns a page).
constexpr std::size_t kSliceBytes = std::size_t{32} << 20;

constinit std::atomic<std::uint64_t> next_tick_ms{0};

// Metadata in a window: taking a granule of one needs no metadata.
std::uintptr_t granule_for_metadata() {
  const std::uintptr_t granule = heap.pages.allocate_for_metadata();
  if (granule != 0) heap.pages.clear(granule, kGranuleBytes);
  return granule;
}

}  // namespace

constinit Heap heap(granule_for_metadata);

void tick(std::uint64_t now_ms) {
  // relaxed: two threads may both tick; the lock below sorts them
  if (BRIMFUL_LIKELY(now_ms < next_tick_ms.load(std::memory_order_relaxed))) return;
  next_tick_ms.store(now_ms + kTickMs, std::memory_order_relaxed);  // relaxed: as above
  const auto delay = config::options.purge_delay_ms;
  if (delay < 0 || now_ms < static_cast<std::uint64_t>(delay) || !heap.lock.try_lock()) return;
  if (heap.pages.has_dirty()) heap.pages.purge(now_ms - static_cast<std::uint64_t>(delay), kSliceBytes, now_ms);
  heap.lock.unlock();
}

std::size_t trim() {
  const sync::MutexLock guard(heap.lock);
  return heap.pages.purge(UINT64_MAX, SIZE_MAX, os::calls.now_ms());
}

}  // namespace brimful::pages
