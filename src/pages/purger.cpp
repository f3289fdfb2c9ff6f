// SPDX-License-Identifier: MIT
//
// pages/purger.h.
#include "pages/purger.h"

#include "base/compiler.h"
#include "config/options.h"
#include "os/calls.h"
#include "os/clock.h"
#include "pages/heap.h"
#include "pages/pressure.h"
#include "pages/reuse_demand.h"
#include "pages/run_cache.h"

namespace brimful::pages {
namespace {

constexpr std::uint64_t kTickMs = 10;
// One slice holds the lock for about 0.5 ms (240 ns a page).
constexpr std::size_t kSliceBytes = std::size_t{8} << 20;
// No slice is begun when a tick has taken so much of the processor's time; of a tick that is late: that share of the time
// gone by.
constexpr std::uint64_t kTickNs = 1'500'000;
constexpr std::uint64_t kLateMs = 50;
constexpr std::uint64_t kLateShare = 10;
// What was freed within this share of the delay is left out: nearly all of it is kept by the curve, and the oldest
// memory is to go first.
constexpr std::uint64_t kYoungShare = 8;

// An excess over the demand goes in steps of this size at least; of one free, twice as much as was freed.
constexpr std::size_t kExcessBytes = std::size_t{2} << 20;

constexpr std::size_t kWorthWaitingFor = std::size_t{4} << 20;
constexpr std::size_t kWaitingShare = 32;

constinit std::atomic<std::uint64_t> next_tick_ms{0};
// As of the last tick: somebody else purges, or nobody is to.
constinit std::atomic<bool> is_spared{false};

// Guarded by the heap lock.
struct Purger {
  Decay decay;
  AdaptiveDelay delay;
  ReleaseRate rate;
  ReuseDemand demand;
};
constinit Purger purger;

// Caller holds the heap lock.
std::uint64_t delay_in_force(std::int64_t option_ms) {
  if (under_pressure()) return 0;
  return purger.delay.delay_ms(static_cast<std::uint64_t>(option_ms));
}

// What the system was offered long ago. false: nothing more is due. Caller holds the heap lock.
bool purge_muzzy_slice(std::uint64_t now_ms) {
  const std::int64_t delay_ms = config::options.muzzy_delay_ms;
  if (delay_ms < 0 || heap.pages.stats().muzzy_bytes == 0 || now_ms < static_cast<std::uint64_t>(delay_ms))
    return false;
  std::size_t budget = purger.rate.allowed(now_ms, static_cast<std::uint64_t>(config::options.release_rate));
  if (budget > kSliceBytes) budget = kSliceBytes;
  const std::size_t purged = heap.pages.purge_muzzy(now_ms - static_cast<std::uint64_t>(delay_ms), budget, now_ms);
  purger.rate.spend(purged);
  return purged >= kSliceBytes;
}

// Of the memory that was freed at `cutoff_ms` or before, `bytes` at most, as far as the rate allows. Caller holds the heap
// lock.
std::size_t purge_bytes(std::uint64_t now_ms, std::uint64_t cutoff_ms, std::size_t bytes, bool lazily) {
  const std::size_t allowed = purger.rate.allowed(now_ms, static_cast<std::uint64_t>(config::options.release_rate));
  if (bytes > allowed) bytes = allowed;
  // Less than a granule is not worth a system call: the next one has more.
  if (bytes < kGranuleBytes) return 0;
  const std::size_t purged =
      lazily ? heap.pages.soften(cutoff_ms, bytes, now_ms) : heap.pages.purge(cutoff_ms, bytes, now_ms);
  purger.rate.spend(purged);
  const PageStats after = heap.pages.stats();
  purger.delay.learn(now_ms, after.purged_bytes, after.refaulted_bytes);
  return purged;
}

bool purges_lazily() { return config::purge_kind() == config::Purge::kFree && !heap.pages.is_strict(); }

// One slice. false: nothing more is due. Caller holds the heap lock.
bool purge_slice(std::uint64_t now_ms, std::int64_t option_ms) {
  const std::uint64_t delay_ms = delay_in_force(option_ms);
  const PageStats before = heap.pages.stats();
  std::size_t budget = purger.decay.excess(now_ms, before.dirty_bytes - before.muzzy_bytes, delay_ms,
                                           heap.pages.youngest_dirty_age_ms(now_ms));
  const bool is_more = budget > kSliceBytes;
  if (is_more) budget = kSliceBytes;
  if (budget < kGranuleBytes) return purge_muzzy_slice(now_ms);
  const std::uint64_t young_ms = delay_ms / kYoungShare;
  if (now_ms < young_ms) return false;
  const std::size_t purged = purge_bytes(now_ms, now_ms - young_ms, budget, delay_ms != 0 && purges_lazily());
  const PageStats after = heap.pages.stats();
  purger.decay.settle(after.dirty_bytes - after.muzzy_bytes);
  return is_more && purged != 0;
}

// What is free beyond what will plausibly be asked for again, after a free of so many bytes. Caller holds the heap lock.
void purge_excess(std::uint64_t now_ms, std::size_t freed_bytes) {
  const PageStats before = heap.pages.stats();
  const std::size_t dirty_bytes = before.dirty_bytes - before.muzzy_bytes;
  const std::size_t plausible_bytes = purger.demand.plausible_bytes();
  if (BRIMFUL_LIKELY(dirty_bytes <= plausible_bytes || dirty_bytes - plausible_bytes < kExcessBytes)) return;
  // Before the first tick nobody has asked whether anything is to go at all.
  if (config::options.purge_delay_ms < 0) return;
  const std::size_t excess = dirty_bytes - plausible_bytes;
  const std::size_t most = kExcessBytes + 2 * freed_bytes;
  // What stays has yet to wait, as far as no tick has seen it.
  purger.decay.forget(purge_bytes(now_ms, now_ms, excess < most ? excess : most, purges_lazily()));
}

// With cache:unlimited what waits in caches does so until somebody asks for it. Caller holds the heap lock.
bool caches_wait() { return config::cache() == config::Cache::kUnlimited && !under_pressure(); }

// One step: what caches keep for too long, then a slice. false: nothing more is due. Caller holds the heap lock.
bool purge_step(std::uint64_t now_ms, std::int64_t option_ms) {
  const std::uint64_t delay_ms = delay_in_force(option_ms);
  if (now_ms >= delay_ms) {
    if (!caches_wait()) flush_cached_runs(now_ms - delay_ms);
    heap.huge.give_back(now_ms - delay_ms, kSliceBytes);
  }
  return heap.pages.has_dirty() && purge_slice(now_ms, option_ms);
}

// Free and resident, but not offered to the system. Caller holds the heap lock.
std::size_t bytes_to_give_back() {
  const PageStats stats = heap.pages.stats();
  const std::size_t cached_bytes = caches_wait() ? 0 : cached_run_bytes();
  return stats.dirty_bytes - stats.muzzy_bytes + cached_bytes + heap.huge.kept_bytes();
}

// Caller holds the heap lock.
bool is_worth_waiting_for(std::size_t bytes) {
  return bytes >= kWorthWaitingFor && bytes >= (heap.pages.stats().used_bytes + bytes) / kWaitingShare;
}

}  // namespace

constinit std::atomic<bool> memory_waits{false};

bool is_tick_due(std::uint64_t now_ms) {
  // relaxed: two threads may both tick; the lock sorts them
  return now_ms >= next_tick_ms.load(std::memory_order_relaxed);
}

void note_freed(std::uint64_t now_ms, std::size_t bytes) {
  purger.demand.note_freed(now_ms, heap.pages.stats().used_bytes, bytes);
  // relaxed: as above
  if (is_spared.load(std::memory_order_relaxed)) return;
  purge_excess(now_ms, bytes);
  if (is_waiting()) return;
  if (!is_worth_waiting_for(heap.pages.stats().dirty_bytes)) return;
  memory_waits.store(true, std::memory_order_relaxed);  // relaxed: as above
  next_tick_ms.store(0, std::memory_order_relaxed);     // relaxed: as in tick()
}

bool tick(std::uint64_t now_ms, bool may_purge) {
  // relaxed: two threads may both tick; the lock below sorts them
  const std::uint64_t due_ms = next_tick_ms.load(std::memory_order_relaxed);
  if (BRIMFUL_LIKELY(now_ms < due_ms)) return false;
  next_tick_ms.store(now_ms + kTickMs, std::memory_order_relaxed);  // relaxed: as above
  poll_pressure(now_ms);
  const std::int64_t option_ms = config::options.purge_delay_ms;
  const bool spared = option_ms < 0 || !may_purge;
  is_spared.store(spared, std::memory_order_relaxed);  // relaxed: as below
  if (spared) {
    memory_waits.store(false, std::memory_order_relaxed);  // relaxed: as below
    return true;
  }
  const std::uint64_t late_ms = due_ms != 0 ? now_ms - due_ms : 0;
  const std::uint64_t most_ns = late_ms < kLateMs ? kTickNs : late_ms * 1'000'000 / kLateShare;
  const std::uint64_t began_ns = os::thread_cpu_ns();
  bool is_more = true;
  while (is_more && heap.lock.try_lock()) {
    is_more = purge_step(now_ms, option_ms);
    if (is_waiting() && !is_worth_waiting_for(2 * bytes_to_give_back())) {
      memory_waits.store(false, std::memory_order_relaxed);  // relaxed: says how soon to look again
    }
    heap.lock.unlock();
    is_more = is_more && os::thread_cpu_ns() - began_ns < most_ns;
  }
  return true;
}

std::size_t purge_due(std::uint64_t now_ms) {
  const std::int64_t option_ms = config::options.purge_delay_ms;
  for (bool is_more = option_ms >= 0; is_more;) {
    const sync::MutexLock guard(heap.lock);
    is_more = purge_step(now_ms, option_ms);
  }
  const sync::MutexLock guard(heap.lock);
  return bytes_to_give_back();
}

void empty_caches() {
  const sync::MutexLock guard(heap.lock);
  flush_cached_runs(UINT64_MAX);
  heap.huge.give_back(UINT64_MAX, SIZE_MAX);
}

std::size_t trim() {
  const sync::MutexLock guard(heap.lock);
  flush_cached_runs(UINT64_MAX);
  const std::size_t unmapped = heap.huge.give_back(UINT64_MAX, SIZE_MAX);
  const std::size_t purged = heap.pages.purge(UINT64_MAX, SIZE_MAX, os::calls.now_ms());
  purger.decay.settle(heap.pages.stats().dirty_bytes);
  return unmapped + purged;
}

std::uint64_t purge_cutoff_ms(std::uint64_t now_ms) {
  const std::int64_t option_ms = config::options.purge_delay_ms;
  const std::uint64_t delay_ms = option_ms < 0 || caches_wait() ? UINT64_MAX : delay_in_force(option_ms);
  return now_ms > delay_ms ? now_ms - delay_ms : 0;
}

std::int64_t current_delay_ms() {
  const sync::MutexLock guard(heap.lock);
  const std::int64_t option_ms = config::options.purge_delay_ms;
  return option_ms < 0 ? -1 : static_cast<std::int64_t>(delay_in_force(option_ms));
}

}  // namespace brimful::pages
