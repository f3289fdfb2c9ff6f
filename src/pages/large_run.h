// SPDX-License-Identifier: MIT
//
// Large runs: a block of whole granules with its header, as the granule table shows it.
//
// Whether the block is in use stands in its header's owner, and the end of its life is ONE compare-and-swap there, so a
// free() needs no lock to know that it is the first:
//
//   kOwnerLive ──claim()──▶ kOwnerCached ──▶ a run cache (pages/run_cache.h) ──▶ kOwnerLive, another block's life
//                                        └─▶ free_large_run(): granules to the page heap, header to the arena
//
// Headers stay headers, so whoever comes too late reads kOwnerCached, or another block's header, whose start differs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "meta/header.h"

namespace brimful::pages {

// A live block of `usable` bytes (whole system pages) on a multiple of `alignment` (a power of two); nullptr when there
// is no memory. Caller holds the heap lock. O(log runs) + system calls for fresh memory.
Run* allocate_large_run(std::size_t usable, std::size_t alignment);

// The same on a granule and below a hugepage, of memory that is resident, or nullptr. O(1).
Run* allocate_resident_run(std::size_t usable);

// Takes a claimed block apart. `stamp_ms`: when the program freed it. Caller holds the heap lock.
void free_large_run(Run* run, std::uint64_t stamp_ms);

// The same for a claimed block of either kind; a huge one is kept for a while where it may be. Caller holds the heap
// lock.
void free_block(Run* run, std::uint64_t now_ms);

// Ends the life of a live block, or interrupts it while the block is resized. false: it was over. Any moment.
[[nodiscard]] inline bool claim(Run* run) {
  std::uint32_t expected = kOwnerLive;
  // relaxed: the program orders the block's uses before its free(); of two that race, one wins
  return run->owner.compare_exchange_strong(expected, kOwnerCached, std::memory_order_relaxed,
                                            std::memory_order_relaxed);  // relaxed: a failure reads nothing
}

// The caller's claimed block is the program's again, or its next one.
inline void revive(Run* run) {
  run->owner.store(kOwnerLive, std::memory_order_relaxed);  // relaxed: others get the address from the program
}

[[nodiscard]] inline bool is_live(const Run* run) {
  return run->owner.load(std::memory_order_relaxed) == kOwnerLive;  // relaxed: claim() decides
}

}  // namespace brimful::pages
