// SPDX-License-Identifier: MIT
//
// What the tests of slots/ and stats/ ask about the heap.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "classes/size_classes.h"
#include "stats/snapshot.h"

namespace brimful::testing {

// One context per thread: then who owns what does not depend on the CPU that a test happens to run on. Before the first
// allocation of the process.
inline const bool thread_mode = setenv("BRIMFUL_CONF", "front_end:thread,purge_delay_ms:-1", 1) == 0;

inline stats::Snapshot snapshot() {
  stats::Snapshot result;
  stats::take_snapshot(result);
  return result;
}

inline stats::ClassUse use_of(std::size_t bytes) { return snapshot().classes[class_of(bytes)]; }

}  // namespace brimful::testing
