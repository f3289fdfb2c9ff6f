// SPDX-License-Identifier: MIT
//
// pages/run_cache.h.
#include "pages/run_cache.h"

#include <bit>

#include "base/compiler.h"
#include "config/options.h"
#include "pages/heap.h"
#include "pages/large_run.h"
#include "pages/run_stacks.h"

namespace brimful::pages {
namespace {

constexpr unsigned kLengthShift = 48;  // user addresses end below
constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << kLengthShift) - 1;
static_assert(kMostCapacity >> kGranuleShift < std::uint64_t{1} << (64 - kLengthShift), "a length fits in a place");

Run* run_in(std::uint64_t place) { return reinterpret_cast<Run*>(place & kAddressMask); }
std::uint64_t granules_in(std::uint64_t place) { return place >> kLengthShift; }

constexpr std::uint32_t kCaches = 64;
static_assert(kCaches == 64, "one bit each in `filled`");

struct alignas(64) PaddedCache {
  RunCache cache;
};
BRIMFUL_ZEROS_COLD constinit PaddedCache caches[kCaches] = {};
// Which caches may hold something.
constinit std::atomic<std::uint64_t> filled{0};
constinit std::atomic<std::size_t> capacity{kLeastCapacity};

std::size_t capacity_bytes() {
  if (config::cache() == config::Cache::kUnlimited) return kMostCapacity;
  return capacity.load(std::memory_order_relaxed);  // relaxed: a bound that moves slowly
}

RunCache& cache_of(std::uint32_t id) { return caches[id % kCaches].cache; }

void flush(std::uint32_t index, std::uint64_t cutoff_ms) {
  std::size_t row = 0;
  for (;;) {
    const RunCache::Taken taken = caches[index].cache.take_older(cutoff_ms, &row);
    if (taken.run == nullptr) return;
    free_large_run(taken.run, taken.stamp_ms);
  }
}

}  // namespace

bool keeps_runs() {
  const auto exhaustion = config::on_exhaustion();
  return !config::is_hardened() && config::cache() != config::Cache::kNone && config::options.purge_delay_ms != 0 &&
         exhaustion != config::Exhaustion::kHook && exhaustion != config::Exhaustion::kAbort;
}

Run* RunCache::take(GranuleCount count) {
  const std::uint64_t least = count.raw();
  const std::uint64_t most = least + least / 8;
  std::uint64_t best = 0;
  std::atomic<std::uint64_t>* from = nullptr;
  std::atomic<std::uint64_t>* row = places_ + row_of(least) * kRowPlaces;
  for (std::size_t i = 0; i < kRowPlaces; ++i) {
    std::atomic<std::uint64_t>& place = row[i];
    const std::uint64_t seen = place.load(std::memory_order_relaxed);  // relaxed: the exchange below verifies it
    const std::uint64_t granules = granules_in(seen);
    if (granules < least || granules > most || (from != nullptr && granules >= granules_in(best))) continue;
    best = seen;
    from = &place;
    if (granules == least) break;
  }
  // pairs with: put() (the header)
  if (from == nullptr || !from->compare_exchange_strong(best, 0, std::memory_order_acquire,
                                                        std::memory_order_relaxed)) {  // relaxed: a miss
    return nullptr;
  }
  return run_in(best);
}

bool RunCache::put(Run* run, std::uint64_t now_ms, std::size_t capacity_bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(run);
  const std::size_t row = row_of(run->granules.raw());
  const std::size_t own = run->granules.bytes();
  // As many as there are places need no sum.
  if (own > capacity_bytes / kRowPlaces && own + bytes_in_row(row) > capacity_bytes) return false;
  std::size_t empty = row * kRowPlaces;
  const std::size_t end = empty + kRowPlaces;
  // relaxed: the exchange below verifies it
  while (empty < end && places_[empty].load(std::memory_order_relaxed) != 0) ++empty;
  if (empty == end || (address & ~kAddressMask) != 0) return false;
  stamps_[empty].store(now_ms, std::memory_order_relaxed);  // relaxed: a rough age
  std::uint64_t expected = 0;
  // pairs with: take(), take_older() (the header), unmark_if_empty() and flush_cached_runs() (the bits of the row and of
  // the cache)
  const bool is_kept = places_[empty].compare_exchange_strong(
      expected, address | std::uint64_t{run->granules.raw()} << kLengthShift, std::memory_order_seq_cst,
      std::memory_order_relaxed);  // relaxed: another thread's block is there now
  if (is_kept) mark(row);
  return is_kept;
}

