// SPDX-License-Identifier: MIT
//
// How many objects malloc is offered at a time while free memory waits to go back.
//
// Nothing but slow paths look at the clock, and a program that makes a few hundred calls a second hardly ever leaves the fast
// path: 64 objects of each class lie ready, and 31 groups more until the heartbeat ends. After a peak it kept everything, for
// as long as it did little. So, while memory waits (pages/purger.h):
//
//   10 ms are over     ──▶ the slots are emptied: the next malloc of each class comes by
//   it comes by        ──▶ it is offered 1 object, next time 2, 4 … 32, then a group until the next look, 2 … 16 groups, and
//                          then as many as ever: a busy program pays eleven slow paths in 10 ms
//   10 ms after a look ──▶ 1 object again: each malloc of a program at rest looks at the clock
//
// The fast path knows nothing of it: fewer bits are set, and the heartbeat is used up, so that it does not go on to a group
// by itself. When nothing waits, all is as ever.
#pragma once

#include <cstdint>

#include "arch/sequences.h"
#include "base/compiler.h"
#include "config/options.h"
#include "pages/purger.h"
#include "slots/context.h"

namespace brimful::slots {

// Of the objects of a group (a mask) those that the context is to be offered now: all, or the lowest.
std::uint64_t limit_offer(const Context* context, std::uint64_t objects);

// Memory waits, and 10 ms are over: the slots of the running context are emptied. Takes its lock if it is free.
void empty_slots(Context* context);

// What is left of the heartbeat. Without what malloc needs to go on to a group by itself, or where it must not
// (config::offers_by_hand()), the fast paths find nothing left, ever.
inline std::int32_t& beats_of(Context* context) {
  return config::offers_by_hand() ? context->slow_heartbeat : context->heartbeat;
}
inline void set_groups_until_look(Context* context, std::int32_t groups) {
  beats_of(context) = arch::has_fast_advance() || config::offers_by_hand() ? groups * BRIMFUL_BEATS_OF_A_GROUP : 0;
}

// The usual case: nothing waits, nor did when malloc came by last.
inline bool wants_all(const Context* context) {
  // Slabs whose free pages go back when they have rested for a while count, too.
  return BRIMFUL_LIKELY(context->offer_step == 0 && !pages::is_waiting() && !context->has_slabs_left_over());
}

// A look at the clock, `passed_ms` after the last one. How many groups malloc may take until the next, of the `usual` ones; 0:
// it comes by for each.
std::int32_t groups_to_offer(Context* context, std::uint64_t passed_ms, std::int32_t usual);

// malloc came by, and was offered what it is to be offered: more, next time.
void raise_offers(Context* context);

}  // namespace brimful::slots
