// SPDX-License-Identifier: MIT
//
// What the tests of slots/ and stats/ ask about the heap.
#pragma once

#include <cstdint>

#include "alone.h"
#include "classes/size_classes.h"
#include "stats/snapshot.h"

namespace brimful::testing {

// One context per thread: then who owns what does not depend on the CPU that a test happens to run on.
static const Configured thread_mode(__BASE_FILE__, "front_end:thread,purge_delay_ms:-1,guards:0");

inline stats::Snapshot snapshot() {
  stats::Snapshot result;
  stats::take_snapshot(result);
  return result;
}

inline stats::ClassUse use_of(std::size_t bytes) { return snapshot().classes[class_of(bytes)]; }

}  // namespace brimful::testing
