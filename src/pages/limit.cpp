// SPDX-License-Identifier: MIT
//
// pages/limit.h.
#include "pages/limit.h"

#include <atomic>

#include "base/compiler.h"
#include "config/options.h"
#include "os/calls.h"
#include "pages/heap.h"
#include "pages/run_cache.h"

namespace brimful::pages {
namespace {

constexpr std::size_t kLeastHeadroom = std::size_t{16} << 20;
// Giving back less at a time would cost a system call for each slab.
constexpr std::size_t kLeastPurge = std::size_t{1} << 20;
constexpr std::uint64_t kReclaimEveryMs = 1000;

constinit std::atomic<bool> reclaim_ordered{false};
constinit std::atomic<std::uint64_t> next_reclaim_ms{0};

BRIMFUL_ZEROS_COLD constinit os::MemoryGroup own_group = {};  // under the heap lock

bool is_auto(std::int64_t option) { return option == config::kAutoBytes; }

bool refuse() {
  ++limits.refusals;
  return false;
}

std::size_t known(std::size_t bytes) { return bytes == os::kNoLimit ? 0 : without_headroom(bytes); }

}  // namespace

constinit Limits limits = {0, 0, 0};

std::size_t without_headroom(std::size_t bytes) {
  std::size_t headroom = bytes / 16;
  if (headroom < kLeastHeadroom) headroom = kLeastHeadroom;
  if (headroom > bytes / 4) headroom = bytes / 4;
  return bytes - headroom;
}

Limits wanted_limits(const os::GroupLimits& group) {
  const config::Options& options = config::options;
  Limits wanted = {};
  wanted.hard = is_auto(options.limit) ? known(group.most) : static_cast<std::size_t>(options.limit);
  if (!is_auto(options.soft_limit)) {
    wanted.soft = static_cast<std::size_t>(options.soft_limit);
    return wanted;
  }
  wanted.soft = known(group.high);
  if (wanted.soft == 0) {
    const std::size_t hard = wanted.hard != 0 ? wanted.hard : known(group.most);
    wanted.soft = hard - hard / 8;
  }
  return wanted;
}

BRIMFUL_COLD void choose_limits() {
  os::GroupLimits group = {os::kNoLimit, os::kNoLimit};
  if (is_auto(config::options.limit) || is_auto(config::options.soft_limit)) {
    os::find_memory_group(own_group, os::CgroupPlaces());
    group = os::group_limits(own_group);
  }
  limits = wanted_limits(group);
}

BRIMFUL_COLD void change_limits() {
  const sync::MutexLock guard(heap.lock);
  const std::size_t refusals = limits.refusals;
  choose_limits();
  limits.refusals = refusals;
}

std::size_t counted_bytes() {
  const PageStats pages = heap.pages.stats();
  return pages.used_bytes + pages.dirty_bytes + heap.huge.used_bytes() + heap.huge.kept_bytes() +
         heap.arena.mapped_bytes();
}

BRIMFUL_COLD bool may_grow_within_limits(std::size_t bytes) {
  const std::size_t least =
      limits.soft != 0 && (limits.hard == 0 || limits.soft < limits.hard) ? limits.soft : limits.hard;
  std::size_t counted = counted_bytes();
  if (limits.hard != 0 && bytes > limits.hard) return refuse();  // hopeless: nothing needs to go back for it
  if (counted + bytes <= least) return true;
  flush_cached_runs(UINT64_MAX);
  counted -= heap.huge.give_back(UINT64_MAX, SIZE_MAX);
  if (counted + bytes <= least) return true;
  const std::size_t excess = counted + bytes - least;
  counted -= heap.pages.purge(UINT64_MAX, excess > kLeastPurge ? excess : kLeastPurge, os::calls.now_ms());
  if (counted + bytes <= least) return true;
  if (limits.hard != 0 && counted + bytes > limits.hard) return refuse();  // the caller reclaims and tries again
  reclaim_ordered.store(true, std::memory_order_relaxed);  // relaxed: a wish; acting on it takes the locks it needs
  return true;
}

bool takes_reclaim_order(std::uint64_t now_ms) {
  if (BRIMFUL_LIKELY(!reclaim_ordered.load(std::memory_order_relaxed))) return false;  // relaxed: as above
  // relaxed: two threads may both reclaim, which is useless but right
  if (now_ms < next_reclaim_ms.load(std::memory_order_relaxed)) return false;
  next_reclaim_ms.store(now_ms + kReclaimEveryMs, std::memory_order_relaxed);  // relaxed: as above
  reclaim_ordered.store(false, std::memory_order_relaxed);                     // relaxed: as above
  return true;
}

}  // namespace brimful::pages
