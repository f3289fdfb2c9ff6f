// SPDX-License-Identifier: MIT
//
// pages/pressure.h.
#include "pages/pressure.h"

#include <atomic>

#include "base/compiler.h"
#include "pages/heap.h"
#include "pages/limit.h"

namespace brimful::pages {

constinit std::atomic<bool> is_short{false};

namespace {

constexpr std::uint64_t kLookEveryMs = 1000;

constinit std::atomic<std::uint64_t> next_look_ms{0};

// Of the one thread that looks at a time.
constinit std::atomic<bool> looking{false};
constinit bool group_is_known = false;
BRIMFUL_ZEROS_COLD constinit os::MemoryGroup own_group = {};
constinit std::uint64_t last_refusals = 0;

bool is_large() {
  if (!heap.lock.try_lock()) return false;
  const std::size_t bytes = counted_bytes();
  heap.lock.unlock();
  return bytes >= kPressureFromBytes;
}

BRIMFUL_COLD void look() {
  if (!group_is_known) {
    os::find_memory_group(own_group, os::CgroupPlaces());
    last_refusals = os::group_refusals(own_group);
    group_is_known = true;
  }
  const bool found = look_for_pressure(own_group, "/proc/pressure/memory", &last_refusals);
  is_short.store(found, std::memory_order_relaxed);  // relaxed: a hint for policies
}

}  // namespace

bool under_pressure() { return is_short.load(std::memory_order_relaxed); }  // relaxed: a hint for policies

bool look_for_pressure(const os::MemoryGroup& group, const char* system_file, std::uint64_t* refusals) {
  const std::uint64_t before = *refusals;
  *refusals = os::group_refusals(group);
  return *refusals > before || os::memory_stall(group, system_file) >= kStall;
}

void poll_pressure(std::uint64_t now_ms) {
  if (BRIMFUL_LIKELY(now_ms < next_look_ms.load(std::memory_order_relaxed))) return;  // relaxed: sorted out below
  // pairs with: the store below (what the last look left)
  if (looking.exchange(true, std::memory_order_acquire)) return;
  next_look_ms.store(now_ms + kLookEveryMs, std::memory_order_relaxed);  // relaxed: as above
  if (is_large()) {
    look();
  } else {
    is_short.store(false, std::memory_order_relaxed);  // relaxed: a hint for policies
  }
  looking.store(false, std::memory_order_release);  // pairs with: the exchange above
}

}  // namespace brimful::pages
