// SPDX-License-Identifier: MIT
//
// tier:hardened: when the live bits of objects (meta/live_map.h) are set and taken back, so that malloc's hit is the
// default tier's and still no two frees of an object both succeed.
//
//   freed word ── bits set ──▶ offered word ──malloc's hit──▶ live ──free(): one AND clears the bit──▶ freed word, or others'
//        ▲                          │
//        └─────── bits cleared ─────┘   its slab is given back, or shared
//
// 1. An object's bit is set BEFORE it can be handed out: of those that an offer moves, by who offers (the lock of the slab's
//    context guards that), of others by who takes them from their slab.
// 2. free() clears it before anything else, then looks at the slab's words, in the sequence that frees it. Bit clear: it is
//    the second. Bit set, and the words say free: it stood in an offer, so it is the second, too. Else malloc handed it out:
//    this is its free, and nobody else has the bit.
// 3. So whatever takes objects out of an offer, other than malloc, clears their bits first. One that it finds clear is in
//    the hands of such a second free, which may be about to read words that say something else by then: it is reported
//    here.
//
// Rule 1 is why malloc goes to no group by itself in this tier (the heartbeats stay at 0): only C++ offers. The look of
// rule 2 needs no step of its own, and it is exact: bits move from the freed word to the offered one and never back, and
// both are read in that order. The model (tests/model) tries all orders. Rejected: docs/design/0042.
#pragma once

#include <bit>
#include <cstdint>

#include "base/compiler.h"
#include "config/options.h"
#include "meta/live_map.h"
#include "slots/slab.h"

namespace brimful::slots {

// Where an object begins its life that no offer held: the caller has just taken it from its slab's words.
inline void* begin_life(void* object) {
  if (config::is_hardened() && object != nullptr) meta::live_map.set(reinterpret_cast<std::uint64_t>(object));
  return object;
}

// Objects of a group (a mask) are going to be offered. Returns those that are free and in no earlier offer, whose bits were
// set; malloc may be taking the others right now. Caller holds the lock of the slab's context.
inline std::uint64_t begin_offer(Slab* slab, unsigned group, std::uint64_t places) {
  if (BRIMFUL_LIKELY(!config::is_hardened())) return 0;
  // pairs with: the owner's free (the objects' last use)
  const std::uint64_t freed = slab->word(group).load(std::memory_order_acquire);
  const std::uint64_t offered =
      slab->offered(group).load(std::memory_order_relaxed);  // relaxed: who offers has the lock
  const std::uint64_t fresh = places & freed & ~offered;
  meta::live_map.set_group(slab->object(std::uint64_t{group} * kGroupObjects), slab->bytes, fresh);
  return fresh;
}

// The offer was refused or aborted. What it had moved already stays offered. Same lock.
inline void abandon_offer(Slab* slab, unsigned group, std::uint64_t fresh) {
  const std::uint64_t left = fresh & ~slab->offered(group).load(std::memory_order_relaxed);  // relaxed: as above
  // One that was freed again meanwhile is reported by that free: the words still hold it.
  if (left != 0) {
    (void)meta::live_map.clear_group(slab->object(std::uint64_t{group} * kGroupObjects), slab->bytes, left);
  }
}

// A second free has cleared the bit of an object (a mask of one) and was reported, and the program goes on: an object that an
// offer holds, or that malloc has taken from it meanwhile, has its bit again.
inline void restore_life(Slab* slab, unsigned group, std::uint64_t object) {
  if (BRIMFUL_LIKELY(!config::is_hardened())) return;
  // pairs with: the owner's free (in this order the object is in one of the words while it is free)
  const std::uint64_t freed = slab->word(group).load(std::memory_order_acquire);
  const std::uint64_t offered = slab->offered(group).load(std::memory_order_acquire);  // pairs with: as above
  if ((object & freed & ~offered) != 0) return;
  const auto bit = static_cast<unsigned>(std::countr_zero(object));
  meta::live_map.set(slab->object(std::uint64_t{group} * kGroupObjects + bit));
}

// What the group still offers is going to be something else, and no slot leads there. Reports a free that is under way.
inline void end_offer(Slab* slab, unsigned group) {
  if (BRIMFUL_LIKELY(!config::is_hardened())) return;
  const std::uint64_t left = slab->offered(group).load(std::memory_order_relaxed);  // relaxed: no slot leads there
  if (left == 0) return;
  const std::uint64_t first = slab->object(std::uint64_t{group} * kGroupObjects);
  const std::uint64_t live = meta::live_map.clear_group(first, slab->bytes, left);
  if (BRIMFUL_LIKELY(live == left)) return;
  report_twice(slab, group, left & ~live);
  (void)meta::live_map.clear_group(first, slab->bytes, left);
}

}  // namespace brimful::slots
