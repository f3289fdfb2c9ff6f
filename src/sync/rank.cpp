// SPDX-License-Identifier: MIT
//
// The checks of sync/rank.h: how many locks of each rank this thread holds. Counters instead of a mask, because fork()
// holds all of a rank and gives them back one by one.
#include "sync/rank.h"

#include "base/check.h"
#include "os/report.h"

namespace brimful::sync {
namespace {

constexpr const char* kNames[kRankCount] = {"list of heaps", "program's heap", "context",
                                            "central index", "samples",        "heap"};

BRIMFUL_TLS std::uint32_t held[kRankCount] = {};

}  // namespace

void check_wait_for(Rank rank) {
  const auto wanted = static_cast<std::size_t>(rank);
  for (std::size_t r = wanted; r < kRankCount; ++r) {
    if (held[r] == 0) continue;
    os::report_and_abort(
        Line() << "internal error: lock order: waits for a lock of rank " << kNames[wanted]
               << " while it holds one of rank " << kNames[r]
               << "; the order is list of heaps, program's heap, context, central index, heap (sync/rank.h)");
  }
}

void note_held(Rank rank) { ++held[static_cast<std::size_t>(rank)]; }

void note_released(Rank rank) {
  BRIMFUL_CHECK(held[static_cast<std::size_t>(rank)] != 0);
  --held[static_cast<std::size_t>(rank)];
}

}  // namespace brimful::sync
