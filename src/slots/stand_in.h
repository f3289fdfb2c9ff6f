// SPDX-License-Identifier: MIT
//
// A stand-in: what a thread with a current heap (slots/user_heap.h) shows the fast paths in place of a context.
//
//   id pointer ──▶ id ──▶ contexts[1 + id] ──▶ StandIn ── slots[class] ──▶ offered word of a group of a slab of the heap
//
// A hit of malloc reads nothing of a context but its slot. So a structure that begins like one serves: a miss takes up
// to a group's objects of a slab out of the heap under its lock, and the hits that follow take them one by one, as any
// hit does, in a restartable sequence, with the 20 instructions of any other. Its `active_id` is never its id:
// whatever else a fast path wants of a context (the next group, a place in a magazine) it is refused, and goes the
// slow way.
//
// A slab is lent to one stand-in at a time, which alone takes from its offered words; frees go to its freed words
// under the heap's lock. What is left of a group returns when the thread leaves the heap. A heap with a limit lends
// one object at a time, so that its limit is exact.
//
// Ids of stand-ins come from the upper end of the table of contexts; whoever looks up a context by a number from
// `first_stand_in` on finds none. Only the thread and its signal handlers touch a stand-in. There are kMaxStandIns at
// most; a thread that gets none has no hits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/layout.h"
#include "classes/size_classes.h"
#include "meta/header.h"
#include "slots/context.h"

namespace brimful::slots {

inline constexpr std::uint32_t kMaxStandIns = 512;

struct StandIn {
  Slot slots[kClassCount];
  std::uint32_t unused[kClassCount];
  std::uint32_t active_id;  // arch::kNoContext
  std::uint32_t id;         // constant
  StandIn* next_free;       // those that wait for a thread; heap lock
  Slab* lent[kClassCount];  // the slab that the slot leads to, or nullptr; the lock of the heap
};

static_assert(offsetof(StandIn, slots) == offsetof(Context, slots));
static_assert(offsetof(StandIn, active_id) == BRIMFUL_CONTEXT_ACTIVE_ID);

// A stand-in whose slots are empty; nullptr: there is none, or this build or tier has no hits. Takes the heap lock.
StandIn* take_stand_in();

// It holds nothing any more. Takes the heap lock.
void recycle_stand_in(StandIn* stand_in);

}  // namespace brimful::slots
