// SPDX-License-Identifier: MIT
//
// The order in which locks are taken. Every lock has a rank; a thread that waits for one may hold only locks of lower
// ranks:
//
//   list of heaps    which heaps of the program there are (slots/user_heap.h)
//   program's heap   one for each of them: its slabs and blocks
//   context          what a context's lists are guarded by. Allocation only ever tries it
//   central index    one for each size class
//   samples          sampled objects and their records
//   heap             the page heap, tables and metadata
//
// Two locks of one rank are never waited for together, but by fork(), which takes every lock there is and is the only
// one to do so at a time. Trying is free: who does not wait can't be part of a deadlock.
//
// A debug build checks each wait against what the thread holds (sync/rank.cpp); in a release build nothing is kept.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/compiler.h"

namespace brimful::sync {

enum class Rank : std::uint8_t { kHeapList, kUserHeap, kContext, kCentral, kSamples, kHeap };
inline constexpr std::size_t kRankCount = 6;

// What the calling thread holds, in debug builds. wait_for() aborts when a lock of `rank` is not next in the order.
void check_wait_for(Rank rank);
void note_held(Rank rank);
void note_released(Rank rank);

inline void wait_for(Rank rank) {
  if constexpr (BRIMFUL_DEBUG_CHECKS != 0) check_wait_for(rank);
}
inline void hold(Rank rank) {
  if constexpr (BRIMFUL_DEBUG_CHECKS != 0) note_held(rank);
}
inline void release(Rank rank) {
  if constexpr (BRIMFUL_DEBUG_CHECKS != 0) note_released(rank);
}

}  // namespace brimful::sync
