// SPDX-License-Identifier: MIT
//
// SIGSEGV, for the library's own pages without access. The signal is the program's: its handlers, set before ours or
// after, stay what they are.
//
//   the program has a handler already    ours is not set, and its handler sees all faults as ever
//   it sets one later                    ours is gone; it may call ours as the one before it
//   it has none                          ours looks at the address. None of ours: as if there were no handler, the default
//                                        action at the same instruction, with the same registers in the core
//
// Rejected: standing in front of the program's handler. A Java machine takes thousands of faults a second for null checks,
// Go's run time and crash reporters look at which handler is set, and what a handler is called with (stack, mask, flags)
// is more than a function can pass on.
#pragma once

#include <cstdint>

#include "arch/fault.h"

namespace brimful::os {

enum class FaultAnswer : std::uint8_t {
  kNotOurs,
  kEnd,   // it has been reported; the instruction is tried again, and faults for good
  kGoOn,  // the instruction may access the address now
};

// Called on the thread that faulted, in the handler.
using FaultReport = FaultAnswer (*)(std::uint64_t address, const arch::Fault& fault);

// Two system calls. false: the program has a handler of its own, so faults are its own, too. Any moment. errno is kept.
bool watch_faults(FaultReport report);

}  // namespace brimful::os