void RunCache::mark(std::size_t row) {
  const std::uint32_t bit = 1U << row;
  // pairs with: unmark_if_empty() (either we see the bit down, or it sees the block)
  if ((rows_.load(std::memory_order_seq_cst) & bit) == 0) {
    rows_.fetch_or(bit, std::memory_order_seq_cst);  // pairs with: as above
  }
}

void RunCache::unmark_if_empty(std::size_t row) {
  rows_.fetch_and(~(1U << row), std::memory_order_seq_cst);  // pairs with: mark() (as there)
  for (std::size_t i = row * kRowPlaces; i < (row + 1) * kRowPlaces; ++i) {
    if (places_[i].load(std::memory_order_seq_cst) != 0) return mark(row);  // pairs with: put() (as there)
  }
}

RunCache::Taken RunCache::take_older_in_row(std::size_t row, std::uint64_t cutoff_ms) {
  for (std::size_t i = row * kRowPlaces; i < (row + 1) * kRowPlaces; ++i) {
    // pairs with: keep_run() (either we see the block, or it sees our change of `filled`)
    if (places_[i].load(std::memory_order_seq_cst) == 0) continue;
    const std::uint64_t stamp_ms = stamps_[i].load(std::memory_order_relaxed);  // relaxed: a rough age
    if (stamp_ms > cutoff_ms) continue;
    const std::uint64_t seen = places_[i].exchange(0, std::memory_order_acquire);  // pairs with: put() (the header)
    if (seen != 0) return {run_in(seen), stamp_ms};
  }
  unmark_if_empty(row);
  return {nullptr, 0};
}

RunCache::Taken RunCache::take_older(std::uint64_t cutoff_ms, std::size_t* row) {
  for (; *row < kRows; ++*row) {
    // pairs with: mark() (who puts a block in while we look has come after us)
    if ((rows_.load(std::memory_order_seq_cst) >> *row & 1) == 0) continue;
    const Taken taken = take_older_in_row(*row, cutoff_ms);
    if (taken.run != nullptr) return taken;
  }
  return {nullptr, 0};
}

std::size_t RunCache::bytes_in_row(std::size_t row) const {
  std::size_t sum = 0;
  for (std::size_t i = row * kRowPlaces; i < (row + 1) * kRowPlaces; ++i) {
    sum += granules_in(places_[i].load(std::memory_order_relaxed)) << kGranuleShift;  // relaxed: a rough figure
  }
  return sum;
}

std::size_t RunCache::bytes() const {
  std::size_t sum = 0;
  for (std::size_t row = 0; row < kRows; ++row) sum += bytes_in_row(row);
  return sum;
}

Run* take_cached_run(std::uint32_t id, GranuleCount count) { return cache_of(id).take(count); }

bool keep_run(std::uint32_t id, Run* run, std::uint64_t now_ms) {
  if (!keeps_runs()) return false;
  if (!cache_of(id).put(run, now_ms, capacity_bytes())) return false;
  const std::uint64_t bit = std::uint64_t{1} << (id % kCaches);
  // pairs with: flush_cached_runs() (either we see the bit down, or it sees the block)
  if ((filled.load(std::memory_order_seq_cst) & bit) == 0) {
    filled.fetch_or(bit, std::memory_order_seq_cst);  // pairs with: as above
  }
  return true;
}

void flush_cached_runs_of(std::uint32_t id) {
  flush(id % kCaches, UINT64_MAX);
  std::size_t most = heap.pages.stats().used_bytes / 8;
  if (most < kLeastCapacity) most = kLeastCapacity;
  if (most > kMostCapacity) most = kMostCapacity;
  capacity.store(most, std::memory_order_relaxed);  // relaxed: a bound that moves slowly
}

void flush_cached_runs(std::uint64_t cutoff_ms) {
  // relaxed: who puts a block in while we look has come after us
  std::uint64_t waiting = filled.load(std::memory_order_relaxed);
  for (; waiting != 0; waiting &= waiting - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(waiting));
    const std::uint64_t bit = std::uint64_t{1} << index;
    filled.fetch_and(~bit, std::memory_order_seq_cst);  // pairs with: keep_run() (as there)
    flush(index, cutoff_ms);
    if (caches[index].cache.may_hold()) filled.fetch_or(bit, std::memory_order_seq_cst);  // pairs with: as above
  }
}

std::size_t cached_run_bytes() {
  std::size_t sum = stacked_run_bytes();
  for (const PaddedCache& padded : caches) sum += padded.cache.bytes();
  return sum;
}

void use_cached_before_fresh(GranuleCount count) {
  if (heap.pages.stats().dirty_bytes < count.bytes()) flush_cached_runs(UINT64_MAX);
}

}  // namespace brimful::pages
