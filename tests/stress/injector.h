// SPDX-License-Identifier: MIT
//
// Aborts at chosen instructions: breakpoints in the allocator's own restartable sections.
//
// An int3 at an instruction of a section raises SIGTRAP there. Before the kernel builds the signal frame it
// looks whether the thread's rseq_cs names a section that holds the instruction pointer, and if so sends the
// thread to the abort handler: a real abort, right before the chosen instruction. The pointer is one behind
// the int3 then, and still inside, as no commit is a single byte long. The handler checks that it came back
// as the abort address. If not (the thread has no rseq area, so nobody aborts it) the handler moves it there
// itself: the same event, by hand.
//
//     commit at A:   48 89 ..  ──►  cc 89 ..      trap ──► kernel: ip = abort_ip ──► handler: count ──► abort
//     path
//
// Writing one byte is atomic for the processors that run the code; membarrier(SYNC_CORE) makes them all see
// it. Text is made writable once, for the life of the process, as a private copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sections.h"

namespace brimful::stress {

// What became of the traps since the last reset.
struct Hits {
  uint64_t by_kernel;
  uint64_t by_hand;
  uint64_t total() const { return by_kernel + by_hand; }
};

class Injector {
 public:
  // Makes the sections' text writable and installs the handlers. Returns nullptr, or why it can't.
  static const char* initialize(const SectionTable* table);

  // Puts an int3 at the instruction. After `budget` traps in total over all armed places the handler itself
  // takes the int3 away that was hit; 0 = never.
  static void arm(size_t section, size_t instruction, uint64_t budget);

  // Takes it away, waits until no thread is between such a trap and the end of its handler, and returns what
  // was hit.
  static Hits disarm(size_t section, size_t instruction);

  // Hits so far; arm() starts from 0.
  static Hits hits();
};

}  // namespace brimful::stress
