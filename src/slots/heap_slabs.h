// SPDX-License-Identifier: MIT
//
// What the parts of slots/user_heap.h share about a heap's slabs. Of every function: the caller holds the heap's lock,
// which orders all who ask and change; so the atomics in here are relaxed unless reports read them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/units.h"
#include "slots/user_heap.h"

namespace brimful::slots {

// Calls until somebody looks at the clock.
inline constexpr std::int32_t kCallsPerLook = 64;

inline std::int32_t live_objects(const Slab* slab) {
  return slab->countdown.load(std::memory_order_relaxed);  // relaxed: the lock orders it
}
inline void set_live_objects(Slab* slab, std::int32_t count) {
  slab->countdown.store(count, std::memory_order_relaxed);  // relaxed: the lock orders it
}
inline std::uint64_t word_of(Slab* slab, unsigned group) {
  return slab->word(group).load(std::memory_order_relaxed);  // relaxed: the lock orders it
}
inline void set_word(Slab* slab, unsigned group, std::uint64_t bits) {
  slab->word(group).store(bits, std::memory_order_release);  // pairs with: owner_bits() (the objects' last use)
}

// A slab's `least` says nothing else here: it is a stand-in's, in the heap's list of those.
inline bool is_lent(const Slab* slab) { return slab->least != 0; }

inline bool is_full(const Slab* slab) { return live_objects(slab) == static_cast<std::int32_t>(slab->count()); }
inline std::size_t bytes_of(const Slab* slab) { return GranuleCount(slab->shape().granules).bytes(); }

inline bool is_time_to_look(UserHeap& heap) {
  if (--heap.until_look > 0) return false;
  heap.until_look = kCallsPerLook;
  return true;
}

// The limit forbids bytes more.
inline bool exceeds(UserHeap& heap, std::size_t bytes) {
  if (heap.limit_bytes == 0) return false;
  const std::size_t live = heap.counts.live_bytes;
  if (live <= heap.limit_bytes && bytes <= heap.limit_bytes - live) return false;
  ++heap.counts.refused;
  return true;
}

inline void add_live(UserHeap& heap, std::size_t bytes) {
  heap.counts.live_bytes += bytes;
  if (heap.counts.live_bytes > heap.counts.peak_bytes) heap.counts.peak_bytes = heap.counts.live_bytes;
}

// The lowest group of a slab with a free object that has one: so what is live lies together.
inline unsigned lowest_group(Slab* slab) {
  unsigned group = slab->rest;
  while (word_of(slab, group) == 0) ++group;
  BRIMFUL_CHECK(group < slab->groups);
  slab->rest = static_cast<std::uint8_t>(group);
  return group;
}

// A slab without objects among the partial ones; nullptr when there is no memory. Takes the heap lock.
Slab* add_slab(UserHeap& heap, ClassId size_class);

// The slab is empty and leaves the heap: the caller, who may let go of the heap's lock first, releases it.
void unlist(UserHeap& heap, Slab* slab);

// `count` objects of the group (a mask) are free. Returns the slab if that was its last one, to be released. The one
// that malloc takes from stays, or a program that allocates and frees one object would make a slab each time.
Slab* put_back(UserHeap& heap, Slab* slab, unsigned group, std::uint64_t mask, std::int32_t count);

}  // namespace brimful::slots
