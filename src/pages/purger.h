// SPDX-License-Identifier: MIT
//
// When free memory goes back, and how much at a time: the clockwork over PageHeap::purge().
//
//   slow path ──slots::tick()──▶ tick()  ──▶  curve (pages/decay.h)  ──▶  slices of 8 MiB, the heap lock let go between
//   background thread ─────────▶ purge_due()
//
// A tick gives back what the curve has let go of since the last, and no more: with the default delay at most 19 MiB of a
// gigabyte in 10 ms. A call of the program pays 1.5 ms, and at most a slice more, while ticks come in time. Where none came
// for long, because the program did something else or nothing, the next one makes up for it: it may take a tenth of that
// time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pages/decay.h"

namespace brimful::pages {

// Looks at the clock for purging, at most once in 10 ms. true: it was time, so other things that are done now and then
// are due as well. Without `may_purge` it does no more: somebody else calls purge_due(). Takes the heap lock if it is
// free; never waits for it. Caller holds no lock.
bool tick(std::uint64_t now_ms, bool may_purge);

// tick() would do something, or at least look.
bool is_tick_due(std::uint64_t now_ms);

// Free memory is resident that will have to go back, enough to be worth a look at the clock by somebody who hardly ever
// comes by: 4 MiB, and 3 % of what the heap holds. Ends at half of that. As of the last tick() that found the lock free, or
// note_freed(). false while the background thread purges, or nobody is to.
extern constinit std::atomic<bool> memory_waits;
inline bool is_waiting() {
  return memory_waits.load(std::memory_order_relaxed);  // relaxed: says how soon to look again
}

// The page heap got `bytes` back. If what is free is enough to wait for, the next tick() comes at once; what exceeds the
// demand (pages/reuse_demand.h) goes back now, but not much more than what was freed, so that a free costs no more than a small
// part of what it cost to touch its memory first: 240 ns for each page. Caller holds the heap lock.
void note_freed(std::uint64_t now_ms, std::size_t bytes);

// As tick(), for the background thread: without regard to the last one, waits for the lock. Returns bytes that are free
// and still resident, but not offered to the system.
std::size_t purge_due(std::uint64_t now_ms);

// Gives the page heap what is kept of large blocks, and the system what is kept of huge ones. Takes the heap lock.
void empty_caches();

// Gives back all free memory now, whatever the rate. Returns bytes given back. Takes the heap lock.
std::size_t trim();

// What was put into a cache then or before is to leave it by now; 0: nothing. Caller holds the heap lock.
std::uint64_t purge_cutoff_ms(std::uint64_t now_ms);

// The delay in force: purge_delay_ms, and what was learned since. -1: never. Takes the heap lock.
std::int64_t current_delay_ms();

}  // namespace brimful::pages
