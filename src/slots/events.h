// SPDX-License-Identifier: MIT
//
// Events: what the slow paths did, counted per context.
//
// A counter is written by whoever runs in the context, with a plain load and store: no locked instruction, and a line
// that belongs to the CPU anyway. A thread that is moved to another CPU between the two loses an increment (or another
// thread's): the counts are for reports, nothing decides by them. The fast paths count nothing, so hits are not here.
// After a fork the child goes on from its parent's counts.
//
// Three instructions where the context is at hand (load, add, store), a dozen where it has to be found first: the latter
// only beside a lock, or at the head of a free that left the fast path.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace brimful::slots {

enum class Event : std::uint8_t {
  kRefillGroup,    // malloc's slow path offered a group of the current slab
  kRefillPartial,  // a slab of the context's own queue became current
  kRefillCentral,  // a slab of the central index became current
  kRefillNew,      // a new slab became current
  kDetach,         // a full slab was let go
  kSharedObject,   // an object served from a shared slab, under the class's lock
  kSlowFree,       // frees that took the slow path
  kKeep,           // of those: kept in a magazine when that had been emptied for it, or time had been looked at
  kFlush,          // a magazine emptied
  kTell,           // an atomic OR on a remote mask
  kCollect,        // an exchange on a remote mask that found bits
  kAdopt,          // a detached slab taken back by its last owner
  kPublish,        // a detached slab put into the central index
  kCentralAdd,     // slabs put into the central index, published ones included
  kReleaseSlab,    // a slab given back to the page heap
  kCloseContext,   // another, idle context emptied
};
inline constexpr std::size_t kEventCount = 16;

// As the reports call them.
inline constexpr std::array<const char*, kEventCount> kEventNames = {
    "refill_group", "refill_partial", "refill_central", "refill_new",   "detach",  "shared_object",
    "slow_free",    "keep",           "flush",          "tell",         "collect", "adopt",
    "publish",      "central_add",    "release_slab",   "close_context"};

using EventCounts = std::array<std::uint64_t, kEventCount>;

class Events {
 public:
  void count(Event event) {
    std::atomic<std::uint64_t>& counter = counters_[static_cast<std::size_t>(event)];
    // relaxed: a count for reports
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  void add_to(EventCounts& sums) const {
    for (std::size_t i = 0; i < kEventCount; ++i) {
      sums[i] += counters_[i].load(std::memory_order_relaxed);  // relaxed: a count for reports
    }
  }

 private:
  std::atomic<std::uint64_t> counters_[kEventCount] = {};
};

// Counts for the context that this thread runs in; a thread without one counts for the empty context.
void count(Event event);

// Sums over all contexts, the empty one included. O(contexts), no lock.
EventCounts count_events();

}  // namespace brimful::slots
